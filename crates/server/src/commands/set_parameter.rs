//! `setParameter`.

use super::{Access, Command};
use crate::dispatch::Call;
use document::{Code, Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["setParameter"],
    help: "Refused: the server is set up when it starts.",
    access: Access::Refused,
    structure: "setParameter",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let name = call.request.params("").next().map(|param| param.name().to_owned()).unwrap_or_default();
    Err(Error::new(
        Code::IllegalOperation,
        format!("not allowed to change [{name}] at runtime: the server is set up by the arguments it is started with"),
    ))
}
