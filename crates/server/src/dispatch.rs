//! From a message to its reply: find the command, its session, its concerns; run it; keep or end its transaction.

use crate::client::Client;
use crate::commands::{self, Access, Command, InTransaction};
use crate::concern::{Reading, WriteConcern, time_limit};
use crate::cursors::Owner;
use crate::params::Param;
use crate::reply::{Form, Reply};
use crate::request::Request;
use crate::session::{Role, Visit};
use crate::state::Server;
use crate::{entitled, identity, labels, namespace, route};
use bytes::Bytes;
use document::backend::{Class, Joined, Restoring, Session};
use document::op::{Context, ReadConcern, Sent};
use document::{Code, Doc, Env, Error, Result, Text, Value};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
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
    let result = match prepare(&mut call) {
        Ok(()) => run_in_session(&mut call).await,
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

/// Everything that can be refused before the command runs or its session is looked at.
fn prepare(call: &mut Call<'_>) -> Result<()> {
    let (request, command) = (call.request, call.command);
    let generic = &request.generic;
    let name = command.names.first().copied().unwrap_or_default();
    namespace::check_database(request.db.as_str())?;
    check_api(call)?;
    call.role = Role::of(generic, command)?;
    if command.admin_only && request.db.as_str() != "admin" {
        return Err(Error::new(
            Code::Unauthorized,
            format!("{} may only be run against the admin database.", request.name),
        ));
    }
    if let Role::InTransaction { first, .. } = call.role {
        check_in_transaction(command, name, first)?;
        if !command.ends_transaction {
            check_place_in_transaction(request)?;
        }
    }
    if command.class == Class::Aggregate
        && let Some(value) = &generic.max_time_ms
        && value.is_number()
    {
        Param::new(command.structure, Text::borrowed("maxTimeMS"), value.clone()).count()?;
    }
    if let Some(limit) = time_limit(generic.max_time_ms.as_ref())? {
        let deadline = Instant::now() + limit;
        call.context.deadline = Some(deadline);
        call.client.operation.set_deadline(deadline);
    }
    // The server behind has its own clock, and gets what the client asks for.
    let now = call.client.relay.is_none().then_some(call.context.env.cluster_time);
    let reading = Reading::parse(generic.read_concern.as_ref(), now)?;
    check_read_concern(call.role, command, reading)?;
    call.context.read_concern = reading.level.unwrap_or_default();
    if generic.write_concern.is_some() {
        if matches!(call.role, Role::InTransaction { .. }) && !command.ends_transaction {
            return Err(Error::new(
                Code::InvalidOptions,
                "writeConcern is not allowed within a multi-statement transaction",
            ));
        }
        if !command.takes_write_concern {
            return Err(Error::new(Code::InvalidOptions, "Command does not support writeConcern"));
        }
        call.concern = WriteConcern::parse(generic.write_concern.as_ref())?;
        if call.client.relay.is_some() {
            // How many nodes there are is known behind.
            call.concern.error = None;
        }
        call.context.durability = call.concern.durability;
    }
    request.check_duplicates(command.structure)?;
    if !command.takes_sequences {
        request.check_sequences(command.structure, None)?;
    }
    Ok(())
}

fn check_in_transaction(command: &Command, name: &str, first: bool) -> Result<()> {
    let refused = |message: String| Err(Error::new(Code::OperationNotSupportedInTransaction, message));
    match command.in_transaction {
        InTransaction::Allowed => Ok(()),
        InTransaction::NotFirst if !first => Ok(()),
        InTransaction::NotFirst => {
            refused(format!("Cannot run {name} as the first operation in a multi-document transaction."))
        }
        InTransaction::Outside => refused("This command is not supported in transactions".into()),
        InTransaction::Refused("") => refused(format!("Cannot run '{name}' in a multi-document transaction.")),
        InTransaction::Refused(more) => refused(format!("Cannot run '{name}' in a multi-document transaction. {more}")),
    }
}

/// Databases and collections that no transaction may touch.
fn check_place_in_transaction(request: &Request<'_>) -> Result<()> {
    let db = request.db.as_str();
    let where_ = match (db, request.target.as_str()) {
        ("config", _) => "config database".to_owned(),
        ("local", _) => "'local' database".to_owned(),
        (_, Some("system.profile")) => format!("'{db}.system.profile' collection"),
        _ => return Ok(()),
    };
    Err(Error::new(
        Code::OperationNotSupportedInTransaction,
        format!("Cannot run command against the {where_} in a transaction."),
    ))
}

fn check_read_concern(role: Role, command: &Command, reading: Reading) -> Result<()> {
    let invalid = |message: String| Err(Error::new(Code::InvalidOptions, message));
    match role {
        Role::InTransaction { first: false, .. } if reading.given => {
            invalid("Only the first command in a transaction may specify a readConcern".into())
        }
        Role::InTransaction { .. } => match reading.level {
            Some(ReadConcern::Linearizable | ReadConcern::Available) => invalid(
                "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction"
                    .into(),
            ),
            _ => Ok(()),
        },
        _ => match reading.level {
            None | Some(ReadConcern::Local) => Ok(()),
            Some(_) if command.takes_read_concern => Ok(()),
            Some(level) => invalid(format!(
                "Command {} does not support {{ readConcern: {{ level: \"{}\", provenance: \"clientSupplied\" }} }} :: caused by :: read concern not supported",
                command.names.first().copied().unwrap_or_default(),
                format!("{level:?}").to_lowercase()
            )),
        },
    }
}

fn check_api(call: &Call<'_>) -> Result<()> {
    let generic = &call.request.generic;
    let Some(version) = &generic.api_version else {
        return match generic.api_strict || generic.api_deprecation_errors {
            true => Err(Error::new(
                Code::Location(4_886_600),
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            )),
            false => Ok(()),
        };
    };
    match version {
        Value::String(text) if text.as_str() == "1" => {}
        Value::String(text) => {
            return Err(Error::new(Code::APIVersionError, format!("Cannot accept API version {text}")));
        }
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'APIParametersFromClient.apiVersion' is the wrong type '{}', expected type 'string'",
                other.type_name()
            )));
        }
    }
    if generic.api_strict && !call.command.in_api_version_1 {
        return Err(Error::new(
            Code::APIStrictError,
            format!(
                "Provided apiStrict:true, but the command {} is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api",
                call.request.name
            ),
        ));
    }
    Ok(())
}

/// Runs the command as a plain one, as a retryable write, or as a part of a transaction.
async fn run_in_session(call: &mut Call<'_>) -> Result<()> {
    if let Some(relay) = &call.client.relay
        && call.command.access != Access::Server
    {
        // What is remembered for a client serves only its user (SEMANTICS R37).
        relay.identify().await?;
    }
    let Some(session) = call.session.id else { return run(call).await };
    match call.role {
        Role::Plain => run(call).await,
        Role::Retryable { number } => {
            let mut visit = call.server.sessions.visit(&session, call.owner().user).await?;
            let ended = visit.retryable(&session, number)?;
            forget_transaction(call.server, &session, ended);
            call.session.retry = Some(number);
            // Kept until the end: an attempt and its retry do not overlap.
            call.visit = Some(visit);
            run(call).await
        }
        Role::InTransaction { number, first } if call.client.relay.is_some() => run_joined(call, number, first).await,
        Role::InTransaction { number, first } => run_in_transaction(call, session, number, first).await,
    }
}

async fn run_in_transaction(call: &mut Call<'_>, session: [u8; 16], number: i64, first: bool) -> Result<()> {
    let server = call.server;
    let mut visit = server.sessions.visit(&session, None).await?;
    if !first && visit.is_fresh() && server.backend.committed(&session, number) {
        visit.recall_commit(number);
    }
    if first {
        let ends = Instant::now() + server.options.transaction_lifetime;
        let ended = visit.start(&session, number, ends)?;
        forget_transaction(server, &session, ended);
        server.counters.transactions_started.add(1);
        call.client.operation.set_transaction_end(ends);
        call.session.number = Some(number);
        if let Err(error) = server.backend.begin(&mut call.session, &call.context).await {
            visit.abort();
            return Err(error);
        }
    } else if !(call.command.ends_transaction && visit.is_committed(number)) {
        let ends = visit.resume(&session, number, &mut call.session)?;
        call.client.operation.set_transaction_end(ends);
    } else if call.command.class == Class::AbortTransaction {
        visit.resume(&session, number, &mut call.session)?;
    }
    call.visit = Some(visit);
    let result = run(call).await;
    let Some(visit) = call.visit.as_mut() else { return result };
    if call.command.ends_transaction {
        server.cursors.end_of_transaction(&session, number);
    } else if result.is_ok() && !call.statement_failed {
        visit.keep(&mut call.session);
    } else {
        if let Some(transaction) = call.session.transaction.take() {
            transaction.abort();
        }
        visit.abort();
        forget_transaction(server, &session, Some(number));
    }
    result
}

/// A statement of a transaction that lives in the server behind: what is done here is done in it, under its number.
async fn run_joined(call: &mut Call<'_>, number: i64, first: bool) -> Result<()> {
    call.session.joined = Some(Joined { number, first });
    call.server.backend.begin(&mut call.session, &call.context).await?;
    let result = run(call).await;
    if let Some(transaction) = call.session.transaction.take()
        && (result.is_err() || call.statement_failed)
    {
        transaction.abort();
    }
    result
}

/// After a transaction was ended from outside.
fn forget_transaction(server: &Server, session: &[u8; 16], number: Option<i64>) {
    if let Some(number) = number {
        server.counters.transactions_aborted.add(1);
        server.cursors.end_of_transaction(session, number);
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
