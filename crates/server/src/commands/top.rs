//! `top`.

use super::Command;
use crate::dispatch::Call;
use crate::workload::{Activity, Kind};
use document::{DocWriter, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["top"],
    help: "Tells how often each collection was read and written, and how long that took.",
    structure: "top",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

const READS: &[Kind] = &[Kind::Query, Kind::GetMore, Kind::ReadCommand];
const WRITES: &[Kind] = &[Kind::Insert, Kind::Update, Kind::Remove, Kind::WriteCommand];
const COMMANDS: &[Kind] = &[Kind::ReadCommand, Kind::WriteCommand, Kind::Command];

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let all = call.server.workload.namespaces.all();
    let fields = call.reply.fields();
    fields.start_document("totals").append("note", &Value::from("all times in microseconds"));
    for (name, activity) in &all {
        fields.start_document(name);
        of_collection(fields, activity);
        fields.end();
    }
    fields.end();
    Ok(())
}

fn of_collection(fields: &mut DocWriter, activity: &Activity) {
    let total = [READS, WRITES, &[Kind::Command]].concat();
    let kinds: [(&str, &[Kind]); 9] = [
        ("total", &total),
        ("readLock", READS),
        ("writeLock", WRITES),
        ("queries", &[Kind::Query]),
        ("getmore", &[Kind::GetMore]),
        ("insert", &[Kind::Insert]),
        ("update", &[Kind::Update]),
        ("remove", &[Kind::Remove]),
        ("commands", COMMANDS),
    ];
    for (name, kinds) in kinds {
        let (time, count) = activity.of(kinds);
        fields.start_document(name).append("time", &Value::Int64(time)).append("count", &Value::Int64(count)).end();
    }
}
