//! Commands about indexes of a collection that a rule reads, in front of a real MongoDB: their expiry is ours (SEMANTICS R7), and
//! clients see nothing of that.

use crate::execute::access::Access;
use crate::front::ClientFront;
use crate::life::expiry;
use crate::life::expiry::{Expiry, can_expire, seconds};
use document::backend::Session;
use document::op::{AdminOp, Context, Namespace};
use document::value::show;
use document::{Code, Doc, DocWriter, Error, Result, Value};

const FIELD: &str = "expireAfterSeconds";

/// Runs a command about indexes so that nothing expires behind the rules' back; `None` if it is none.
pub(super) async fn run(
    front: &ClientFront,
    session: &mut Session,
    context: &Context,
    op: &AdminOp,
) -> Result<Option<Vec<Doc<'static>>>> {
    let (AdminOp::CreateIndexes { ns, .. }
    | AdminOp::CollMod { ns, .. }
    | AdminOp::DropIndexes { ns, .. }
    | AdminOp::Drop { ns }
    | AdminOp::ListIndexes { ns }) = op
    else {
        return Ok(None);
    };
    let (executor, life) = (front.executor(), &front.life);
    if !executor.inner.facts().own_expiry {
        return Ok(None);
    }
    let known = life.expiries().iter().any(|row| row.ns == *ns);
    if !known && !executor.rules().reads(ns.by_ref()) {
        return Ok(None);
    }
    let (mut own, own_context) = (Session::default(), life.context());
    let mut at = Access { backend: &*executor.inner, session: &mut own, context: &own_context };
    let answer = match op {
        AdminOp::CreateIndexes { indexes, .. } => create(&mut at, session, context, ns, indexes).await?,
        AdminOp::CollMod { change, .. } => match modify(&mut at, session, context, ns, change).await? {
            Some(answer) => answer,
            None => return Ok(None),
        },
        AdminOp::ListIndexes { .. } => {
            let listed = executor.inner.admin(session, context, op.clone()).await?;
            let rows = life.expiries();
            return Ok(Some(listed.iter().map(|index| shown(index, &rows, ns)).collect()));
        }
        _ => {
            let answer = executor.inner.admin(session, context, op.clone()).await?;
            // What a restore drops comes back, and the dump's own rows may be here before its indexes.
            if !session.restores() {
                expiry::forget_gone(&mut at, ns).await?;
            }
            answer
        }
    };
    life.note_expiries(&mut at, &ns.db).await?;
    Ok(Some(answer))
}

/// An index as the client made it.
fn shown(index: &Doc<'static>, rows: &[Expiry], ns: &Namespace) -> Doc<'static> {
    match rows.iter().find(|row| row.ns == *ns && row.is_of(index)) {
        Some(row) => with(index, Some(&short(row.after))),
        None => index.clone(),
    }
}

/// The document with another expiry, or with none.
fn with(index: &Doc<'_>, after: Option<&Value<'_>>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(index.as_bytes().len() + 32);
    for (name, value) in index.iter().filter(|(name, _)| name.as_str() != FIELD) {
        writer.append(name.as_str(), &value);
    }
    if let Some(after) = after {
        writer.append(FIELD, after);
    }
    writer.finish()
}

async fn create(
    at: &mut Access<'_>,
    session: &mut Session,
    context: &Context,
    ns: &Namespace,
    indexes: &[Doc<'static>],
) -> Result<Vec<Doc<'static>>> {
    let there = expiry::indexes(at, ns).await?;
    let rows = expiry::rows(at, &ns.db).await?;
    let (mut specs, mut new) = (Vec::with_capacity(indexes.len()), Vec::new());
    for spec in indexes {
        let same_name = there.iter().find(|index| index.get("name") == spec.get("name"));
        let row = same_name.and_then(|index| rows.iter().find(|row| row.ns == *ns && row.is_of(index)));
        match (same_name, row, Expiry::of(ns, spec)) {
            (Some(index), Some(row), asked) => {
                if asked.map(|asked| asked.after) != Some(row.after) {
                    return Err(Error::new(
                        Code::IndexOptionsConflict,
                        format!(
                            "An equivalent index already exists with the same name but different options. Requested index: {}, existing index: {}",
                            show::document(&versioned(spec)),
                            show::document(&shown(index, &rows, ns))
                        ),
                    ));
                }
                // All else is compared by the server itself.
                specs.push(with(spec, index.get(FIELD).as_ref()));
            }
            (None, _, Some(expiry)) => {
                // A dump that was made beneath Pleach has it put off, and the true one in its catalog.
                let is_known = rows.iter().any(|row| row.ns == *ns && row.is_of(spec));
                if !(expiry.is_put_off() && is_known) {
                    new.push(expiry);
                }
                specs.push(with(spec, None));
            }
            _ => specs.push(spec.clone()),
        }
    }
    if !new.is_empty() && session.transaction.is_some() {
        return Err(Error::new(
            Code::OperationNotSupportedInTransaction,
            format!("an index with {FIELD} on '{ns}' cannot be made in a transaction: a rule reads the collection"),
        )
        .with_hint("make the index before the transaction"));
    }
    let op = AdminOp::CreateIndexes { ns: ns.clone(), indexes: specs };
    let answer = at.backend.admin(session, context, op).await?;
    for expiry in &new {
        expiry.save(at).await?;
    }
    Ok(answer)
}

/// `collMod` of an index's expiry; `None` if it is about something else, or wrong: the server says what.
async fn modify(
    at: &mut Access<'_>,
    session: &mut Session,
    context: &Context,
    ns: &Namespace,
    change: &Doc<'static>,
) -> Result<Option<Vec<Doc<'static>>>> {
    let Some(Value::Document(asked)) = change.get("index") else { return Ok(None) };
    let Some(after) = asked.get(FIELD).as_ref().and_then(seconds) else { return Ok(None) };
    let there = expiry::indexes(at, ns).await?;
    let is_meant = |index: &&Doc<'static>| match (asked.get("name"), asked.get("keyPattern")) {
        (Some(name), _) => index.get("name").as_ref() == Some(&name),
        (None, Some(keys)) => index.get("key").as_ref() == Some(&keys),
        (None, None) => false,
    };
    let Some(index) = there.iter().find(is_meant).filter(|index| can_expire(index)) else { return Ok(None) };
    let rows = expiry::rows(at, &ns.db).await?;
    let before = rows.iter().find(|row| row.ns == *ns && row.is_of(index)).cloned();
    let live = Expiry::live(ns, index);
    let Some(now) = Expiry::of(ns, &with(index, Some(&Value::Int64(after)))) else { return Ok(None) };
    // Something must be left for the server to say whether the client may do this.
    let mut rest = DocWriter::new();
    for (name, value) in with(&asked, None).iter() {
        rest.append(name.as_str(), &value);
    }
    if !["hidden", "unique", "prepareUnique"].iter().any(|name| asked.contains(name)) {
        rest.append("hidden", &Value::Bool(index.get("hidden").is_some_and(|hidden| hidden.is_truthy())));
    }
    let rest = rest.finish();
    let mut changed = DocWriter::new();
    for (name, value) in change.iter() {
        match name.as_str() {
            "index" => changed.append("index", &Value::Document(rest.borrow())),
            other => changed.append(other, &value),
        };
    }
    let op = AdminOp::CollMod { ns: ns.clone(), change: changed.finish() };
    let answer = at.backend.admin(session, context, op).await?;
    match live {
        Some(_) => now.take_over(at).await?,
        None => now.save(at).await?,
    }
    let mut told = DocWriter::new();
    if let Some(before) = before.or(live) {
        told.append("expireAfterSeconds_old", &Value::Int64(before.after));
    }
    told.append("expireAfterSeconds_new", &Value::Int64(after));
    for (name, value) in answer.iter().flat_map(Doc::iter) {
        told.append(name.as_str(), &value);
    }
    Ok(Some(vec![told.finish()]))
}

/// As drivers send it.
fn short(seconds: i64) -> Value<'static> {
    i32::try_from(seconds).map_or(Value::Int64(seconds), Value::Int32)
}

/// With the version that the server adds.
fn versioned(spec: &Doc<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("v", &spec.get("v").unwrap_or(Value::Int32(2)));
    for (name, value) in spec.iter().filter(|(name, _)| name.as_str() != "v") {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}
