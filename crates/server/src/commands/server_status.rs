//! `serverStatus`.

use super::Command;
use crate::client::Client;
use crate::dispatch::Call;
use crate::identity;
use crate::state::Server;
use document::backend::{Class, Privileges};
use document::op::{AdminOp, Namespace};
use document::{Doc, DocWriter, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["serverStatus"],
    help: "Counts what the server has done and holds.",
    structure: "serverStatus",
    class: Class::ServerStatus,
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let storage = call.server.backend.admin(&mut call.session, &call.context, AdminOp::Status).await?;
    if call.client.relay.is_some() {
        // The real server's own figures, and what is added to them.
        let shown = shown(call.server, call.client).await?;
        append_all(call, &storage, shown.as_ref());
        return Ok(());
    }
    let server = call.server.clone();
    let uptime = server.started.elapsed();
    let milliseconds = i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX);
    let reply = &mut call.reply;
    reply.append("host", server.host()).append_text("version", &server.options.version);
    reply.append_text("process", "mongos").append("pid", i64::from(std::process::id()));
    reply.append("uptime", uptime.as_secs_f64().floor()).append("uptimeMillis", milliseconds);
    reply.append("uptimeEstimate", milliseconds / 1000);
    reply.append("localTime", Value::DateTime(identity::milliseconds()));
    let fields = reply.fields();
    let counters = &server.counters;
    section(
        fields,
        "asserts",
        &[("regular", 0), ("warning", 0), ("msg", 0), ("user", counters.user_errors.get()), ("rollovers", 0)],
    );
    let connections = server.clients.lock().len();
    let active = server.clients.lock().values().filter(|client| client.operation.id() != 0).count();
    section(
        fields,
        "connections",
        &[
            ("current", long(connections)),
            ("available", long(server.options.max_connections.saturating_sub(connections))),
            ("totalCreated", counters.connections_created.get()),
            ("active", long(active)),
        ],
    );
    fields.start_document("extra_info").append("note", &Value::from("fields vary by platform"));
    fields.append("page_faults", &Value::Int64(0)).end();
    fields.start_document("globalLock").append("totalTime", &Value::Int64(milliseconds * 1000));
    section(fields, "currentQueue", &[("total", 0), ("readers", 0), ("writers", 0)]);
    section(fields, "activeClients", &[("total", long(active)), ("readers", 0), ("writers", 0)]);
    fields.end();
    let (sessions, open) = server.sessions.count();
    section(fields, "logicalSessionRecordCache", &[("activeSessionsCount", long(sessions))]);
    section(
        fields,
        "network",
        &[
            ("bytesIn", counters.bytes_in.get()),
            ("bytesOut", counters.bytes_out.get()),
            ("physicalBytesIn", counters.bytes_in.get()),
            ("physicalBytesOut", counters.bytes_out.get()),
            ("numRequests", counters.requests.get()),
        ],
    );
    section(
        fields,
        "opcounters",
        &[
            ("insert", counters.inserts.get()),
            ("query", counters.queries.get()),
            ("update", counters.updates.get()),
            ("delete", counters.deletes.get()),
            ("getmore", counters.get_mores.get()),
            ("command", counters.commands.get()),
        ],
    );
    section(
        fields,
        "transactions",
        &[
            ("currentOpen", long(open)),
            ("totalStarted", counters.transactions_started.get()),
            ("totalCommitted", counters.transactions_committed.get()),
            ("totalAborted", counters.transactions_aborted.get()),
        ],
    );
    fields.start_document("mem").append("bits", &Value::Int32(64));
    let (resident, size) = memory_megabytes();
    fields.append("resident", &Value::Int64(resident)).append("virtual", &Value::Int64(size));
    fields.append("supported", &Value::Bool(true)).end();
    let (cursors, lasting) = server.cursors.count();
    fields.start_document("metrics").start_document("cursor");
    section(fields, "open", &[("noTimeout", long(lasting)), ("total", long(cursors))]);
    fields.end().end();
    append_all(call, &storage, None);
    Ok(())
}

/// What a client may read, where the server behind has users; it is shown no shapes of other collections.
async fn shown(server: &Server, client: &Client) -> Result<Option<Privileges>> {
    match server.backend.remote() {
        Some(remote) => remote.privileges(client.relay.as_ref()).await,
        None => Ok(None),
    }
}

/// Appends what the backend says, with what clients do in its section `pleach`. A client may leave out sections, as with MongoDB:
/// `pleach: 0`, or `pleach: { workload: 0 }`.
fn append_all(call: &mut Call<'_>, parts: &[Doc<'_>], privileges: Option<&Privileges>) {
    let wanted = call.request.body.get("pleach");
    let is_left_out = |value: &Value<'_>| {
        matches!(value, Value::Bool(_)) && !value.is_truthy() || value.is_number() && !value.is_truthy()
    };
    let with_section = !wanted.as_ref().is_some_and(is_left_out);
    let with_workload = match &wanted {
        Some(Value::Document(parts)) => !parts.get("workload").as_ref().is_some_and(is_left_out),
        _ => true,
    };
    let mut section = DocWriter::new();
    for part in parts {
        for (name, value) in part.iter() {
            match value {
                Value::Document(own) if name.as_str() == "pleach" => section.append_elements(elements(&own)),
                value => call.reply.fields().append(name.as_str(), &value),
            };
        }
    }
    if !with_section {
        return;
    }
    if with_workload {
        let may_read = |namespace: &str| {
            let Some(privileges) = privileges else { return true };
            namespace.split_once('.').is_some_and(|(db, name)| privileges.allows("find", &Namespace::new(db, name)))
        };
        let workload = call.server.workload.report(&may_read);
        section.append("workload", &Value::Document(workload));
    }
    call.reply.append("pleach", Value::Document(section.finish()));
}

/// A document's elements without its length and end.
fn elements<'d>(doc: &'d Doc<'_>) -> &'d [u8] {
    let bytes = doc.as_bytes();
    bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default()
}

fn section(fields: &mut DocWriter, name: &str, figures: &[(&str, i64)]) {
    fields.start_document(name);
    for (name, figure) in figures {
        fields.append(name, &Value::Int64(*figure));
    }
    fields.end();
}

fn long(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Resident and virtual size of this process.
fn memory_megabytes() -> (i64, i64) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let figure = |name: &str| {
        let kilobytes = text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
        kilobytes.map_or(0, |kilobytes: i64| kilobytes / 1024)
    };
    (figure("VmRSS:"), figure("VmSize:"))
}
