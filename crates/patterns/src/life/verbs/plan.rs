//! `plan`: what applying a declaration would do. Changes nothing.

use crate::execute::access::Access;
use crate::life::preview::{Preview, PreviewOptions};
use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::{Doc, Result};

pub(super) const VERB: Verb = Verb {
    name: "plan",
    help: "Says what applying a declaration would do, with counts of the values that are there.",
    fields: &["declaration", "remove", "with_data"],
    changes: false,
    privileges: RequiredPrivileges(&[
        privilege(Resource::Database, &["find"]),
        privilege(Resource::RuleCollections, &["find"]),
    ]),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let declaration = call.declaration_to_read()?;
    let options = PreviewOptions {
        remove: call.request.flag("remove", false)?,
        with_data: call.request.flag("with_data", false)?,
    };
    let mut session = Session::default();
    let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
    let changes = call.life.plan(&mut at, &declaration.database, &declaration.rules).await?;
    changes.need_to_see(call.request.verb.privileges, &call.rights)?;
    let preview = Preview::look(call.life, &mut at, &call.rights, &changes, &declaration.rules, options).await?;
    let plan = changes.show(&mut at, &preview).await?;
    Ok(call.life.noting_raw(plan))
}
