//! Source documents that count nowhere (SEMANTICS R27, R35): the expression of `by` fails for them or gives null or an array. Counted
//! where that is asked for: by `plan` and `audit` always, by `status` while the source is small. Of a large one `status` shows what
//! seeding counted.

use crate::execute::access::{Access, aggregate};
use crate::fields::fold::elements;
use crate::life::preview::{grouped, shown};
use crate::life::{CatalogRule, Life, catalog, plan};
use crate::mql::{call, call_with, field, list, object};
use crate::rule::{Link, LinkKey, Refers, Rule};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, Env, Result, Value};

/// Up to so many source documents `status` counts: monitoring asks often.
const COUNTED_BY_STATUS: i64 = 100_000;

/// How many there are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unkeyed {
    pub(crate) documents: u64,
    /// The `_id` of one of them.
    pub(crate) example: Option<Value<'static>>,
}

impl Unkeyed {
    /// In words; `None` if there are none.
    pub(crate) fn text(&self, link: &Link) -> Option<String> {
        let have = match self.documents {
            0 => return None,
            1 => "1 document of".to_owned(),
            more => format!("{} documents of", grouped(more)),
        };
        let verb = if self.documents == 1 { "has no key and counts" } else { "have no key and count" };
        let such = self.example.as_ref().map(|id| format!(", such as _id {}", shown(id))).unwrap_or_default();
        Some(format!("{have} {} {verb} nowhere{such}", link.source.collection))
    }
}

/// The link of a rule whose sources are expected to have a key: it is computed, or makes documents. A plain reference may be empty.
fn keyed(rule: &Rule) -> Option<&Link> {
    rule.link().filter(|link| link.refers == Refers::Source && (link.create || link.foreign.path().is_none()))
}

/// Counts the source documents of a rule that fit `where` and have no key; `None` if the rule asks for none.
pub(crate) async fn count(at: &mut Access<'_>, rule: &Rule) -> Result<Option<Unkeyed>> {
    let Some(link) = keyed(rule) else { return Ok(None) };
    let pipeline = Pipeline::parse(&stages(link), &mut Names::new())?;
    let rows = at.all(aggregate(&link.source, pipeline)).await?;
    let row = rows.first();
    let documents = u64::try_from(row.map_or(0, |row| catalog::long(row.get("n")))).unwrap_or(0);
    Ok(Some(Unkeyed { documents, example: row.and_then(|row| row.get("example")) }))
}

fn stages(link: &Link) -> Array<'static> {
    let mut unlinked = vec!["missing", "null", "undefined", "array"];
    if link.create {
        unlinked.push("regex");
    }
    let links_nowhere = |value: Value<'static>| {
        call_with("$in", [call("$type", value), list(unlinked.iter().map(|name| Value::from(*name)))])
    };
    let is_unkeyed = match &link.foreign {
        LinkKey::Path(by) if by.each => {
            let of_element = object([
                ("input", elements(&by.path)),
                ("cond", call_with("$not", [links_nowhere(Value::from("$$this"))])),
            ]);
            call_with("$eq", [call("$filter", of_element), list([])])
        }
        LinkKey::Path(by) => links_nowhere(field(&by.path.dotted())),
        LinkKey::Expression(expression) => links_nowhere(expression.total.clone()),
    };
    let mut stages = Vec::new();
    if let Some(filter) = &link.filter {
        stages.push(call("$match", Value::Document(filter.source.clone())));
    }
    stages.push(call("$match", object([("$expr", is_unkeyed)])));
    stages.push(call(
        "$group",
        object([
            ("_id", Value::Null),
            ("n", call("$sum", Value::Int32(1))),
            ("example", call("$min", Value::from("$_id"))),
        ]),
    ));
    stages.into_iter().collect()
}

/// Of some source documents, how many count nowhere for want of a key: for a walk that reads them anyway.
pub(crate) fn among(link: &Link, sources: &[Doc<'static>], env: &Env) -> Result<i64> {
    let mut number = 0;
    for source in sources {
        let fits = match &link.filter {
            Some(filter) => filter.matches(source, env)?,
            None => true,
        };
        number += i64::from(fits && link.source_keys(source, env).values.is_empty());
    }
    Ok(number)
}

/// What `status` shows of a rule; `None` if it has no such number.
pub(crate) async fn in_status(life: &Life, at: &mut Access<'_>, entry: &CatalogRule) -> Result<Option<i64>> {
    let Some(link) = keyed(&entry.rule) else { return Ok(None) };
    let is_small = life.patterned.rules().shaped(&link.source).is_none()
        && plan::documents(at, &link.source).await? <= COUNTED_BY_STATUS;
    if is_small {
        let counted = count(at, &entry.rule).await?;
        return Ok(counted.map(|unkeyed| i64::try_from(unkeyed.documents).unwrap_or(i64::MAX)));
    }
    Ok(link.create.then_some(entry.row.replaced.seeded.unkeyed))
}
