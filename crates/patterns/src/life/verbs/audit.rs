//! `audit`: compares every derived value with what it should be. Changes nothing.

use crate::execute::access::Access;
use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::selection::Selection;
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::{Doc, Result};

pub(super) const VERB: Verb = Verb {
    name: "audit",
    help: "Compares every derived value with what it should be and gives the differences.",
    fields: &["declaration", "rule", "examples"],
    changes: false,
    privileges: RequiredPrivileges(&[
        privilege(Resource::Database, &["find"]),
        privilege(Resource::RuleCollections, &["find"]),
    ]),
    run: |call| Box::pin(run(call)),
};

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let Selection { rules, undeclared } = call.selected().await?;
    for asked in &rules {
        call.need_to_read(&asked.rule)?;
    }
    let mut report = call.life.audit(&rules, call.request.examples()?, &call.rights).await?;
    if let (true, Some(db)) = (rules.is_empty(), &call.request.db) {
        report.missing = call.life.missing_database(db, &call.rights).await?;
    }
    if report.is_right() {
        let mut session = Session::default();
        let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
        call.life.all_right(&mut at, &rules).await?;
    }
    Ok(report.leaving_out(undeclared).show())
}
