//! Who answers a message. What no rule concerns, on a backend that is a real MongoDB, is forwarded: the client's bytes go there,
//! the server's bytes come back.
//!
//! Of a message only what decides this is read: its name, its database, its target. Commands that are unknown here are forwarded too.

use crate::client::Client;
use crate::commands;
use crate::cursors::Cursors;
use crate::dispatch::Answer;
use crate::labels;
use crate::reply::{Form, Reply};
use crate::session::Role;
use crate::state::Server;
use bytes::Bytes;
use document::backend::{Class, Head, InFlight, Relay, Route};
use document::{Doc, Error, Value};
use std::borrow::Cow;
use std::sync::Arc;
use wire::message::flags;
use wire::{Header, Message, OpCode, encode};

/// Where the body of a reply begins: behind the header, the flags and the kind of the section.
const BODY: usize = Header::SIZE + 5;

/// A message that is forwarded.
pub(crate) struct Forwarding<'a> {
    request_id: i32,
    flags: u32,
    legacy: bool,
    body: Doc<'a>,
    class: Class,
    /// The command to send in place of the client's.
    rewritten: Option<Doc<'static>>,
    /// Until it is answered, what is forwarded does not change.
    in_flight: Option<Box<dyn InFlight>>,
}

/// The message, if it is to be forwarded; `None` if it is answered here.
pub(crate) fn forwarding<'a>(
    server: &Server,
    relay: &dyn Relay,
    header: &Header,
    frame: &'a Bytes,
) -> Option<Forwarding<'a>> {
    let legacy = header.op_code == OpCode::Query;
    let query;
    let (flags, body, legacy_db) = match legacy {
        false => {
            let (flags, body) = wire::message::peek(header, frame)?;
            (flags, Doc::trusted(body), None)
        }
        true => {
            query = wire::message::parse(header, frame).ok()?;
            let Message::Query(query) = &query else { return None };
            (0, Doc::trusted(query.query), Some(query.namespace.strip_suffix(".$cmd")?))
        }
    };
    let (name, target) = body.iter().next()?;
    let (name, db) = (name.as_str(), body.get("$db"));
    let db = match legacy_db {
        Some(db) => db,
        None => db.as_ref().and_then(Value::as_str)?,
    };
    if legacy && !commands::find(name).is_some_and(|command| command.by_query) {
        return None;
    }
    let class = commands::class(name);
    match class {
        // What this server is, and what Pleach adds, is answered here.
        Class::Hello | Class::Pleach => return None,
        Class::Authenticate if is_certificate(&body) => return None,
        _ => {}
    }
    let user = relay.user();
    let head = Head { name, class, db, target: target.as_str(), user: user.as_ref(), body: &body };
    let in_flight = server.backend.in_flight(&head);
    // Authentication lives in the client's own line, whatever the rules are.
    let is_forwarded = !has_cursor(&server.cursors, &head)
        && (class == Class::Authenticate || server.backend.route(&head) == Route::Forward);
    if !is_forwarded && let Some(in_flight) = &in_flight {
        // Whoever answers it here notes what it begins.
        in_flight.refused();
    }
    let rewritten = if is_forwarded && !legacy { server.backend.rewritten(&head) } else { None };
    // Old messages carry nothing of what is read from the body later.
    let body = match legacy {
        false => Doc::trusted(wire::message::peek(header, frame)?.1),
        true => Doc::empty(),
    };
    is_forwarded.then_some(Forwarding {
        request_id: header.request_id,
        flags,
        legacy,
        body,
        class,
        rewritten,
        in_flight,
    })
}

/// The sessions that the message ends. Returns `None` if it is not `endSessions`.
pub(crate) fn ended_sessions(header: &Header, frame: &Bytes) -> Option<Vec<[u8; 16]>> {
    let (_, body) = wire::message::peek(header, frame)?;
    match Doc::trusted(body).iter().next()? {
        (name, Value::Array(sessions)) if commands::class(name.as_str()) == Class::EndSessions => {
            document::raw::validate(body).ok()?;
            Some(sessions.iter().filter_map(|lsid| crate::request::session_id(name.as_str(), &lsid).ok()).collect())
        }
        _ => None,
    }
}

/// Whether a command is about a cursor that Pleach opened.
fn has_cursor(cursors: &Cursors, head: &Head<'_>) -> bool {
    match head.class {
        Class::GetMore => matches!(head.body.get(head.name), Some(Value::Int64(id)) if cursors.knows(id)),
        Class::KillCursors => match head.body.get("cursors") {
            Some(Value::Array(ids)) => ids.iter().any(|id| matches!(id, Value::Int64(id) if cursors.knows(id))),
            _ => false,
        },
        _ => false,
    }
}

/// Whether a reply ends the exchange of an authentication.
fn is_done(reply: &[u8]) -> bool {
    reply.get(BODY..).is_some_and(|body| Doc::trusted(body).get("done").is_some_and(|done| done.is_truthy()))
}

/// Whether the reply to a statement of a transaction is an error; other replies are not looked at.
fn is_refused(forwarding: &Forwarding<'_>, reply: &[u8]) -> bool {
    if forwarding.legacy || !forwarding.body.contains("autocommit") {
        return false;
    }
    reply.get(BODY..).is_some_and(|body| {
        let body = Doc::trusted(body);
        body.contains("writeErrors") || !body.get("ok").is_some_and(|ok| ok.is_truthy())
    })
}

/// Authentication by the certificate of the connection: ours is not the client's, so it cannot be relayed.
pub(crate) fn is_certificate(body: &Doc<'_>) -> bool {
    body.get("mechanism").is_some_and(|mechanism| mechanism.as_str() == Some("MONGODB-X509"))
}

/// Forwards the message and gives what came back; an error in MongoDB's form if nothing did.
pub(crate) async fn forward(
    server: &Arc<Server>,
    client: &Arc<Client>,
    relay: &dyn Relay,
    forwarding: &Forwarding<'_>,
    frame: &Bytes,
    mut buffer: Vec<u8>,
) -> Answer {
    let expects_reply = forwarding.legacy || forwarding.flags & flags::MORE_TO_COME == 0;
    if forwarding.class == Class::Authenticate {
        relay.authenticating();
    }
    let message = message(forwarding, frame);
    let result = relay.forward(&message, expects_reply, &mut buffer).await;
    if forwarding.class == Class::Authenticate && result.is_ok() && is_done(&buffer) {
        // Commands that are forwarded are counted by user too; where this fails, the next planned command asks again.
        let _unknown_for_now = relay.identify().await;
    }
    let close = relay.is_lost();
    if let Some(in_flight) = &forwarding.in_flight
        && result.is_ok()
        && is_refused(forwarding, &buffer)
    {
        in_flight.refused();
    }
    match result {
        Ok(()) => Answer { buffer, send: expects_reply, close },
        Err(error) => {
            tracing::debug!(connection = client.id, %error, "not forwarded");
            server.counters.user_errors.add(1);
            let buffer = failed(server, forwarding, &error, buffer);
            Answer { buffer, send: expects_reply, close }
        }
    }
}

fn message<'f>(forwarding: &Forwarding<'_>, frame: &'f Bytes) -> Cow<'f, [u8]> {
    let Some(body) = &forwarding.rewritten else { return without_exhaust(forwarding, frame) };
    let mut message = Vec::with_capacity(body.as_bytes().len() + Header::SIZE + 8);
    let start = encode::begin_msg(&mut message, forwarding.request_id, 0, forwarding.flags & !flags::EXHAUST_ALLOWED);
    message.extend_from_slice(body.as_bytes());
    encode::finish(&mut message, start);
    Cow::Owned(message)
}

/// A stream of replies is only allowed, never required: the client gets one reply per request.
fn without_exhaust<'f>(forwarding: &Forwarding<'_>, frame: &'f Bytes) -> Cow<'f, [u8]> {
    if forwarding.legacy || forwarding.flags & flags::EXHAUST_ALLOWED == 0 {
        return Cow::Borrowed(frame);
    }
    let mut message = frame.to_vec();
    if let Some(slot) = message.get_mut(Header::SIZE..Header::SIZE + 4) {
        slot.copy_from_slice(&(forwarding.flags & !flags::EXHAUST_ALLOWED).to_le_bytes());
    }
    if forwarding.flags & flags::CHECKSUM_PRESENT != 0 {
        message.truncate(message.len().saturating_sub(4));
        encode::finish(&mut message, 0);
    }
    Cow::Owned(message)
}

fn failed(server: &Server, forwarding: &Forwarding<'_>, error: &Error, buffer: Vec<u8>) -> Vec<u8> {
    let form = match forwarding.legacy {
        true => Form::Legacy,
        false => Form::Msg { checksum: forwarding.flags & flags::CHECKSUM_PRESENT != 0 },
    };
    let mut reply = Reply::begin(buffer, form, server.next_operation(), forwarding.request_id);
    reply.fail(error, &labels::of(error, role(&forwarding.body), forwarding.class.ends_transaction()));
    reply.finish(Some(server.backend.cluster_time()), server.gossip().as_ref())
}

/// How the command stands to its session, as far as labels depend on it.
fn role(body: &Doc<'_>) -> Role {
    match (body.get("txnNumber"), body.get("autocommit")) {
        (Some(Value::Int64(number)), Some(_)) => {
            Role::InTransaction { number, first: body.contains("startTransaction") }
        }
        (Some(Value::Int64(number)), None) => Role::Retryable { number },
        _ => Role::Plain,
    }
}
