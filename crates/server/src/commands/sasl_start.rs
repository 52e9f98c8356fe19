//! `saslStart` and `saslContinue`: there are no users to log in as.

use super::{Access, Command};
use crate::dispatch::Call;
use document::{Code, Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["saslStart", "authenticate"],
    help: "Refused: the server has no users.",
    access: Access::Refused,
    structure: "saslStart",
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

pub(crate) const CONTINUE: Command = Command {
    names: &["saslContinue"],
    help: "Refused: no login was begun.",
    access: Access::Refused,
    structure: "saslContinue",
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run_continue(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Err(Error::new(
        Code::AuthenticationFailed,
        "Authentication failed. This server has no users: connect without a user name",
    ))
}

fn run_continue(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Err(Error::new(Code::ProtocolError, "No SASL session state found"))
}
