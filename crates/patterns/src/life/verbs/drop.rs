//! `drop`: removes a rule and, if asked, what it kept.

use crate::execute::access::Access;
use crate::life::relocate::drop::Leaving;
use crate::life::replaced::amount;
use crate::life::replaced::amount::Amount;
use crate::life::verbs::privileges::{MOVE, RequiredPrivileges, Resource, privilege};
use crate::life::verbs::{Call, Verb};
use crate::rule::names;
use document::backend::Session;
use document::{Doc, DocWriter, Result, Value};

pub(super) const VERB: Verb = Verb {
    name: "drop",
    help: "Removes a rule and, if asked, its field, or gives every document back what it had; readings become plain documents again.",
    fields: &["rule", "with_data", "keep_buckets", "restore", "wait"],
    changes: true,
    privileges: PRIVILEGES,
    run: |call| Box::pin(run(call)),
};

pub(crate) const PRIVILEGES: RequiredPrivileges = RequiredPrivileges(&[
    privilege(Resource::Database, &["find"]),
    privilege(Resource::Catalog, &["update", "remove"]),
    privilege(Resource::Host, &["update"]),
    privilege(Resource::MovedCollections, MOVE),
    privilege(Resource::ConstrainedCollection, &["collMod"]),
    // With `restore`.
    privilege(Resource::LiftedItems, &["find", "remove"]),
    privilege(Resource::Replaced, &["find", "remove"]),
]);

async fn run(call: &mut Call<'_>) -> Result<Doc<'static>> {
    let request = &call.request;
    let rule = request.text("rule")?.ok_or_else(|| request.lacks("rule"))?;
    let with_data = request.flag("with_data", false)?;
    let restore = request.flag("restore", false)?;
    let leaving = Leaving { with_data, keep_buckets: request.flag("keep_buckets", false)?, restore };
    let left = call.life.indexes_left(&call.rights, call.context, request.db.as_deref(), &rule).await?;
    let older = call.life.older_documents(&call.rights, call.context, request.db.as_deref(), &rule).await?;
    let db = call.life.drop_rule_for(&call.rights, request.db.as_deref(), &rule, leaving).await?;
    if request.flag("wait", true)? {
        call.life.try_again(&db);
        call.life.settle_dropped(&db, &rule).await?;
    }
    let mut answer = DocWriter::new();
    answer.append("rule", &Value::from(&*rule)).append("database", &Value::from(&*db));
    answer.append("with_data", &Value::Bool(with_data)).append("restore", &Value::Bool(restore));
    if !left.is_empty() {
        answer.append("left_indexes", &Value::Array(left.iter().map(|name| Value::from(&**name)).collect()));
    }
    if let Some(back) = call.life.take_way_back(&db, &rule).filter(|back| !back.is_nothing()) {
        let mut row = DocWriter::new();
        back.show(&mut row);
        answer.append("back", &Value::Document(row.finish()));
    }
    if let Some(left) = call.life.take_left_hosts(&db, &rule) {
        answer.append("left", &Value::Document(left.show()));
    }
    if let Some((older, versions)) = older {
        answer.append("older", &Value::Int64(i64::try_from(older).unwrap_or(i64::MAX)));
        answer.append("versions", &Value::Document(versions));
    }
    let (mut session, ns) = (Session::default(), names::replaced(&db));
    let mut at = Access { backend: &*call.life.backend, session: &mut session, context: call.context };
    let kept = match call.rights.may("find", &ns) {
        true => amount::of_rule(&mut at, &db, &rule).await?,
        false => Amount::default(),
    };
    if !kept.is_nothing() {
        answer.append("kept", &kept.show());
    }
    Ok(answer.finish())
}
