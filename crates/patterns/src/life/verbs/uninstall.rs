//! `uninstall`: takes Pleach out of databases; the data stays, as plain documents.

use crate::execute::access::Access;
use crate::life::uninstall::Uninstalled;
use crate::life::verbs::privileges::{MOVE, RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use document::backend::Session;
use document::{ArrayWriter, Doc, DocWriter, Error, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "uninstall",
    help: "Drops all rules, keeps the data, and removes every index and collection of Pleach's own.",
    fields: &["databases", "forget", "preview"],
    changes: true,
    privileges: PRIVILEGES,
    run: |call| Box::pin(run(call)),
};

pub(crate) const PRIVILEGES: RequiredPrivileges = RequiredPrivileges(&[
    privilege(Resource::Database, &["find"]),
    privilege(Resource::RuleCollections, &["find"]),
    privilege(Resource::Catalog, &["update", "remove"]),
    privilege(Resource::Host, &["update"]),
    privilege(Resource::MovedCollections, MOVE),
    privilege(Resource::ConstrainedCollection, &["collMod"]),
    privilege(Resource::IndexedCollection, &["dropIndex"]),
    privilege(Resource::ExpiringCollection, &["collMod"]),
    privilege(Resource::OwnCollections, &["dropCollection"]),
]);

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let (forget, preview) = (call.request.flag("forget", false)?, call.request.flag("preview", false)?);
    let databases = match (named(call)?, &call.request.db) {
        (Some(_), Some(db)) => {
            return Err(Error::bad_value(format!("'databases' is for the command on admin, and it was sent to {db}")));
        }
        (Some(named), None) => named,
        (None, Some(db)) => vec![db.clone()],
        (None, None) => {
            let mut session = Session::default();
            let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
            call.life.installed(&mut at, &call.rights).await?
        }
    };
    for db in &databases {
        call.need_to_look_into(db)?;
    }
    let mut rows = ArrayWriter::new();
    for db in &databases {
        let outcome = match preview {
            true => call.life.would_uninstall(&call.rights, call.context, db, forget).await?,
            false => match call.life.uninstall(&call.rights, call.context, db, forget).await {
                // One database does not keep Pleach in the others.
                Err(error) if databases.len() > 1 => Some(Uninstalled::failed(db, &error)),
                done => done?,
            },
        };
        if let Some(outcome) = outcome {
            rows.push(&Value::Document(outcome.show()));
        }
    }
    let mut answer = DocWriter::new();
    answer.append("databases", &Value::Array(rows.finish()));
    Ok(answer.finish())
}

/// The databases that the command names.
fn named(call: &Call<'_>) -> Result<Option<Vec<String>>> {
    let wrong = || Error::type_mismatch("'databases' must be a list of names");
    match call.request.body.get("databases") {
        None => Ok(None),
        Some(Value::Array(names)) => {
            let names: Option<Vec<String>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            names.map(Some).ok_or_else(wrong)
        }
        Some(_) => Err(wrong()),
    }
}
