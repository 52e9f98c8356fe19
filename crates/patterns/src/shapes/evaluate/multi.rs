//! One statement about many logical documents (R9): which they are is found first, then they are changed in transactions of some
//! hundred. Each is changed at most once, also one that moves to a stored document that is still to come; after an error the
//! documents before it stay changed.

use crate::rule::Stack;
use crate::rule::shape::{LogicalFate, Stop, StoredAccess};
use crate::shapes::evaluate::rewrite::{StoredRewrites, updated};
use crate::shapes::evaluate::{holding, matching, statement};
use crate::shapes::find;
use document::filter::Filter;
use document::op::{Find, WriteOp, Written};
use document::update::Update;
use document::value::{key, order};
use document::{Doc, Error, Result, Value};

/// Matching logical documents of one stored document, by their `_id`s.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    place: usize,
    stored: Value<'static>,
    logical: Vec<Vec<u8>>,
}

impl Picked {
    /// How many logical documents they are.
    pub(crate) fn count(&self) -> usize {
        self.logical.len()
    }

    /// The same, each logical document by itself.
    pub(crate) fn one_by_one(self) -> impl Iterator<Item = Picked> {
        let (place, stored) = (self.place, self.stored);
        self.logical.into_iter().map(move |one| Picked { place, stored: stored.clone(), logical: vec![one] })
    }
}

/// The statement at that place, if it is about many documents.
pub(crate) struct Many<'o> {
    index: usize,
    filter: &'o Filter,
    /// `None` deletes.
    update: Option<&'o Update>,
    upsert: bool,
    bypass_validation: bool,
}

impl<'o> Many<'o> {
    pub(crate) fn of(op: &'o WriteOp, index: usize) -> Option<Many<'o>> {
        match op {
            WriteOp::Update(op) => op.statements.get(index).filter(|statement| statement.multi).map(|statement| Many {
                index,
                filter: &statement.filter,
                update: Some(&statement.update),
                upsert: statement.upsert,
                bypass_validation: op.bypass_validation,
            }),
            WriteOp::Delete(op) => op.statements.get(index).filter(|statement| statement.multi).map(|statement| Many {
                index,
                filter: &statement.filter,
                update: None,
                upsert: false,
                bypass_validation: false,
            }),
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => None,
        }
    }

    /// All documents that match now.
    pub(crate) async fn pick(&self, at: &mut dyn StoredAccess, stack: &Stack) -> Result<Vec<Picked>, Stop> {
        let env = at.context().env.clone();
        let mut picked = Vec::new();
        for (number, place) in stack.places.iter().enumerate() {
            at.each(holding(place, self.filter), &mut |stored| {
                (env.interrupt)()?;
                let found = matching((number, place), &stored, self.filter, &env)?;
                if !found.is_empty() {
                    let logical = found.iter().map(|found| identity(&found.doc)).collect();
                    let stored = stored.get("_id").unwrap_or(Value::Missing);
                    picked.push(Picked { place: number, stored, logical });
                }
                Ok(true)
            })
            .await
            .map_err(Stop::of(self.index))?;
        }
        Ok(picked)
    }

    /// Changes those that were picked and still match. An error ends it: what was changed before is written all the same.
    pub(crate) async fn change(
        &self,
        at: &mut dyn StoredAccess,
        stack: &Stack,
        picked: &[Picked],
    ) -> Result<(Written, Option<Error>), Stop> {
        let env = at.context().env.clone();
        let (mut rewrites, mut written, mut failed) = (StoredRewrites::default(), Written::default(), None);
        for (number, place) in stack.places.iter().enumerate() {
            let mine: Vec<&Picked> = picked.iter().filter(|picked| picked.place == number).collect();
            if mine.is_empty() || failed.is_some() {
                continue;
            }
            let ids: Vec<Value<'static>> = mine.iter().map(|picked| picked.stored.clone()).collect();
            let among = Find::matching(place.stored.clone(), Filter::among("_id", ids));
            for stored in find(at, among).await? {
                let id = stored.get("_id").unwrap_or(Value::Missing);
                // Several parts of one stored document may have been picked.
                let of_it = mine.iter().filter(|picked| order::equal(&picked.stored, &id));
                let mut left: Vec<&[u8]> = of_it.flat_map(|picked| picked.logical.iter().map(Vec::as_slice)).collect();
                let mut fates = Vec::new();
                for found in matching((number, place), &stored, self.filter, &env).map_err(Stop::of(self.index))? {
                    let identity = identity(&found.doc);
                    let Some(position) = left.iter().position(|other| *other == identity) else { continue };
                    left.swap_remove(position);
                    let fate = match self.update {
                        None => Some(LogicalFate::Gone),
                        Some(update) => {
                            match updated(stack, &found, update, &env).and_then(|after| fits(stack, after)) {
                                Ok(after) => after.map(LogicalFate::Becomes),
                                Err(error) => {
                                    failed = Some(error);
                                    break;
                                }
                            }
                        }
                    };
                    written.n += 1;
                    if let Some(fate) = fate {
                        written.modified += u64::from(self.update.is_some());
                        fates.push((found.index, fate));
                    }
                }
                if !fates.is_empty() {
                    rewrites.add(stack, number, &stored, fates).map_err(Stop::of(self.index))?;
                }
                if failed.is_some() {
                    break;
                }
            }
        }
        rewrites.write(at, stack, self.index, self.bypass_validation).await?;
        Ok((written, failed))
    }

    /// No document matches: it is inserted, if that was asked.
    pub(crate) async fn upsert_if_requested(&self, at: &mut dyn StoredAccess, stack: &Stack) -> Result<Written, Stop> {
        let Some(update) = self.update.filter(|_| self.upsert) else { return Ok(Written::default()) };
        Ok(statement::upsert(at, stack, self.filter, update, self.index, self.bypass_validation).await?.0)
    }
}

/// Whether a changed document can be stored is known before it is: so that the error is its own.
fn fits(stack: &Stack, after: Option<Doc<'static>>) -> Result<Option<Doc<'static>>> {
    if let (Some(after), Some(shape)) = (&after, stack.shape()) {
        shape.check(after)?;
    }
    Ok(after)
}

fn identity(logical: &Doc<'static>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(&logical.get("_id").unwrap_or(Value::Missing), &mut bytes);
    bytes
}
