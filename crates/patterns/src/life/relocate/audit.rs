//! Audit of a shape: is every stored document as its rule would have written it? Only reads, so a MongoDB behind needs no more than that.

use crate::execute::access::Access;
use crate::life::Life;
use crate::life::audit::{AuditedRule, Drift, Figures, Note, Report, count};
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, walk};
use crate::rule::shape::Place;
use crate::rule::{Flaw, Rule};
use document::backend::{Answer, Session};
use document::{Doc, Result, Value};
use std::sync::Arc;

/// How many stored documents are looked at together.
const PACE: Pace = Pace::even(1_000);

/// Where the documents of a rule have its form: the catalog says it of an applied one, else the declaration.
pub(crate) fn places(asked: &AuditedRule) -> Vec<Place> {
    let mut places = asked.places.clone();
    if places.is_empty() {
        places.extend(asked.rule.declared_place());
    }
    places.retain(|place| !place.shape.is_plain());
    places
}

/// What becomes of the flawed documents that are found.
pub(super) trait Flaws: Send {
    fn add<'a>(&'a mut self, place: &'a Place, document: Doc<'static>, flaws: Vec<Flaw>) -> Answer<'a, ()>;
}

/// They are reported.
struct Reported<'a> {
    rule: &'a Arc<Rule>,
    figures: &'a mut Figures,
    report: &'a mut Report,
}

impl Flaws for Reported<'_> {
    fn add<'a>(&'a mut self, place: &'a Place, document: Doc<'static>, flaws: Vec<Flaw>) -> Answer<'a, ()> {
        self.report.note(self.figures, drift(self.rule, place, &document, &flaws));
        Box::pin(async { Ok(()) })
    }
}

/// Looks at every stored document of a rule.
pub(crate) async fn audit(life: &Life, asked: &AuditedRule, figures: &mut Figures, report: &mut Report) -> Result<()> {
    let checked = each_flawed(life, asked, &mut Reported { rule: &asked.rule, figures, report }).await?;
    note_looked_at(life, asked, figures, checked).await
}

/// Documents that are not in the form yet, or no longer, were not looked at.
pub(super) async fn note_looked_at(
    life: &Life,
    asked: &AuditedRule,
    figures: &mut Figures,
    checked: u64,
) -> Result<()> {
    figures.checked += checked;
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let mut documents = 0;
    for place in asked.places.iter().filter(|place| place.shape.is_plain()) {
        documents += count(&mut at, &place.stored).await?;
    }
    if documents > 0 {
        figures.unchecked += documents;
        figures.notes.push(Note::Moving { documents });
    }
    Ok(())
}

/// What is said about a flawed document: all of its flaws, and first of all one, those that cannot be mended before others.
pub(super) fn drift(rule: &Arc<Rule>, place: &Place, document: &Doc<'static>, flaws: &[Flaw]) -> Drift {
    let flaw = flaws.iter().find(|flaw| !flaw.mendable).or(flaws.first());
    Drift {
        rule: rule.clone(),
        collection: place.stored.collection.clone(),
        id: document.get("_id").unwrap_or(Value::Null),
        field: flaw.map(|flaw| flaw.field.clone()).unwrap_or_default(),
        stored: flaw.map_or(Value::Missing, |flaw| flaw.stored.clone()),
        expected: flaw.map_or(Value::Missing, |flaw| flaw.expected.clone()),
        flaws: flaws.to_vec(),
        violations: Vec::new(),
    }
}

/// Walks the stored documents of a rule; returns how many there are.
pub(super) async fn each_flawed(life: &Life, asked: &AuditedRule, found: &mut dyn Flaws) -> Result<u64> {
    let mut checked = 0;
    for place in places(asked) {
        let mut looking = Looking { life, place: &place, checked: 0, found: &mut *found };
        walk(life, PACE, None, &mut looking).await?;
        checked += looking.checked;
    }
    Ok(checked)
}

struct Looking<'a> {
    life: &'a Life,
    place: &'a Place,
    checked: u64,
    found: &'a mut dyn Flaws,
}

impl PartWork for Looking<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(async move {
            let (mut session, context) = (Session::default(), self.life.context());
            let mut at = Access { backend: &*self.life.backend, session: &mut session, context: &context };
            let (documents, next) = walk::read(&mut at, &self.place.stored, part, None).await?;
            let done = PartDone::of(&documents, next);
            self.checked += documents.len() as u64;
            for document in documents {
                let flaws = self.place.shape.flaws(&document);
                if !flaws.is_empty() {
                    self.found.add(self.place, document, flaws).await?;
                }
            }
            Ok(Some(done))
        })
    }
}
