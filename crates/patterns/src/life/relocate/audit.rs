//! Audit of a shape: is every bucket as its rule would have written it? Only reads, so a MongoDB behind needs no more than that.

use crate::life::access::{Access, by_id, find};
use crate::life::audit::{AuditedRule, Drift, Figures, Note, Report, count};
use crate::life::{Life, walk};
use crate::rule::Rule;
use crate::rule::shape::Place;
use crate::shapes::bucket::{Bucket, Flaw};
use document::backend::{BatchLimit, Session};
use document::op::{Find, ReadOp};
use document::{Doc, Result, Value};
use std::sync::Arc;

const BATCH: BatchLimit = BatchLimit { documents: 1_000, bytes: 16 << 20 };

/// Where the buckets of a rule are: the catalog says it of an applied one, else the declaration.
pub(crate) fn places(asked: &AuditedRule) -> Vec<(Place, Arc<Bucket>)> {
    let sides = match (asked.sides.is_empty(), asked.rule.bucket()) {
        (false, _) => asked.sides.clone(),
        (true, Some(bucket)) => vec![Place::of_bucket(bucket)],
        (true, None) => Vec::new(),
    };
    let bucket = |side: Place| side.bucket().cloned().map(|bucket| (side, bucket));
    sides.into_iter().filter_map(bucket).collect()
}

/// Looks at every bucket of a rule.
pub(crate) async fn audit(life: &Life, asked: &AuditedRule, figures: &mut Figures, report: &mut Report) -> Result<()> {
    for (side, bucket) in places(asked) {
        let mut flawed = Flawed::of(&side);
        while let Some(part) = flawed.next(life, &bucket).await? {
            figures.checked += part.checked;
            for (document, flaws) in &part.flawed {
                report.note(figures, drift(&asked.rule, &side, document, flaws));
            }
        }
    }
    note_moving(life, asked, figures).await
}

/// Documents that are not in buckets yet, or no longer, were not looked at.
pub(crate) async fn note_moving(life: &Life, asked: &AuditedRule, figures: &mut Figures) -> Result<()> {
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let mut documents = 0;
    for side in asked.sides.iter().filter(|side| side.shape.is_plain()) {
        documents += count(&mut at, &side.stored).await?;
    }
    if documents > 0 {
        figures.unchecked += documents;
        figures.notes.push(Note::Moving { documents });
    }
    Ok(())
}

/// What is said about a flawed bucket: all of its flaws, and first of all one, those that cannot be mended before others.
pub(super) fn drift(rule: &Arc<Rule>, side: &Place, document: &Doc<'static>, flaws: &[Flaw]) -> Drift {
    let flaw = flaws.iter().find(|flaw| !flaw.mendable).or(flaws.first());
    Drift {
        rule: rule.clone(),
        collection: side.stored.collection.clone(),
        id: document.get("_id").unwrap_or(Value::Null),
        field: flaw.map(|flaw| flaw.field.clone()).unwrap_or_default(),
        stored: flaw.map_or(Value::Missing, |flaw| flaw.stored.clone()),
        expected: flaw.map_or(Value::Missing, |flaw| flaw.expected.clone()),
        flaws: flaws.to_vec(),
    }
}

/// The buckets of a place, part by part.
pub(super) struct Flawed {
    side: Place,
    from: Option<Value<'static>>,
    ended: bool,
}

pub(super) struct Part {
    pub(super) checked: u64,
    pub(super) flawed: Vec<(Doc<'static>, Vec<Flaw>)>,
}

impl Flawed {
    pub(super) fn of(side: &Place) -> Flawed {
        Flawed { side: side.clone(), from: None, ended: false }
    }

    /// The next part; nothing after the last.
    pub(super) async fn next(&mut self, life: &Life, bucket: &Bucket) -> Result<Option<Part>> {
        if self.ended {
            return Ok(None);
        }
        life.check_stopped()?;
        let (mut session, context) = (Session::default(), life.context());
        let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
        // By bounds only once there is a first: a hint needs the collection to be there.
        let range = match &self.from {
            Some(from) => walk::range(&self.side.stored, Some(from), None),
            None => find(&self.side.stored, document::filter::Filter::all()),
        };
        let op = ReadOp::Find(Find { sort: Some(by_id()), limit: Some(BATCH.documents as u64 + 1), ..range });
        let mut documents = at.all(op).await?;
        self.from = match documents.len() > BATCH.documents {
            true => documents.pop().and_then(|document| document.get("_id")),
            false => None,
        };
        self.ended = self.from.is_none();
        let checked = documents.len() as u64;
        let with_flaws = |document: Doc<'static>| {
            let flaws = bucket.flaws(&document);
            (!flaws.is_empty()).then_some((document, flaws))
        };
        Ok(Some(Part { checked, flawed: documents.into_iter().filter_map(with_flaws).collect() }))
    }
}
