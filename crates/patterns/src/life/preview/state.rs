//! Documents with a `_pleach` of their own, where a rule would keep its state: a value that is no document would be replaced.

use crate::execute::access::Access;
use crate::life::catalog;
use crate::life::preview::{Need, Refusal, RulePreview, documents};
use crate::mql;
use crate::rule::owned::STATE;
use document::filter::Filter;
use document::op::{Count, ReadOp};
use document::pipeline::expr::Names;
use document::{Result, Value};

/// Adds a refusal if there are such documents. Only of a rule that is new: what is there under an applied one is its own.
pub(super) async fn look(at: &mut Access<'_>, rule_preview: &mut RulePreview) -> Result<()> {
    let rule = &rule_preview.rule;
    if rule.state_path().is_none() {
        return Ok(());
    }
    let of_type = |name: &str| mql::object([(STATE, mql::call("$type", Value::from(name)))]);
    let is_array = of_type("array");
    let is_other = [
        (STATE, mql::call("$exists", Value::Bool(true))),
        ("$nor", Value::Array([of_type("object")].into_iter().collect())),
    ];
    let any = mql::document([("$or", Value::Array([is_array, mql::object(is_other)].into_iter().collect()))]);
    let filter = Filter::parse(&any, &mut Names::new())?;
    let op = Count { ns: rule.host.clone(), filter, skip: 0, limit: None, hint: None };
    let rows = at.all(ReadOp::Count(op)).await?;
    let found = rows.first().map_or(0, |row| catalog::long(row.get("n")));
    if let Some(found) = u64::try_from(found).ok().filter(|found| *found > 0) {
        let of = documents(found);
        let reason = format!("rule {}: it keeps its state in `{STATE}`, and would replace that of {of}", rule.name);
        rule_preview.refusals.push(Refusal { need: Need::Overwrite, reason });
    }
    Ok(())
}
