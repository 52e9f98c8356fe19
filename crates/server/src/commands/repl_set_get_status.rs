//! `replSetGetStatus`.

use super::{Access, Command};
use crate::dispatch::Call;
use document::{Code, Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["replSetGetStatus"],
    help: "Refused: the server is no member of a replica set.",
    access: Access::Refused,
    structure: "replSetGetStatus",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Err(Error::new(Code::NoReplicationEnabled, "not running with --replSet"))
}
