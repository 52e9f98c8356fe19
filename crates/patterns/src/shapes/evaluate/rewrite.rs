//! What is stored instead of documents in which logical ones change: collected, each stored document once, and then written
//! together. A logical document that does not belong where it was any more is added where it belongs, in the same transaction (R17).

use crate::rule::Stack;
use crate::rule::shape::{Existing, LogicalFate, NewDocuments, Stop, StoredAccess, StoredChange};
use crate::shapes::evaluate::Match;
use crate::shapes::refused::immutable_id;
use document::filter::Filter;
use document::op::{Delete, DeleteStatement, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::order;
use document::{Doc, Env, Result, Value};

/// The document after an update; `None` if that changes nothing.
pub(super) fn updated(stack: &Stack, found: &Match, update: &Update, env: &Env) -> Result<Option<Doc<'static>>> {
    let Applied::Changed(mut after) = update.apply(&found.doc, &found.details, env)? else { return Ok(None) };
    if let Some(normal) = stack.places.get(found.place).and_then(|place| place.shape.normal(&after)) {
        if normal.as_bytes() == found.doc.as_bytes() {
            return Ok(None);
        }
        after = normal;
    }
    let id = |doc: &Doc<'static>| doc.get("_id").unwrap_or(Value::Missing);
    match order::equal(&id(&found.doc), &id(&after)) {
        true => Ok(Some(after)),
        false => Err(immutable_id(&id(&after))),
    }
}

/// By number of the place: statements on stored documents.
#[derive(Default)]
pub(super) struct StoredRewrites {
    updates: Vec<(usize, UpdateStatement)>,
    deletes: Vec<(usize, DeleteStatement)>,
    moved: Vec<Doc<'static>>,
    hosts: Vec<(usize, u64)>,
}

impl StoredRewrites {
    /// Decides what is stored instead of one document.
    pub(super) fn add(
        &mut self,
        stack: &Stack,
        number: usize,
        stored: &Doc<'static>,
        fates: Vec<(usize, LogicalFate)>,
    ) -> Result<()> {
        let Some(place) = stack.places.get(number) else { return Ok(()) };
        if let Some(shape) = stack.shape().filter(|_| place.shape.is_plain()) {
            // It must fit into the other form, where it will be or was.
            for (_, fate) in &fates {
                if let LogicalFate::Becomes(after) = fate {
                    shape.check(after)?;
                }
            }
        }
        let rewrite = place.shape.rewrite(place, stored, fates)?;
        match rewrite.change {
            StoredChange::Update(statement) => self.updates.push((number, statement)),
            StoredChange::Delete(statement) => self.deletes.push((number, statement)),
        }
        self.moved.extend(rewrite.moved);
        self.hosts.extend(rewrite.host.map(|host| (number, host)));
        Ok(())
    }

    /// Writes all of it, for the client's statement at that place.
    pub(super) async fn write(
        self,
        at: &mut dyn StoredAccess,
        stack: &Stack,
        index: usize,
        bypass_validation: bool,
    ) -> Result<(), Stop> {
        for (number, host) in self.hosts {
            at.touch(host);
            if let Some(shape) = stack.places.get(number).map(|place| place.shape.clone()) {
                at.once_committed(Box::new(move || shape.forget(host)));
            }
        }
        let (mut updates, mut deletes) = (self.updates, self.deletes);
        for (number, place) in stack.places.iter().enumerate() {
            let statements = of_place(&mut updates, number);
            if !statements.is_empty() {
                let update = UpdateOp::of(place.stored.clone(), statements);
                run(at, index, &WriteOp::Update(UpdateOp { bypass_validation, ..update })).await?;
            }
            let statements = of_place(&mut deletes, number);
            if !statements.is_empty() {
                run(at, index, &WriteOp::Delete(Delete::of(place.stored.clone(), statements))).await?;
            }
        }
        let documents: Vec<(usize, Doc<'static>)> = self.moved.into_iter().map(|doc| (index, doc)).collect();
        let (Some(place), false) = (stack.places.first(), documents.is_empty()) else { return Ok(()) };
        let new = NewDocuments {
            documents: &documents,
            existing: Existing::Refused,
            ordered: true,
            bypass_validation,
            are_moved: false,
        };
        match place.shape.insert(at, stack, place, new).await?.refused.into_iter().next() {
            Some(failed) => Err(Stop::of(failed.index)(failed.error)),
            None => Ok(()),
        }
    }
}

fn of_place<T>(all: &mut Vec<(usize, T)>, number: usize) -> Vec<T> {
    all.extract_if(.., |(of, _)| *of == number).map(|(_, statement)| statement).collect()
}

async fn run(at: &mut dyn StoredAccess, index: usize, op: &WriteOp) -> Result<(), Stop> {
    match at.write(op, None).await?.errors.into_iter().next() {
        Some(failed) => Err(Stop::Statement { at: index, error: failed.error }),
        None => Ok(()),
    }
}

pub(crate) fn delete(id: &Value<'_>) -> DeleteStatement {
    DeleteStatement { filter: Filter::equality("_id", id), multi: false, hint: None }
}

pub(crate) fn replace(id: &Value<'_>, whole: Doc<'static>) -> Result<UpdateStatement> {
    let update = Update::parse(&Value::Document(whole), &[], &mut Names::new())?;
    Ok(UpdateStatement { filter: Filter::equality("_id", id), update, multi: false, upsert: false, hint: None })
}
