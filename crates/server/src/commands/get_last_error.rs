//! `getLastError`.

use super::{Access, Command};
use crate::dispatch::Call;
use document::{Code, Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["getLastError", "getlasterror"],
    help: "Refused: removed from MongoDB in 5.1; write commands answer themselves.",
    access: Access::Refused,
    structure: "getLastError",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Err(Error::new(Code::Location(5_739_000), "getLastError command is not supported"))
}
