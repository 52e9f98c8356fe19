//! `killSessions` and `killAllSessions`.

use super::end_sessions::{end, sessions};
use super::{Command, InTransaction};
use crate::dispatch::Call;
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

fn run(call: &mut Call<'_>) -> Result<()> {
    let named = sessions(call, "killSessions")?;
    let ids = if named.is_empty() { call.server.sessions.all() } else { named };
    ids.iter().for_each(|id| end(call, id));
    Ok(())
}

fn run_all(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    call.server.sessions.all().iter().for_each(|id| end(call, id));
    Ok(())
}
