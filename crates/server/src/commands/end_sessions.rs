//! `endSessions`.

use super::{Command, InTransaction};
use crate::dispatch::Call;
use crate::params::Param;
use crate::request::session_id;
use document::backend::Class;
use document::{Result, Text, Value};

const STRUCTURE: &str = "endSessions";

pub(crate) const COMMAND: Command = Command {
    names: &["endSessions"],
    help: "Forgets sessions and closes their cursors; a transaction that is open ends by itself.",
    structure: STRUCTURE,
    class: Class::EndSessions,
    in_transaction: InTransaction::Refused(""),
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    for id in sessions(call, STRUCTURE)? {
        call.server.sessions.end(&id);
        call.server.cursors.kill_of_session(&id);
    }
    Ok(())
}

/// The session ids that a command is given as an array.
pub(crate) fn sessions(call: &Call<'_>, structure: &'static str) -> Result<Vec<[u8; 16]>> {
    call.server.counters.commands.add(1);
    if let Some(param) = call.request.params(structure).next() {
        return Err(param.unknown());
    }
    let list = Param::new(structure, Text::borrowed(structure), call.request.target.clone()).documents()?;
    let path = format!("{structure}.{structure}");
    list.into_iter().map(|doc| session_id(&path, &Value::Document(doc))).collect()
}
