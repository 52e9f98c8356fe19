//! `killSessions` and `killAllSessions`.

use super::end_sessions::sessions;
use super::{Command, InTransaction};
use crate::dispatch::Call;
use crate::params::Param;
use document::Result;

pub(crate) const COMMAND: Command = Command {
    names: &["killSessions"],
    help: "Ends sessions at once; without any named, all of them.",
    structure: "killSessions",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

pub(crate) const ALL: Command = Command {
    names: &["killAllSessions"],
    help: "Ends all sessions at once.",
    structure: "killAllSessions",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(std::future::ready(run_all(call))),
    ..Command::SERVER
};

/// There is one user, so a pattern matches all or is none.
pub(crate) const BY_PATTERN: Command = Command {
    names: &["killAllSessionsByPattern"],
    help: "Ends all sessions at once.",
    structure: "KillAllSessionsByPatternCmd",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(std::future::ready(run_all(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    let named = sessions(call, "killSessions")?;
    let ids = if named.is_empty() { call.server.sessions.all() } else { named };
    kill(call, &ids);
    Ok(())
}

fn run_all(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let name = call.request.name.clone();
    Param::new(call.command.structure, name, call.request.target.clone()).array()?;
    kill(call, &call.server.sessions.all());
    Ok(())
}

/// Stops the commands of the sessions, all but this one, and forgets what they left open.
fn kill(call: &Call<'_>, ids: &[[u8; 16]]) {
    for client in call.server.clients.lock().values() {
        if client.id != call.client.id && client.operation.is_of(ids) {
            client.operation.kill();
        }
    }
    for id in ids {
        if let Some(number) = call.server.sessions.kill(id) {
            call.server.counters.transactions_aborted.add(1);
            call.server.cursors.end_of_transaction(id, number);
        }
        call.server.cursors.kill_of_session(id);
    }
}
