//! `saslStart` and `saslContinue`: there are no users to log in as. On a real MongoDB authentication is relayed, all but that
//! by certificate.

use super::{Access, Command};
use crate::dispatch::Call;
use crate::route::is_certificate;
use document::backend::Class;
use document::{Code, Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["saslStart", "authenticate"],
    help: "Refused: the server has no users.",
    access: Access::Refused,
    structure: "saslStart",
    class: Class::Authenticate,
    by_query: true,
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

pub(crate) const CONTINUE: Command = Command {
    names: &["saslContinue"],
    help: "Refused: no login was begun.",
    access: Access::Refused,
    structure: "saslContinue",
    class: Class::Authenticate,
    by_query: true,
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run_continue(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    if is_certificate(&call.request.body) {
        return Err(Error::new(
            Code::AuthenticationFailed,
            "MONGODB-X509 cannot be relayed: the certificate belongs to the connection with MongoDB, which is Pleach's. Use SCRAM-SHA-256",
        ));
    }
    Err(Error::new(
        Code::AuthenticationFailed,
        "Authentication failed. This server has no users: connect without a user name",
    ))
}

fn run_continue(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Err(Error::new(Code::ProtocolError, "No SASL session state found"))
}
