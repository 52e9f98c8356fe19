//! Repair of a shape: each flawed document is read again in a transaction and written as it should be, so that a newer write is
//! never overwritten. What it does not tell itself cannot be mended, and is said.

use crate::execute::access::{Access, update_one, update_op};
use crate::life::Life;
use crate::life::audit::{AuditedRule, Figures, Report};
use crate::life::relocate::audit::{Flaws, drift, each_flawed, note_looked_at};
use crate::life::transaction::{OwnTransaction, retried};
use crate::rule::shape::Place;
use crate::rule::{Flaw, Rule};
use document::backend::Answer;
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, Result, Value};
use std::sync::Arc;

pub(crate) async fn repair(life: &Life, asked: &AuditedRule, figures: &mut Figures, report: &mut Report) -> Result<()> {
    let checked = each_flawed(life, asked, &mut Mending { life, rule: &asked.rule, figures, report }).await?;
    note_looked_at(life, asked, figures, checked).await
}

struct Mending<'a> {
    life: &'a Life,
    rule: &'a Arc<Rule>,
    figures: &'a mut Figures,
    report: &'a mut Report,
}

impl Flaws for Mending<'_> {
    fn add<'a>(&'a mut self, place: &'a Place, document: Doc<'static>, flaws: Vec<Flaw>) -> Answer<'a, ()> {
        Box::pin(repair_document(self.life, self.rule, place, (document, flaws), self.figures, self.report))
    }
}

async fn repair_document(
    life: &Life,
    rule: &Arc<Rule>,
    place: &Place,
    found: (Doc<'static>, Vec<Flaw>),
    figures: &mut Figures,
    report: &mut Report,
) -> Result<()> {
    let (document, flaws) = found;
    if flaws.iter().any(|flaw| !flaw.mendable) {
        let why = "the bucket does not tell what it should be; correct or delete it by hand (`serve --raw`)";
        report.failures.push((drift(rule, place, &document, &flaws), why.to_owned()));
        return Ok(());
    }
    let id = &document.get("_id").unwrap_or(Value::Null);
    match retried(life, || mend(life, rule, place, id)).await {
        Ok(Some((document, flaws))) => report.note(figures, drift(rule, place, &document, &flaws)),
        Ok(None) => {}
        Err(error) => {
            life.check_stopped()?;
            report.failures.push((drift(rule, place, &document, &flaws), error.to_string()));
        }
    }
    Ok(())
}

/// Gives the document as it was; `None` if it is right by now.
async fn mend(
    life: &Life,
    rule: &Arc<Rule>,
    place: &Place,
    id: &Value<'static>,
) -> Result<Option<(Doc<'static>, Vec<Flaw>)>> {
    let context = life.context();
    // Held until the commit: by a rule that was changed meanwhile nothing may be written any more.
    let rules = life.patterned.rules();
    if rules.find(&rule.host.db, &rule.name).is_none_or(|kept| !Arc::ptr_eq(&kept.rule, rule)) {
        return Ok(None);
    }
    let mut began = OwnTransaction::begin(life, &context).await?;
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
    let Some(document) = at.one(&place.stored, id).await? else { return Ok(None) };
    let flaws = place.shape.flaws(&document);
    if flaws.is_empty() {
        return Ok(None);
    }
    let filter = Filter::equality("_id", id);
    match place.shape.mend(&document) {
        Some(mended) => {
            let update = Update::parse(&Value::Document(mended), &[], &mut Names::new())?;
            at.write(&update_op(&place.stored, vec![update_one(filter, update)])).await?;
        }
        None => {
            at.delete(&place.stored, filter).await?;
        }
    }
    began.commit().await?;
    Ok(Some((document, flaws)))
}
