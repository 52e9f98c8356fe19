//! `renameCollection`.

use super::Command;
use crate::dispatch::Call;
use crate::namespace;
use crate::params::required;
use document::backend::Class;
use document::op::AdminOp;
use document::{Code, Error, Result};

const STRUCTURE: &str = "renameCollection";

pub(crate) const COMMAND: Command = Command {
    names: &["renameCollection"],
    help: "Gives a collection another name, in place of another one if asked.",
    structure: STRUCTURE,
    class: Class::Rename,
    admin_only: true,
    in_api_version_1: false,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let (mut to, mut drop_target) = (None, false);
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "to" => to = Some(param.text()?),
            "dropTarget" => drop_target = param.loose_bool()?,
            "stayTemp" | "collectionUUID" => {}
            _ => return Err(param.unknown()),
        }
    }
    let Some(from) = call.request.target.as_str() else {
        return Err(Error::bad_value(format!("collection name has invalid type {}", call.request.target.type_name())));
    };
    let to = required(to, STRUCTURE, "to")?;
    let from = namespace::parse_full(from)?;
    let to = namespace::parse_full(to.as_str())?;
    if from == to {
        return Err(Error::new(Code::IllegalOperation, "Can't rename a collection to itself"));
    }
    if let Err(error) = namespace::check_writable(&to) {
        return Err(Error::new(Code::IllegalOperation, format!("error with target namespace: {error}")));
    }
    let op = AdminOp::Rename { from, to, drop_target };
    call.server.backend.admin(&mut call.session, &call.context, op).await?;
    Ok(())
}
