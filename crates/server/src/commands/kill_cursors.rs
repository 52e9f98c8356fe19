//! `killCursors`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::required;
use document::backend::Class;
use document::{Array, Result, Value};

const STRUCTURE: &str = "killCursors";

pub(crate) const COMMAND: Command = Command {
    names: &["killCursors"],
    help: "Closes cursors.",
    access: Access::Read,
    structure: STRUCTURE,
    class: Class::KillCursors,
    in_transaction: InTransaction::NotFirst,
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    namespace::of_command(call.db(), &call.request.target)?;
    let mut ids = None;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "cursors" => ids = Some(param.longs()?),
            _ => return Err(param.unknown()),
        }
    }
    let ids = required(ids, STRUCTURE, "cursors")?;
    let user = call.owner().user;
    ids.iter().try_for_each(|id| call.server.cursors.check_user(*id, user.as_ref()))?;
    let (killed, not_found): (Vec<i64>, Vec<i64>) = ids.iter().partition(|id| call.server.cursors.kill(**id));
    let list = |ids: Vec<i64>| ids.into_iter().map(Value::Int64).collect::<Array<'static>>();
    call.reply.append("cursorsKilled", list(killed)).append("cursorsNotFound", list(not_found));
    call.reply.append("cursorsAlive", Array::empty()).append("cursorsUnknown", Array::empty());
    Ok(())
}
