//! What a move into another form does to the documents that exist: what they lose, and which have no place.

use crate::execute::access::{Access, aggregate};
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::sample::shown;
use crate::life::preview::{RulePreview, documents, long};
use crate::life::relocate;
use crate::life::relocate::change::RelocationPlan;
use crate::rule::shape::Shape;
use crate::rule::{Losses, Rule};
use crate::shapes::unpack::unpack;
use document::{DocWriter, Result};

/// Counts what the documents would lose, and refuses what is lost without a word or cannot be moved at all.
pub(super) async fn look(at: &mut Access<'_>, change: &RelocationPlan, rule_preview: &mut RulePreview) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let Some(shape) = rule.shape() else { return Ok(()) };
    let Some(assess) = shape.assess()? else { return Ok(()) };
    let mut rows = Vec::new();
    for (now, place) in relocate::moved::sources(&rule, &change.switchover)? {
        let assessed = match place.shape.is_plain() {
            true => assess.clone(),
            false => unpack(place.shape).then(assess.clone()),
        };
        rows.extend(at.all(aggregate(&now, assessed)).await?);
    }
    let losses = shape.losses(&rows);
    rule_preview.refusals.extend(refusals(&losses, &rule, &**shape));
    rule_preview.losses = Some(losses);
    Ok(())
}

fn refusals(losses: &Losses, rule: &Rule, shape: &dyn Shape) -> Vec<Refusal> {
    let (name, ns, noun, mut all) = (&rule.name, &rule.host.collection, shape.noun(), Vec::new());
    let mut refuse = |need, reason: String| all.push(Refusal { need, reason: format!("rule {name}: {reason}") });
    for changed in losses.changed.iter().filter(|changed| changed.documents > 0) {
        let lost = documents(changed.documents);
        refuse(Need::Overwrite, format!("the `{}` of {lost} of {ns} would be {}", changed.field, changed.what));
    }
    if let Some((id, why)) = &losses.misfit {
        let hint = format!("change or delete these documents, or declare {noun} that take them");
        let misfits = documents(losses.misfits);
        let reason = format!("{misfits} of {ns} cannot be moved into {noun}, such as _id {}: {why}", shown(id));
        refuse(Need::OtherData(hint), reason);
    }
    all
}

pub(super) fn show(losses: &Losses, doc: &mut DocWriter) {
    for changed in &losses.changed {
        doc.append(changed.name, &long(changed.documents));
    }
    doc.append("cannot_move", &long(losses.misfits));
}
