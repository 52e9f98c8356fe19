//! `killCursors`. A list may name cursors that were opened here beside some of a MongoDB behind: each is closed where it is.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::required;
use crate::request::Request;
use document::backend::{Class, Relay};
use document::{Array, Doc, DocWriter, Result, Value};
use std::sync::Arc;

const STRUCTURE: &str = "killCursors";

pub(crate) const COMMAND: Command = Command {
    names: &["killCursors"],
    help: "Closes cursors.",
    access: Access::Read,
    structure: STRUCTURE,
    class: Class::KillCursors,
    in_transaction: InTransaction::NotFirst,
    in_api_version_1: true,
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

/// What a reply says about the cursors that it does not list as killed or not found.
const OTHERS: &[&str] = &["cursorsAlive", "cursorsUnknown"];

async fn run(call: &mut Call<'_>) -> Result<()> {
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
    let foreign: Vec<i64> = ids.iter().copied().filter(|id| !call.server.cursors.knows(*id)).collect();
    let behind = kill_behind(call.client.relay.clone(), call.request, &foreign).await?;
    let (killed, not_found): (Vec<i64>, Vec<i64>) = match &behind {
        // What MongoDB says about its own is taken over.
        Some(_) => (ids.iter().copied().filter(|id| call.server.cursors.kill(*id)).collect(), Vec::new()),
        None => ids.iter().partition(|id| call.server.cursors.kill(**id)),
    };
    let of_behind = |name: &str| match behind.as_ref().and_then(|reply| reply.get(name)) {
        Some(Value::Array(ids)) => ids.iter().map(Value::into_owned).collect(),
        _ => Vec::new(),
    };
    let list = |ids: Vec<i64>, name: &str| -> Array<'static> {
        ids.into_iter().map(Value::Int64).chain(of_behind(name)).collect()
    };
    for (name, ids) in [("cursorsKilled", killed), ("cursorsNotFound", not_found)] {
        call.reply.append(name, list(ids, name));
    }
    for name in OTHERS {
        call.reply.append(name, list(Vec::new(), name));
    }
    Ok(())
}

/// Closes cursors of the MongoDB behind, with the client's rights. Returns its answer; `None` if there are none to close, or no MongoDB.
async fn kill_behind(
    relay: Option<Arc<dyn Relay>>,
    request: &Request<'_>,
    ids: &[i64],
) -> Result<Option<Doc<'static>>> {
    let Some(relay) = relay.filter(|_| !ids.is_empty()) else { return Ok(None) };
    let mut command = DocWriter::new();
    command.append("killCursors", &request.target);
    command.append("cursors", &Value::Array(ids.iter().map(|id| Value::Int64(*id)).collect()));
    relay.command(request.db.as_str(), command.finish()).await.map(Some)
}
