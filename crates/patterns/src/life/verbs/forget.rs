//! `forget`: frees what is kept of the values that a rule replaced.

use crate::life::verbs::privileges::{RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::{Doc, DocWriter, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "forget",
    help: "Frees what is kept of the values and documents that a rule replaced.",
    fields: &["rule"],
    changes: true,
    privileges: PRIVILEGES,
    run: |call| Box::pin(run(call)),
};

pub(crate) const PRIVILEGES: RequiredPrivileges = RequiredPrivileges(&[
    privilege(Resource::Database, &["find"]),
    privilege(Resource::Replaced, &["find", "remove"]),
    privilege(Resource::Catalog, &["update", "remove"]),
]);

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let request = &call.request;
    let rule = request.text("rule")?.ok_or_else(|| request.lacks("rule"))?;
    let freed = call.life.forget_rule(&call.rights, request.db.as_deref(), &rule).await?;
    let mut answer = DocWriter::new();
    answer.append("rule", &Value::from(&*rule)).append("database", &Value::from(&*freed.db));
    answer.append("freed", &freed.amount.show());
    Ok(answer.finish())
}
