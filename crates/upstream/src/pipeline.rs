//! A whole plan in one go (SEMANTICS D): its statements, its shared fences, its retry records and its commit are sent back to
//! back. Nothing is looked up before: a record's unique `_id` refuses what was done before, and a statement that must find a
//! document fails where it would find none, so that the commit behind it commits nothing.

use crate::answer;
use crate::command::Command;
use crate::commit::{Again, Ended};
use crate::fence;
use crate::retries::{self, Attempt};
use crate::transaction::{UpstreamTransaction, over, tell};
use crate::upstream::Upstream;
use crate::version;
use crate::write::{self, plain};
use document::backend::{Answer, FenceKey, FenceVersion, Flight, Landed, Leg, Pipelining, Session};
use document::error::Scope;
use document::op::{Capture, Context, WriteOp, Written};
use document::raw::kind;
use document::{Code, Doc, DocWriter, Result, Value};

impl Pipelining for Upstream {
    fn write_all<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        ops: &'a [(WriteOp, Capture)],
    ) -> Answer<'a, Vec<Result<Written>>> {
        Box::pin(write::write_all(self, session, context, ops))
    }

    fn fly<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        flight: Flight,
        visible: Option<&'a mut (dyn FnMut() + Send)>,
    ) -> Answer<'a, Landed> {
        Box::pin(async move {
            let transaction = UpstreamTransaction::of(session).ok_or_else(over)?;
            let landed = fly(transaction, context, flight, visible).await;
            session.transaction = None;
            landed
        })
    }

    fn versions<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        keys: &'a [FenceKey],
    ) -> Answer<'a, Vec<Option<FenceVersion>>> {
        Box::pin(version::read(self, session, context, keys))
    }

    fn fence_at<'a>(&'a self, session: &'a mut Session, key: &'a FenceKey, version: FenceVersion) -> Answer<'a, ()> {
        Box::pin(version::take(self, session, key, version))
    }
}

async fn fly(
    transaction: &mut UpstreamTransaction,
    context: &Context,
    flight: Flight,
    visible: Option<&mut (dyn FnMut() + Send)>,
) -> Result<Landed> {
    let line = transaction.line()?;
    transaction.run_ahead(context).await?;
    let (mut commands, mut inserted) = (Vec::new(), Vec::new());
    for leg in &flight.legs {
        let prepared = plain::Prepared::new(&leg.op, context);
        let command = match leg.must_match.then(|| guarded(&leg.op)).flatten() {
            Some(guarded) => guarded,
            None => prepared.command,
        };
        commands.push(command);
        inserted.push(prepared.documents);
    }
    for claim in &flight.claims {
        let attempt = Attempt::new(&line, claim.session, claim.number);
        let written = Written { n: claim.n, ..Written::default() };
        let record = retries::record(attempt, &claim.statements, &written, context.env.now);
        transaction.records.push((claim.db.to_string(), record));
    }
    let fences = fence::pass_some(std::mem::take(&mut transaction.fences));
    let claims_from = commands.len() + fences.len();
    commands.extend(fences);
    commands.extend(transaction.waiting());
    let again = if flight.guarded { Again::Allowed } else { Again::Never };
    match transaction.conclude(context, commands, again, visible).await? {
        Ended::Committed(replies, unsatisfied) => {
            if let Some(error) = unsatisfied {
                tell(context, error);
            }
            let outcome = |((reply, leg), documents): ((&Doc<'static>, &Leg), &Vec<Doc<'static>>)| {
                plain::outcome(&leg.op, reply, documents, &Capture::Nothing)
            };
            Ok(Landed::Done(replies.iter().zip(&flight.legs).zip(&inserted).map(outcome).collect()))
        }
        Ended::Failed(replies) => {
            let failures = replies.iter().map(answer::failure).enumerate();
            let first = failures.filter_map(|(at, failed)| Some((at, failed?))).next();
            let Some((at, failed)) = first else { return Err(over()) };
            // A flight of several clients may be too large, or fail inside the server, for what one of them sent.
            let may_be_of_one = matches!(failed.error.code(), Code::InternalError | Code::TransactionTooLarge);
            if failed.error.scope() != Scope::Statement && !may_be_of_one {
                return Err(failed.error);
            }
            match flight.legs.get(at) {
                Some(leg) if leg.must_match => {
                    Ok(Landed::Unmatched { leg: at, index: failed.index, error: failed.error })
                }
                Some(_) => Ok(Landed::Failed { leg: at, index: failed.index, error: failed.error }),
                None if at < claims_from && version::is_outdated(&failed.error) => Ok(Landed::Outdated),
                None if at < claims_from && fence::is_pass_failure(&failed.error) => Err(fence::slots_missing(&line)),
                None if at < claims_from => Err(failed.error),
                None => Ok(Landed::Claimed { claim: failed.index }),
            }
        }
    }
}

/// The update with every statement failing where it finds no document: it would insert one, which is made impossible. Nothing
/// if that cannot be said of this update.
fn guarded(op: &WriteOp) -> Option<Command> {
    let WriteOp::Update(update) = op else { return None };
    let mut statements = Vec::with_capacity(update.statements.len());
    for statement in &update.statements {
        let mut writer = DocWriter::new();
        match &statement.update.source {
            // An inserted document would have another `_id` than the one looked for.
            Value::Document(change) if !change.contains("$setOnInsert") && !statement.update.is_replacement() => {
                match only_id(&statement.filter.source) {
                    // The server's shortest way: a plain value.
                    Some(id) if !matches!(id, Value::Document(_)) => {
                        writer.start_document("q").append("_id", &id).end();
                    }
                    _ => drop(writer.append_raw("q", kind::DOCUMENT, statement.filter.source.as_bytes())),
                }
                writer.start_document("u");
                for (name, value) in change.iter() {
                    writer.append(name.as_str(), &value);
                }
                writer.start_document("$setOnInsert").append("_id", &Value::MinKey).end().end();
            }
            // A range is no equality: the document that would be inserted has no `_id` yet, which the first stage finds fault with.
            Value::Array(stages) => {
                let id = only_id(&statement.filter.source)?;
                writer.start_document("q").start_document("_id").append("$gte", &id).append("$lte", &id).end().end();
                writer.start_array("u").append_raw_at(0, kind::DOCUMENT, has_id().as_bytes());
                for (at, stage) in stages.iter().enumerate() {
                    let Value::Document(stage) = stage else { return None };
                    writer.append_raw_at(at + 1, kind::DOCUMENT, stage.as_bytes());
                }
                writer.end();
            }
            _ => return None,
        }
        if let Some(constants) = &statement.update.constants {
            writer.append_raw("c", kind::DOCUMENT, constants.as_bytes());
        }
        writer.append("upsert", &Value::Bool(true));
        statements.push(writer.finish());
    }
    let command = Command::new(&update.ns.db, "update", Value::from(update.ns.collection.to_string()));
    Some(command.with("ordered", true).with_sequence("updates", statements))
}

/// The value of a filter that is `{ _id: { $eq: value } }`, as equalities are written.
fn only_id<'f>(filter: &'f Doc<'_>) -> Option<Value<'f>> {
    let mut fields = filter.iter();
    let (name, Value::Document(test)) = fields.next()? else { return None };
    let alone = name.as_str() == "_id" && fields.next().is_none() && test.iter().count() == 1;
    test.get("$eq").filter(|_| alone).map(Value::into_owned)
}

/// `{ $set: { _id: … } }`: the `_id` itself, or an error if there is none.
fn has_id() -> Doc<'static> {
    let mut stage = DocWriter::new();
    stage.start_document("$set").start_document("_id").start_array("$cond");
    stage.start_document_at(0).start_array("$eq");
    stage.start_document_at(0).append("$type", &Value::from("$_id")).end();
    stage.append_at(1, &Value::from("missing")).end().end();
    stage.start_document_at(1).start_document("$toInt").append("$type", &Value::from("$_id")).end().end();
    stage.append_at(2, &Value::from("$_id")).end().end().end();
    stage.finish()
}
