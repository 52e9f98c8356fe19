//! Inserting readings: one is a statement of its own, several are grouped per bucket in a transaction; slots are added up.

use crate::execute::client_statement::with_id;
use crate::layer::shaped::write::attempt::Part;
use crate::layer::shaped::write::candidates::first;
use crate::layer::shaped::write::place::Reading;
use crate::layer::shaped::write::refused::duplicate;
use crate::layer::shaped::write::rewrite::{Changes, Existing, Fate};
use crate::layer::shaped::write::single_statement::{CommandOptions, SingleStatement};
use crate::layer::shaped::write::steps::{Steps, Stop};
use crate::layer::shaped::write::{attempt, place, resend_after_move, rewrite, single_statement, told};
use crate::layer::{Executor, bulk, statements};
use crate::shapes::bucket::{Body, Bucket, Encoded};
use crate::shapes::{Form, Place, Stack};
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Insert, Namespace, WriteError, Written};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// Inserts the documents of a command, outside a client's transaction.
pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &Insert,
    shaped: &Arc<Stack>,
) -> Result<Written> {
    let how = how(op);
    let (mut documents, refused) = encoded(shaped, op, context);
    let slots = single_statement_side(shaped).filter(|(bucket, _)| matches!(bucket.body, Body::Slots(_)));
    let is_single = op.documents.len() == 1;
    let mut total = Written::default();
    if slots.is_some() || is_single && (alone(shaped).is_some() || plain(shaped).is_some()) {
        let ids: Vec<i32> = documents.iter().map(|(at, ..)| how.statement_id(*at)).collect();
        total = resend_after_move::recorded(executor, session, context, shaped, &ids).await?;
        documents.retain(|(at, ..)| !total.retried.contains(&how.statement_id(*at)));
    }
    match slots {
        Some(target) => {
            let written =
                single_statement::all(executor, session, context, target, ones(target.0, documents)?, &how).await?;
            statements::add(&mut total, written, 0);
        }
        None if is_single && alone(shaped).is_some() => {
            if let (Some(target), Some((_, _, reading))) = (alone(shaped), documents.into_iter().next()) {
                total = single_statement::reading(executor, session, context, shaped, target, reading, &how).await?;
            }
        }
        None if is_single && plain(shaped).is_some() => {
            if let (Some(stored), Some((_, document, _))) = (plain(shaped), documents.into_iter().next()) {
                total = single_statement::document(executor, session, context, stored, document, &how).await?;
            }
        }
        _ => {
            for part in parts(&documents) {
                let part = Part::Insert { documents: part, how: &how };
                statements::add(&mut total, told(attempt::run(executor, session, context, shaped, &part).await)?, 0);
                if op.ordered && !total.errors.is_empty() {
                    break;
                }
            }
        }
    }
    // An insert says nothing of the bucket that it made.
    total.upserted.clear();
    Ok(with_refused(total, refused, op.ordered))
}

/// Inserts the documents of a command in the client's transaction.
pub(super) async fn joined(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &Insert,
    shaped: &Arc<Stack>,
) -> Result<Written> {
    let how = how(op);
    let (documents, refused) = encoded(shaped, op, context);
    if let Some(failed) = refused.first() {
        return Ok(statements::failed(failed.index, failed.error.clone()));
    }
    let slots = single_statement_side(shaped).filter(|(bucket, _)| matches!(bucket.body, Body::Slots(_)));
    if let Some((bucket, stored)) = slots {
        let written =
            single_statement::all(executor, session, context, (bucket, stored), ones(bucket, documents)?, &how).await?;
        return Ok(Written { upserted: Vec::new(), ..written });
    }
    let mut steps = Steps::new(executor, session, context, shaped);
    let all: Vec<usize> = (0..documents.len()).collect();
    let mut outcome = added(&mut steps, &documents, &all, true, op.bypass_validation).await;
    if let (true, Err(error)) = (outcome.is_ok(), steps.follow().await) {
        outcome = Err(Stop::of(0)(error));
    }
    told(outcome.map(|errors| Written { n: (documents.len() - errors.len()) as u64, errors, ..Written::default() }))
}

/// Runs an insert to show its steps.
pub(super) async fn rehearsed(steps: &mut Steps<'_>, op: &Insert) -> Result<(), Stop> {
    let shaped = steps.shaped.clone();
    let (documents, refused) = encoded(&shaped, op, steps.context);
    if let Some(failed) = refused.into_iter().next() {
        return Err(Stop::Statement { at: failed.index, error: failed.error });
    }
    let all: Vec<usize> = (0..documents.len()).collect();
    match added(steps, &documents, &all, true, op.bypass_validation).await?.into_iter().next() {
        Some(failed) => Err(Stop::Statement { at: failed.index, error: failed.error }),
        None => steps.follow().await.map_err(Stop::of(0)),
    }
}

/// A client's document: its place, itself with an `_id`, and what it is as a reading.
pub(super) type NewReading = (usize, Doc<'static>, Encoded);

/// The documents that can be stored, and those that cannot; ordered, up to the first of these.
fn encoded(shaped: &Stack, op: &Insert, context: &Context) -> (Vec<NewReading>, Vec<WriteError>) {
    let (mut documents, mut refused) = (Vec::with_capacity(op.documents.len()), Vec::new());
    let Some(bucket) = shaped.bucket() else { return (documents, refused) };
    for (at, doc) in op.documents.iter().enumerate() {
        let doc = if bucket.derives_id() { doc.clone() } else { with_id(doc, &context.env) };
        match bucket.encode(&doc) {
            Ok(encoded) => documents.push((at, doc, encoded)),
            Err(error) => {
                refused.push(WriteError { index: at, error });
                if op.ordered {
                    break;
                }
            }
        }
    }
    (documents, refused)
}

fn with_refused(mut total: Written, refused: Vec<WriteError>, ordered: bool) -> Written {
    if !ordered || total.errors.is_empty() {
        total.errors.extend(refused);
        total.errors.sort_by_key(|failed| failed.index);
    }
    total
}

fn how(op: &Insert) -> CommandOptions {
    CommandOptions {
        ordered: op.ordered,
        bypass_validation: op.bypass_validation,
        statement_ids: op.statement_ids.clone(),
    }
}

/// The buckets that a reading goes to by one statement: while there are two sides, only if no other reading may be it.
fn alone(shaped: &Stack) -> Option<(&Arc<Bucket>, &Namespace)> {
    let side = shaped.sides.first().filter(|_| !shaped.is_source)?;
    match &side.form {
        Form::Bucket(bucket) if shaped.sides.len() == 1 || !bucket.derives_id() => {
            single_statement::is_one_statement(bucket).then_some((bucket, &side.stored))
        }
        Form::Bucket(_) | Form::Plain => None,
    }
}

/// The collection that a document goes to as it is, by one statement: on the way back, if no other document may be it.
fn plain(shaped: &Stack) -> Option<&Namespace> {
    let is_plain = |side: &&Place| matches!(side.form, Form::Plain) && !shaped.is_source;
    let side = shaped.sides.first().filter(is_plain)?;
    shaped.bucket().is_some_and(|bucket| !bucket.derives_id()).then_some(&side.stored)
}

/// The buckets, where they are the only place of the documents.
pub(super) fn only_side(shaped: &Stack) -> Option<(&Arc<Bucket>, &Namespace)> {
    match shaped.sides.as_slice() {
        [side] => match &side.form {
            Form::Bucket(bucket) => Some((bucket, &side.stored)),
            Form::Plain => None,
        },
        _ => None,
    }
}

/// The same, where a statement on one of them is all that a write comes to: no field is kept from the logical documents.
pub(super) fn single_statement_side(shaped: &Stack) -> Option<(&Arc<Bucket>, &Namespace)> {
    only_side(shaped).filter(|_| !shaped.is_source)
}

fn ones(bucket: &Arc<Bucket>, documents: Vec<NewReading>) -> Result<Vec<SingleStatement>> {
    let one = |(at, _, encoded): NewReading| {
        let statement = bucket.add(&encoded.key, 0, &[encoded.entry])?;
        Ok(SingleStatement { at, statement, id: Value::Missing })
    };
    documents.into_iter().map(one).collect()
}

/// As many as share a transaction.
fn parts(documents: &[NewReading]) -> Vec<&[NewReading]> {
    let (mut parts, mut rest) = (Vec::new(), documents);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take(bulk::STATEMENTS).take_while(|(_, doc, _)| {
            bytes += doc.as_bytes().len();
            bytes <= bulk::BYTES
        });
        let Some((part, others)) = rest.split_at_checked(fitting.count().max(1)) else { break };
        parts.push(part);
        rest = others;
    }
    parts
}

/// Adds those of the documents that `left` names, in the steps' transaction; gives those that are there already.
pub(super) async fn added(
    steps: &mut Steps<'_>,
    documents: &[NewReading],
    left: &[usize],
    ordered: bool,
    bypass_validation: bool,
) -> Result<Vec<WriteError>, Stop> {
    let shaped = steps.shaped.clone();
    let coming = left.iter().filter_map(|index| documents.get(*index));
    if let Some(side) = shaped.sides.first()
        && let Form::Bucket(bucket) = &side.form
        && (shaped.sides.len() == 1 || !bucket.derives_id())
    {
        let readings: Vec<Reading> =
            coming.map(|(at, _, encoded)| Reading { at: *at, encoded: encoded.clone() }).collect();
        return place::add(steps, (bucket, &side.stored), &readings, ordered, bypass_validation).await;
    }
    let mut errors = Vec::new();
    for (at, doc, _) in coming {
        match put(steps, vec![(*at, doc.clone())], bypass_validation).await {
            Ok(_) => {}
            // Found before anything was written for it.
            Err(Stop::Statement { at, error }) if error.code() == document::Code::DuplicateKey && !ordered => {
                errors.push(WriteError { index: at, error });
            }
            Err(stop) => return Err(stop),
        }
    }
    Ok(errors)
}

/// Inserts logical documents, each for the client's statement at its place, and gives their `_id`s. While there are two
/// sides, one that is already on any of them is found there.
pub(super) async fn put(
    steps: &mut Steps<'_>,
    documents: Vec<(usize, Doc<'static>)>,
    bypass_validation: bool,
) -> Result<Vec<Value<'static>>, Stop> {
    let shaped = steps.shaped.clone();
    let Some(bucket) = shaped.bucket() else { return Ok(Vec::new()) };
    let (mut ids, mut new) = (Vec::with_capacity(documents.len()), Vec::new());
    for (at, doc) in documents {
        let encoded = bucket.encode(&doc).map_err(Stop::of(at))?;
        ids.push(encoded.id.clone());
        if shaped.sides.len() == 1 || !bucket.derives_id() {
            new.push((at, doc));
            continue;
        }
        let found = first(steps, &Filter::equality("_id", &encoded.id), None).await.map_err(Stop::of(at))?;
        match (found, &bucket.body) {
            (None, _) => new.push((at, logical(bucket, &encoded).map_err(Stop::of(at))?.unwrap_or(doc))),
            (Some(_), Body::Readings(_)) => {
                return Err(Stop::Statement { at, error: duplicate(&shaped.logical, &encoded.id) });
            }
            (Some(found), Body::Slots(_)) => {
                let mut changes = Changes::default();
                let sum = summed(bucket, &found.doc, &doc).map_err(Stop::of(at))?;
                let fates = vec![(found.index, Fate::Becomes(sum))];
                changes.add(&shaped, found.side, &found.stored, fates).map_err(Stop::of(at))?;
                changes.write(steps, at, bypass_validation).await?;
            }
        }
    }
    rewrite::put(steps, new, bypass_validation, Existing::AddedTo).await?;
    Ok(ids)
}

/// The logical document that a reading comes back as.
pub(super) fn logical(bucket: &Bucket, encoded: &Encoded) -> Result<Option<Doc<'static>>> {
    let Some(stored) = bucket.build(&encoded.key, 0, std::slice::from_ref(&encoded.entry)) else { return Ok(None) };
    let mut shown = None;
    bucket.decode(&stored, &mut |reading| {
        shown = Some(reading);
        Ok(())
    })?;
    Ok(shown)
}

/// A slot with the sums of another added.
fn summed(bucket: &Bucket, slot: &Doc<'static>, more: &Doc<'static>) -> Result<Doc<'static>> {
    let Body::Slots(slots) = &bucket.body else { return Ok(slot.clone()) };
    let mut sums = DocWriter::new();
    for (name, value) in more.iter().filter(|(name, _)| slots.sums.iter().any(|(sum, _)| **sum == *name.as_str())) {
        sums.append(name.as_str(), &value);
    }
    let sums = sums.finish();
    if sums.is_empty() {
        return Ok(slot.clone());
    }
    let update = crate::mql::call("$inc", Value::Document(sums));
    let update = document::update::Update::parse(&update, &[], &mut document::pipeline::expr::Names::new())?;
    match update.apply(slot, &document::filter::Details::default(), &document::Env::fixed())? {
        document::update::Applied::Changed(after) => Ok(after),
        document::update::Applied::Unchanged => Ok(slot.clone()),
    }
}
