//! `ping`.

use super::Command;
use crate::dispatch::Call;
use document::Result;

const STRUCTURE: &str = "ping";

pub(crate) const COMMAND: Command = Command {
    names: &["ping"],
    help: "Answers.",
    structure: STRUCTURE,
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    match call.request.params(STRUCTURE).next() {
        Some(param) => Err(param.unknown()),
        None => Ok(()),
    }
}
