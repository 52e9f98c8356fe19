//! `status`: where each rule is, and what waits in the outbox; of one database, or of all that the client may read.

use crate::execute::access::Access;
use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::{Doc, Result};

pub(super) const VERB: Verb = Verb {
    name: "status",
    help: "Says where each rule is and what waits in the outbox.",
    fields: &[],
    changes: false,
    privileges: RequiredPrivileges(&[privilege(Resource::Database, &["find"])]),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    if let Some(db) = &call.request.db {
        call.need_to_look_into(db)?;
    }
    let mut session = Session::default();
    let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
    call.life.status(&mut at, call.request.db.as_deref(), &call.rights).await
}
