//! `hello` and `isMaster`: the server as drivers see it.
//!
//! It presents itself as a mongos: drivers then use sessions, transactions and retryable writes, and ask for no other hosts.
//! In front of a real MongoDB it answers from what is known of that; without a primary there it fails, so that drivers wait.

use super::Command;
use crate::dispatch::Call;
use crate::identity;
use crate::route::is_certificate;
use document::backend::{Class, Front, Relay};
use document::{Doc, DocWriter, Result, Value};
use wire::limits::{MAX_BATCH, MAX_DOCUMENT, MAX_MESSAGE};

pub(crate) const COMMAND: Command = Command {
    names: &["hello"],
    help: "Tells a client what the server is and what its limits are.",
    structure: "hello",
    class: Class::Hello,
    by_query: true,
    in_api_version_1: true,
    run: |call| Box::pin(run(call, "isWritablePrimary")),
    ..Command::SERVER
};

pub(crate) const IS_MASTER: Command = Command {
    names: &["isMaster", "ismaster"],
    help: "As hello, for older clients.",
    structure: "isMaster",
    class: Class::Hello,
    by_query: true,
    run: |call| Box::pin(run(call, "ismaster")),
    ..Command::SERVER
};

/// What a client says about itself is kept up to this size.
const MAX_METADATA: usize = 4096;

async fn run(call: &mut Call<'_>, primary: &str) -> Result<()> {
    call.server.counters.commands.add(1);
    // Drivers of all ages add what they can do (compression, authentication, load balancing); what is not there is not answered.
    let mut hello_ok = false;
    for param in call.request.params("hello") {
        match param.name() {
            "helloOk" => hello_ok = param.value.is_truthy(),
            "client" => {
                if let Value::Document(metadata) = param.value
                    && metadata.as_bytes().len() <= MAX_METADATA
                {
                    call.client.introduce(metadata, &*call.server.backend);
                }
            }
            _ => {}
        }
    }
    let minutes = call.server.options.session_timeout.as_secs() / 60;
    let mut minutes = i32::try_from(minutes).unwrap_or(i32::MAX);
    let mut wire_version = wire_version(&call.server.options.version);
    let mut authentication = None;
    if let Some(relay) = &call.client.relay {
        let standing = relay.standing()?;
        minutes = standing.session_minutes;
        wire_version = wire_version.min(standing.max_wire_version);
        if let Some(metadata) = &*call.client.metadata.lock() {
            relay.introduce(metadata);
        }
        authentication = authenticate(&*call.server.backend, &**relay, &call.request.body).await?;
    }
    let reply = &mut call.reply;
    if hello_ok {
        reply.append("helloOk", true);
    }
    reply.append(primary, true).append_text("msg", "isdbgrid");
    reply.append("maxBsonObjectSize", int(MAX_DOCUMENT));
    reply.append("maxMessageSizeBytes", int(MAX_MESSAGE)).append("maxWriteBatchSize", int(MAX_BATCH));
    reply.append("localTime", Value::DateTime(identity::milliseconds()));
    reply.append("logicalSessionTimeoutMinutes", minutes);
    reply.append("connectionId", call.client.id);
    reply.append("minWireVersion", 0).append("maxWireVersion", wire_version);
    reply.append("readOnly", false);
    // Drivers ignore it; our own tools tell a Pleach from a MongoDB by it.
    reply.append_text("pleach", env!("CARGO_PKG_VERSION"));
    for name in ["saslSupportedMechs", "speculativeAuthenticate"] {
        if let Some(value) = authentication.as_ref().and_then(|told: &Doc<'static>| told.get(name)) {
            reply.append(name, value);
        }
    }
    Ok(())
}

/// What a client asks about authentication is asked where its users are, on its own line. Others open no line.
async fn authenticate(backend: &dyn Front, relay: &dyn Relay, body: &Doc<'_>) -> Result<Option<Doc<'static>>> {
    let mechanisms = body.get("saslSupportedMechs");
    let speculative = match body.get("speculativeAuthenticate") {
        Some(Value::Document(attempt)) if !is_certificate(&attempt) => Some(attempt),
        _ => None,
    };
    if mechanisms.is_none() && speculative.is_none() {
        return Ok(None);
    }
    let mut hello = DocWriter::new();
    hello.append("hello", &Value::Int32(1));
    if let Some(mechanisms) = mechanisms {
        hello.append("saslSupportedMechs", &of_database(backend, mechanisms));
    }
    if let Some(attempt) = speculative {
        relay.authenticating();
        let mut sent = DocWriter::with_capacity(attempt.as_bytes().len());
        for (name, value) in attempt.iter() {
            let meant = value.as_str().filter(|_| name.as_str() == "db").and_then(|db| backend.database(db));
            match meant {
                Some(db) => sent.append(name.as_str(), &Value::string(db)),
                None => sent.append(name.as_str(), &value),
            };
        }
        hello.append("speculativeAuthenticate", &Value::Document(sent.finish()));
    }
    relay.command("admin", hello.finish()).await.map(Some)
}

/// `shop@1.ada` is a user of `shop`.
fn of_database<'a>(backend: &dyn Front, user: Value<'a>) -> Value<'a> {
    let named = user.as_str().and_then(|user| user.split_once('.'));
    match named.and_then(|(db, name)| Some(format!("{}.{name}", backend.database(db)?))) {
        Some(meant) => Value::string(meant),
        None => user,
    }
}

fn int(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The wire version that MongoDB of that version speaks.
fn wire_version(version: &str) -> i32 {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    match (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) {
        (0..=3, _) => 6,
        (4, 0 | 1) => 7,
        (4, 2 | 3) => 8,
        (4, _) => 9,
        (5, _) => 13,
        (6, _) => 17,
        (7, _) => 21,
        _ => 25,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn wire_versions_follow_the_reported_version() {
        for (version, expected) in
            [("4.2.1", 8), ("4.4.0", 9), ("5.0.2", 13), ("6.0.5", 17), ("7.0.0", 21), ("8.0", 25)]
        {
            assert_eq!(super::wire_version(version), expected, "{version}");
        }
    }
}
