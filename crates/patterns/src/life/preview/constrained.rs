//! Which documents a constraint would refuse: they stay as they are, and `audit` lists them. A constraint that refuses what another rule
//! writes is refused itself.

use crate::execute::access::Access;
use crate::life::install::validators;
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::validators::conflicting;
use crate::life::preview::{RulePreview, documents, grouped};
use crate::mql;
use crate::rule::Rule;
use document::backend::BatchLimit;
use document::filter::Filter;
use document::op::{Count, ReadOp};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Doc, Result, Value};
use std::sync::Arc;

pub(super) async fn look(at: &mut Access<'_>, declared: &[Rule], preview: &mut RulePreview) -> Result<()> {
    let rule = preview.rule.clone();
    let Some(constraint) = rule.constraint() else { return Ok(()) };
    let fields: Vec<Arc<Rule>> = declared
        .iter()
        .filter(|other| other.host == rule.host && other.kept_field().is_some())
        .map(|other| Arc::new(other.clone()))
        .collect();
    let mut kept = validators::kept_fields(at, &rule.host).await?;
    kept.extend(fields.iter().flat_map(|field| field.owned()));
    let validator = constraint.validator(&kept);
    let (all, breaking) = count_breaking(at, &rule, &kept).await?;
    preview.breaking = Some((all, breaking));
    if breaking > 0 {
        let they = if breaking == 1 { "it stays as it is" } else { "they stay as they are" };
        let broken = if breaking == 1 { "breaks" } else { "break" };
        preview.notes.push(format!(
            "{} of {} {broken} the rule: {they} until somebody corrects them, and `pleach audit` lists them",
            documents(breaking),
            grouped(all)
        ));
        if let Some(own) = validators::own_options(at, &rule.host).await?.or(current(at, &rule).await?)
            && is_strict(&own)
        {
            preview.notes.push(format!(
                "the validator of {} is strict: until then every update of such a document is refused, those of other rules too; `validationLevel: \"moderate\"` allows them",
                rule.host.collection
            ));
        }
    }
    for field in conflicting(at, &rule.host, &validator, &fields).await? {
        preview.refusals.push(Refusal {
            need: Need::OtherData(format!("change the schema of the kind, or leave the field of {field} out of it")),
            reason: format!("rule {}: a schema would refuse what rule {field} writes", rule.name),
        });
    }
    Ok(())
}

/// How many documents there are, and how many of them a constraint refuses.
pub(crate) async fn count_breaking(at: &mut Access<'_>, rule: &Rule, kept: &[Path]) -> Result<(u64, u64)> {
    let Some(constraint) = rule.constraint() else { return Ok((0, 0)) };
    let all = count(at, rule, Doc::empty()).await?;
    let against = mql::document([("$nor", mql::list([Value::Document(constraint.validator(kept))]))]);
    Ok((all, count(at, rule, against).await?))
}

/// What the collection asks of documents now, as options.
async fn current(at: &mut Access<'_>, rule: &Rule) -> Result<Option<Doc<'static>>> {
    Ok(crate::life::relocate::stored::look_up(at, &rule.host).await?.map(|found| found.options))
}

/// Whether a validator refuses every update of a document that does not fit it.
fn is_strict(options: &Doc<'static>) -> bool {
    let has = |name: &str, word: &str| options.get(name).is_some_and(|value| value.as_str() == Some(word));
    let is_there = matches!(options.get("validator"), Some(Value::Document(validator)) if !validator.is_empty());
    is_there
        && !has("validationLevel", "moderate")
        && !has("validationLevel", "off")
        && !has("validationAction", "warn")
}

async fn count(at: &mut Access<'_>, rule: &Rule, filter: Doc<'static>) -> Result<u64> {
    let filter = Filter::parse(&filter, &mut Names::new())?;
    let all = ReadOp::Count(Count { ns: rule.host.clone(), filter, skip: 0, limit: None, hint: None });
    let mut cursor = at.backend.read(at.session, at.context, all).await?;
    let one = BatchLimit { documents: 1, bytes: 1 << 20 };
    let counted = cursor.next(at.session, at.context, one).await?.documents;
    let n = counted.first().and_then(|row| row.get("n")).and_then(|n| n.as_i64_exact());
    Ok(n.map_or(0, i64::unsigned_abs))
}
