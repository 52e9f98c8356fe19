//! `refreshSessions`.

use super::end_sessions::sessions;
use super::{Command, InTransaction};
use crate::dispatch::Call;
use document::Result;

const STRUCTURE: &str = "refreshSessions";

pub(crate) const COMMAND: Command = Command {
    names: &["refreshSessions"],
    help: "Keeps sessions from expiring.",
    structure: STRUCTURE,
    in_transaction: InTransaction::Refused(""),
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    for id in sessions(call, STRUCTURE)? {
        call.server.sessions.touch(&id);
    }
    Ok(())
}
