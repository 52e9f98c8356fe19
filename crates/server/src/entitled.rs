//! Whether a client may send a command at all (SEMANTICS R37). Asked before anything else about the command is checked: where a
//! rule concerns a collection, Pleach parses what MongoDB would refuse unread, and its errors would tell where rules are.

use crate::client::Client;
use crate::commands::{self, Access, Command};
use crate::request::Request;
use crate::state::Server;
use document::backend::{Class, Privileges};
use document::op::Namespace;
use document::{Code, Doc, Error, Result, Value};

/// The error, or MongoDB's for a client that may not send the command: it learns of nothing else.
pub(crate) async fn or_unauthorized(
    server: &Server,
    client: &Client,
    command: &Command,
    request: &Request<'_>,
    error: Error,
) -> Error {
    // What is to be tried again was sent, and so it was allowed.
    let is_decided = error.code() == Code::Unauthorized || !error.labels().is_empty();
    match is_decided {
        true => error,
        false => match check(server, client, command, request).await {
            Err(unauthorized) if comes_first(command, &unauthorized, &error) => unauthorized,
            _ => error,
        },
    }
}

/// Whether MongoDB looks at rights before it finds the error. Some commands it reads first, and some of them with all that they hold.
/// A client that has not authenticated learns nothing.
fn comes_first(command: &Command, unauthorized: &Error, error: &Error) -> bool {
    let is_malformed = matches!(error.code().number(), 14 | 16 | 40414 | 40415);
    match command.class {
        // Whoever authenticates has no rights yet.
        Class::Authenticate => false,
        _ if unauthorized.message().ends_with("requires authentication") => true,
        Class::Aggregate | Class::Insert | Class::Update | Class::Delete => false,
        Class::FindAndModify | Class::Create | Class::CreateIndexes | Class::DropIndexes => !is_malformed,
        _ => true,
    }
}

/// Fails with MongoDB's error if the client may not send the command. Commands that are about no collection pass.
pub(crate) async fn check(server: &Server, client: &Client, command: &Command, request: &Request<'_>) -> Result<()> {
    let Some(relay) = client.relay.as_ref().filter(|_| command.access != Access::Server) else { return Ok(()) };
    let Some(remote) = server.backend.remote() else { return Ok(()) };
    let Some(privileges) = remote.privileges(Some(relay)).await? else { return Ok(()) };
    let (name, db) = (command.names.first().copied().unwrap_or_default(), request.db.as_str());
    if privileges.is_anonymous() {
        return Err(Error::new(Code::Unauthorized, format!("command {name} requires authentication")));
    }
    let meant = server.backend.database(db);
    if is_entitled(&privileges, meant.as_deref().unwrap_or(db), &request.body) {
        return Ok(());
    }
    let target = document::value::show::element(&request.target);
    Err(Error::new(Code::Unauthorized, format!("not authorized on {db} to execute command {{ {name}: {target} }}")))
}

/// Whether the privileges allow the command on its collection; true for commands that are about none.
fn is_entitled(privileges: &Privileges, db: &str, body: &Doc<'_>) -> bool {
    let Some((name, target)) = body.iter().next() else { return true };
    let class = commands::class(name.as_str());
    if let (Class::Explain, Value::Document(inner)) = (class, &target) {
        return is_entitled(privileges, db, inner);
    }
    let is_set = |field: &str| body.get(field).is_some_and(|value| value.is_truthy());
    let actions: &[&str] = match class {
        Class::Find | Class::Count | Class::Distinct | Class::Aggregate => &["find"],
        Class::Insert => &["insert"],
        Class::Update => &["update"],
        Class::Delete => &["remove"],
        Class::FindAndModify if is_set("remove") => &["find", "remove"],
        Class::FindAndModify => &["find", "update"],
        Class::CollMod => &["collMod"],
        // Whoever may insert may create too.
        Class::Create => &["insert"],
        Class::CreateIndexes => &["createIndex"],
        Class::Drop => &["dropCollection"],
        Class::DropIndexes => &["dropIndex"],
        Class::ListIndexes => &["listIndexes"],
        _ => return true,
    };
    let Some(collection) = target.as_str() else { return true };
    let ns = Namespace::new(db, collection);
    let creates = class == Class::Create && privileges.allows("createCollection", &ns);
    creates || actions.iter().all(|action| privileges.allows(action, &ns))
}
