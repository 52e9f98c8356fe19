//! `logout`.

use super::Command;
use crate::dispatch::Call;
use document::Result;
use document::backend::Class;

pub(crate) const COMMAND: Command = Command {
    names: &["logout"],
    help: "Ends a login: there is none, so nothing happens.",
    structure: "logout",
    class: Class::Authenticate,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Ok(())
}
