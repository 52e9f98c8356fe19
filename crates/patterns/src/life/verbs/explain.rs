//! `explain`: what a command would do, rules included, with the client's own rights. Keeps nothing.

use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::{Doc, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "explain",
    help: "Says what a command would do, rules included; runs nothing.",
    fields: &["command"],
    changes: false,
    privileges: PRIVILEGES,
    run: |call| Box::pin(run(call)),
};

pub(crate) const PRIVILEGES: RequiredPrivileges = RequiredPrivileges(&[
    // Of every collection in a plan. Besides, the client needs what the explained command itself needs.
    privilege(Resource::RuleCollections, &["find"]),
]);

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let Some(Value::Document(command)) = call.request.body.get("command") else {
        return Err(call.request.lacks("command"));
    };
    let db = call.request.db.as_deref().unwrap_or("admin");
    let explained = call.life.explain(call.client, call.context, db, &command, &call.rights).await?;
    Ok(call.life.noting_raw(explained))
}
