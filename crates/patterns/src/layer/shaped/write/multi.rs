//! One statement about many readings (R9): which they are is found first, then they are changed in transactions of some
//! hundred. Each is changed at most once, also one that moves to a bucket that is still to come; after an error the readings
//! before it stay changed.

use crate::execute::access::find;
use crate::layer::multi::among;
use crate::layer::shaped::write::candidates::{holding, matching};
use crate::layer::shaped::write::rewrite::{Changes, Fate, updated};
use crate::layer::shaped::write::statement;
use crate::layer::shaped::write::steps::{Steps, Stop};
use document::filter::Filter;
use document::op::{WriteOp, Written};
use document::update::Update;
use document::value::{key, order};
use document::{Doc, Error, Result, Value};

/// Readings that share a transaction: a bucket is not divided.
pub(super) const READINGS: usize = 500;

/// Matching readings of one stored document, by their `_id`s.
pub(super) struct Picked {
    side: usize,
    stored: Value<'static>,
    readings: Vec<Vec<u8>>,
}

/// The statement at that place, if it is about many readings.
pub(super) struct Many<'o> {
    at: usize,
    filter: &'o Filter,
    /// Nothing deletes.
    update: Option<&'o Update>,
    upsert: bool,
    bypass_validation: bool,
}

impl<'o> Many<'o> {
    pub(super) fn of(op: &'o WriteOp, at: usize) -> Option<Many<'o>> {
        match op {
            WriteOp::Update(op) => op.statements.get(at).filter(|statement| statement.multi).map(|statement| Many {
                at,
                filter: &statement.filter,
                update: Some(&statement.update),
                upsert: statement.upsert,
                bypass_validation: op.bypass_validation,
            }),
            WriteOp::Delete(op) => op.statements.get(at).filter(|statement| statement.multi).map(|statement| Many {
                at,
                filter: &statement.filter,
                update: None,
                upsert: false,
                bypass_validation: false,
            }),
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => None,
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// All readings that match now.
    pub(super) async fn pick(&self, steps: &mut Steps<'_>) -> Result<Vec<Picked>, Stop> {
        let shaped = steps.shaped.clone();
        let env = steps.context.env.clone();
        let mut picked = Vec::new();
        for (at, side) in shaped.sides.iter().enumerate() {
            steps
                .each(holding(side, self.filter), &mut |stored| {
                    (env.interrupt)()?;
                    let found = matching((at, side), &stored, self.filter, &env)?;
                    if !found.is_empty() {
                        let readings = found.iter().map(|found| identity(&found.doc)).collect();
                        let stored = stored.get("_id").unwrap_or(Value::Missing);
                        picked.push(Picked { side: at, stored, readings });
                    }
                    Ok(true)
                })
                .await
                .map_err(Stop::of(self.at))?;
        }
        Ok(picked)
    }

    /// Changes those that were picked and still match. An error ends it: what was changed before is written all the same.
    pub(super) async fn change(
        &self,
        steps: &mut Steps<'_>,
        picked: &[Picked],
    ) -> Result<(Written, Option<Error>), Stop> {
        let shaped = steps.shaped.clone();
        let env = steps.context.env.clone();
        let (mut changes, mut written, mut failed) = (Changes::default(), Written::default(), None);
        for (at, side) in shaped.sides.iter().enumerate() {
            let mine: Vec<&Picked> = picked.iter().filter(|picked| picked.side == at).collect();
            if mine.is_empty() {
                continue;
            }
            let ids: Vec<Value<'static>> = mine.iter().map(|picked| picked.stored.clone()).collect();
            for stored in steps.find(find(&side.stored, among(&ids))).await? {
                let id = stored.get("_id").unwrap_or(Value::Missing);
                let of_it = mine.iter().find(|picked| order::equal(&picked.stored, &id));
                let mut left: Vec<&[u8]> =
                    of_it.map(|picked| picked.readings.iter().map(Vec::as_slice).collect()).unwrap_or_default();
                let mut fates = Vec::new();
                for found in matching((at, side), &stored, self.filter, &env).map_err(Stop::of(self.at))? {
                    let identity = identity(&found.doc);
                    let Some(place) = left.iter().position(|other| *other == identity) else { continue };
                    left.swap_remove(place);
                    let fate = match self.update {
                        None => Some(Fate::Gone),
                        Some(update) => {
                            match updated(&shaped, &found, update, &env).and_then(|after| fits(steps, after)) {
                                Ok(after) => after.map(Fate::Becomes),
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
                    changes.add(&shaped, at, &stored, fates).map_err(Stop::of(self.at))?;
                }
                if failed.is_some() {
                    break;
                }
            }
            if failed.is_some() {
                break;
            }
        }
        changes.write(steps, self.at, self.bypass_validation).await?;
        Ok((written, failed))
    }

    /// Nobody has it: it is inserted, if that was asked.
    pub(super) async fn otherwise(&self, steps: &mut Steps<'_>) -> Result<Written, Stop> {
        match self.update.filter(|_| self.upsert) {
            Some(update) => Ok(statement::upsert(steps, self.filter, update, self.at, self.bypass_validation).await?.0),
            None => Ok(Written::default()),
        }
    }

    /// In the client's own transaction: all at once.
    pub(super) async fn at_once(&self, steps: &mut Steps<'_>) -> Result<Written, Stop> {
        let picked = self.pick(steps).await?;
        if picked.is_empty() {
            return self.otherwise(steps).await;
        }
        match self.change(steps, &picked).await? {
            (written, None) => Ok(written),
            (_, Some(error)) => Err(Stop::Statement { at: self.at, error }),
        }
    }
}

/// Whether a changed reading can be stored is known before it is: so that the error is its own.
fn fits(steps: &Steps<'_>, after: Option<Doc<'static>>) -> Result<Option<Doc<'static>>> {
    if let (Some(after), Some(bucket)) = (&after, steps.shaped.bucket()) {
        bucket.encode(after)?;
    }
    Ok(after)
}

fn identity(reading: &Doc<'static>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(&reading.get("_id").unwrap_or(Value::Missing), &mut bytes);
    bytes
}

/// How many readings they are.
pub(super) fn count(picked: &[Picked]) -> usize {
    picked.iter().map(|picked| picked.readings.len()).sum()
}

/// The same, each reading by itself.
pub(super) fn one_by_one(picked: &[Picked]) -> impl Iterator<Item = Picked> + '_ {
    let ones = |picked: &Picked| {
        let (side, stored) = (picked.side, picked.stored.clone());
        picked.readings.clone().into_iter().map(move |reading| Picked {
            side,
            stored: stored.clone(),
            readings: vec![reading],
        })
    };
    picked.iter().flat_map(ones)
}

/// Some hundred readings at a time.
pub(super) fn chunks(picked: &[Picked]) -> Vec<&[Picked]> {
    let (mut chunks, mut rest) = (Vec::new(), picked);
    while !rest.is_empty() {
        let mut readings = 0;
        let fitting = rest.iter().take_while(|picked| {
            readings += picked.readings.len();
            readings <= READINGS
        });
        let count = fitting.count().max(1);
        let Some((chunk, others)) = rest.split_at_checked(count) else { break };
        chunks.push(chunk);
        rest = others;
    }
    chunks
}
