//! From a message to its reply: the command is found, [prepared](prepare), run [in its session](in_session), and answered.

mod in_session;
mod prepare;

use crate::client::Client;
use crate::commands::{self, Command};
use crate::concern::WriteConcern;
use crate::cursors::Owner;
use crate::reply::{Form, Reply};
use crate::request::Request;
use crate::session::{Role, Visit};
use crate::state::Server;
use crate::{entitled, identity, labels, route};
use bytes::Bytes;
use document::backend::{Restoring, Session};
use document::op::{Context, ReadConcern, Sent};
use document::{Code, Doc, Env, Error, Result, Text, Value};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use wire::{Header, Message, OpCode};

/// What a running command has at hand.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) client: &'a Arc<Client>,
    pub(crate) request: &'a Request<'a>,
    pub(crate) command: &'static Command,
    pub(crate) role: Role,
    pub(crate) session: Session,
    pub(crate) visit: Option<Visit>,
    pub(crate) context: Context,
    pub(crate) concern: WriteConcern,
    pub(crate) reply: Reply,
    /// Set by a command whose reply is no error although a statement in it failed: that ends a transaction too.
    pub(crate) statement_failed: bool,
    /// Set by a read whose collection was renamed or dropped before its first batch: nothing was answered, so it may begin anew.
    pub(crate) source_moved: bool,
}

impl Call<'_> {
    pub(crate) fn db(&self) -> &str {
        self.request.db.as_str()
    }

    /// What a cursor that the command opens belongs to.
    pub(crate) fn owner(&self) -> Owner {
        let user = self.client.relay.as_ref().and_then(|relay| relay.user());
        Owner { user, session: self.session.id, transaction: self.transaction() }
    }

    /// The transaction that the command is part of.
    pub(crate) fn transaction(&self) -> Option<i64> {
        match self.role {
            Role::InTransaction { number, .. } => Some(number),
            Role::Plain | Role::Retryable { .. } => None,
        }
    }
}

/// The bytes to send, and whether the connection goes on.
pub(crate) struct Answer {
    pub(crate) buffer: Vec<u8>,
    pub(crate) send: bool,
    pub(crate) close: bool,
}

/// Answers one message. The reply is written into `buffer`, which is empty.
pub(crate) async fn answer(
    server: &Arc<Server>,
    client: &Arc<Client>,
    header: &Header,
    frame: &Bytes,
    buffer: Vec<u8>,
) -> Answer {
    let _restoring = client.restorer().and_then(|_| server.backend.restoring(Restoring::Asks));
    if client.restorer().is_some()
        && let Some(sessions) = route::ended_sessions(header, frame)
        // The last that such a client sends: it is answered when all that it restored is as it should be.
        && let Err(error) = server.backend.restored(&sessions).await
    {
        tracing::warn!(%error, "after a restore");
    }
    if let Some(relay) = &client.relay
        && let Some(forwarding) = route::forwarding(server, &**relay, header, frame)
    {
        return route::forward(server, client, &**relay, &forwarding, frame, buffer).await;
    }
    let begin = |buffer, form| Reply::begin(buffer, form, server.next_operation(), header.request_id);
    let plain = Form::Msg { checksum: false };
    if header.op_code == OpCode::Reply {
        return Answer { buffer, send: false, close: true };
    }
    match wire::message::parse(header, frame) {
        Ok(Message::Msg(msg)) => {
            let checksum = msg.flags & wire::message::flags::CHECKSUM_PRESENT != 0;
            let mut reply = begin(buffer, Form::Msg { checksum });
            let parsed = validate(msg.body)
                .and_then(|body| {
                    msg.sequences.iter().flat_map(|sequence| sequence.iter()).try_for_each(document::raw::validate)?;
                    Ok(body)
                })
                .and_then(|body| Request::parse(body, &msg.sequences, frame))
                .map(|request| request.collating(server.backend.facts().collates));
            match &parsed {
                Ok(request) => reply = serve(server, client, request, reply).await,
                Err(error) => reply.fail(error, &[]),
            }
            finish(server, reply, !msg.more_to_come())
        }
        Ok(Message::Query(query)) => {
            let mut reply = begin(buffer, Form::Legacy);
            match legacy(&query, frame) {
                Ok(request) => reply = serve(server, client, &request, reply).await,
                Err(error) => reply.fail(&error, &[]),
            }
            finish(server, reply, true)
        }
        Ok(Message::GetMore) => {
            let mut reply = begin(buffer, Form::Legacy);
            reply.append_text("$err", "OP_GET_MORE is no longer supported. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal");
            reply.append("code", 5_739_101).append("ok", 0.0);
            Answer { buffer: reply.finish(None, None), send: true, close: false }
        }
        Ok(Message::Reply(_)) => Answer { buffer, send: false, close: true },
        Err(error) => match error.code() {
            Some(code) => {
                let mut reply = begin(buffer, plain);
                reply.fail(&Error::new(Code::from_number(code), error.to_string()), &[]);
                finish(server, reply, true)
            }
            None => {
                tracing::debug!(connection = client.id, %error, "closing connection");
                Answer { buffer, send: false, close: true }
            }
        },
    }
}

fn validate(bytes: &[u8]) -> Result<Doc<'_>> {
    document::raw::validate(bytes)?;
    Ok(Doc::trusted(bytes))
}

fn finish(server: &Server, reply: Reply, send: bool) -> Answer {
    let gossip = server.gossip();
    Answer { buffer: reply.finish(Some(server.backend.cluster_time()), gossip.as_ref()), send, close: false }
}

fn legacy<'a>(query: &wire::Query<'a>, frame: &'a Bytes) -> Result<Request<'a>> {
    let Some(db) = query.namespace.strip_suffix(".$cmd") else {
        return Err(Error::new(
            Code::Location(5_739_101),
            "OP_QUERY is no longer supported. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal",
        ));
    };
    if !matches!(query.to_return, 1 | -1) {
        return Err(Error::new(
            Code::Location(16979),
            format!("Bad numberToReturn ({}) for $cmd type ns - can only be 1 or -1", query.to_return),
        ));
    }
    let mut body = validate(query.query)?;
    if let Some((name, Value::Document(inner))) = body.iter().next()
        && matches!(name.as_str(), "$query" | "query")
    {
        body = inner;
    }
    let request = Request::parse_in(Text::borrowed(db), body, frame)?;
    if !commands::find(request.name.as_str()).is_some_and(|command| command.by_query) {
        return Err(Error::new(
            Code::UnsupportedOpQueryCommand,
            format!(
                "Unsupported OP_QUERY command: {}. The client driver may require an upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal",
                request.name
            ),
        ));
    }
    Ok(request)
}

/// Runs one command and completes its reply.
async fn serve<'a>(server: &'a Arc<Server>, client: &'a Arc<Client>, request: &'a Request<'a>, reply: Reply) -> Reply {
    let Some(command) = commands::find(request.name.as_str()) else {
        let mut reply = reply;
        server.counters.commands.add(1);
        server.counters.user_errors.add(1);
        reply.fail(&commands::unknown(request.name.as_str()), &[]);
        return reply;
    };
    let operation = &client.operation;
    let collection = request.target.as_str().unwrap_or_default();
    let command_name = command.names.first().copied().unwrap_or_default();
    let session = request.generic.session;
    operation.start(server.next_operation(), command_name, request.db.as_str(), collection, session);
    let mut call = Call {
        server,
        client,
        request,
        command,
        role: Role::Plain,
        session: Session {
            id: request.generic.session,
            relay: client.relay.clone(),
            restorer: client.restorer().cloned(),
            ..Session::default()
        },
        visit: None,
        context: Context {
            env: Env {
                now: identity::milliseconds(),
                cluster_time: server.backend.cluster_time(),
                new_id: identity::object_id,
                random: identity::fraction,
                variables: Vec::new(),
                interrupt: client.interrupt.clone(),
                memory_limit: server.options.stage_memory,
                spill: None,
                examined: Some(client.examined.clone()),
            },
            read_concern: ReadConcern::default(),
            durability: document::op::Durability::default(),
            deadline: None,
            sent: sent(client, request),
        },
        concern: WriteConcern::default(),
        reply,
        statement_failed: false,
        source_moved: false,
    };
    let result = match prepare::prepare(&mut call) {
        Ok(()) => in_session::run_in_session(&mut call).await,
        Err(error) => Err(error),
    };
    let result = match result {
        Err(error) => Err(entitled::or_unauthorized(server, client, command, request, error).await),
        done => done,
    };
    operation.finish();
    let Call { mut reply, role, concern, session, context, .. } = call;
    let unsatisfied = context.sent.unsatisfied.as_ref().and_then(|told| told.lock().ok()?.take());
    match result {
        Ok(()) => {
            if let Some(error) = concern.error.as_ref().or(session.concern_error.as_ref()).or(unsatisfied.as_ref()) {
                reply.append_concern_error(error);
            }
            reply.succeed();
        }
        Err(error) => {
            server.counters.user_errors.add(1);
            tracing::debug!(connection = client.id, command = command_name, %error, "command failed");
            reply.fail(&error, &labels::of(&error, role, command.ends_transaction));
        }
    }
    reply
}

/// What is sent to a backend that is a real MongoDB again; a layer that compiles a part of the command anew needs its `let`.
fn sent(client: &Client, request: &Request<'_>) -> Sent {
    let document = |value: Option<&Value<'_>>| match value {
        Some(Value::Document(doc)) => Some(doc.clone().into_owned()),
        _ => None,
    };
    if client.relay.is_none() {
        return Sent { variables: document(request.body.get("let").as_ref()), ..Sent::default() };
    }
    Sent {
        write_concern: document(request.generic.write_concern.as_ref()),
        read_concern: document(request.generic.read_concern.as_ref()),
        variables: document(request.body.get("let").as_ref()),
        unsatisfied: Some(Arc::default()),
        expiry: false,
        makes_room: false,
        read_at: Some(Arc::default()),
    }
}

/// A read whose collection moves before its first batch is begun so many times.
const READ_ATTEMPTS: u32 = 5;

/// Runs the command; a read again if its collection was renamed meanwhile, as a change of rules does. In a transaction the
/// catalog does not change.
async fn run(call: &mut Call<'_>) -> Result<()> {
    for _ in 1..READ_ATTEMPTS {
        let result = run_once(call).await;
        if !std::mem::take(&mut call.source_moved) || call.session.transaction.is_some() {
            return result;
        }
    }
    run_once(call).await
}

/// Runs the command itself. A panic in it is an error of this command, not the end of the connection.
async fn run_once(call: &mut Call<'_>) -> Result<()> {
    let (run, connection) = (call.command.run, call.client.id);
    let name = call.command.names.first().copied().unwrap_or_default();
    match AssertUnwindSafe(run(call)).catch_unwind().await {
        Ok(result) => result,
        Err(_) => {
            tracing::error!(connection, command = name, "a command panicked");
            Err(Error::new(
                Code::InternalError,
                format!("the command '{name}' met a fault in this server; nothing else is affected"),
            ))
        }
    }
}
