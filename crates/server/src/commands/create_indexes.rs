//! `createIndexes`.

use super::{Command, InTransaction};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::required;
use crate::statements::single;
use document::backend::Class;
use document::filter::Filter;
use document::op::{AdminOp, Namespace};
use document::pipeline::expr::Names;
use document::{Code, Doc, DocWriter, Error, Result, Value};

const STRUCTURE: &str = "createIndexes";

pub(crate) const COMMAND: Command = Command {
    names: &["createIndexes"],
    help: "Makes indexes, and the collection if it is missing.",
    structure: STRUCTURE,
    class: Class::CreateIndexes,
    in_transaction: InTransaction::Allowed,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::to_write(call.db(), &call.request.target)?;
    let (mut indexes, mut quorum, mut ignore_unknown) = (None, Value::from("votingMembers"), false);
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "indexes" => indexes = Some(param.documents()?),
            "commitQuorum" => quorum = param.value.into_owned(),
            "ignoreUnknownIndexOptions" => ignore_unknown = param.bool()?,
            _ => return Err(param.unknown()),
        }
    }
    let indexes: Vec<Doc<'static>> =
        required(indexes, STRUCTURE, "indexes")?.into_iter().map(Doc::into_owned).collect();
    let indexes = if ignore_unknown { indexes.iter().map(without_unknown).collect() } else { indexes };
    if indexes.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    if quorum.as_i64_exact().is_some_and(|nodes| nodes > 1) {
        return Err(Error::new(Code::Location(278), "Not enough data-bearing nodes to satisfy commit quorum"));
    }
    if call.transaction().is_some() {
        check_new(call, &ns).await?;
    }
    let op = AdminOp::CreateIndexes { ns, indexes };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        for (name, value) in answer.iter() {
            match name.as_str() {
                // What the client asked for is what it gets: there is one node.
                "commitQuorum" => call.reply.fields().append("commitQuorum", &quorum),
                other => call.reply.fields().append(other, &value),
            };
        }
    }
    Ok(())
}

/// The options of an index that MongoDB knows, ours or not.
const KNOWN: &[&str] = &[
    "2dsphereIndexVersion",
    "background",
    "bits",
    "bucketSize",
    "clustered",
    "coarsestIndexedLevel",
    "collation",
    "default_language",
    "dropDups",
    "expireAfterSeconds",
    "finestIndexedLevel",
    "hidden",
    "key",
    "language_override",
    "max",
    "min",
    "name",
    "ns",
    "partialFilterExpression",
    "prepareUnique",
    "sparse",
    "storageEngine",
    "textIndexVersion",
    "unique",
    "v",
    "weights",
    "wildcardProjection",
];

fn without_unknown(index: &Doc<'static>) -> Doc<'static> {
    let mut kept = DocWriter::with_capacity(index.as_bytes().len());
    for (name, value) in index.iter().filter(|(name, _)| KNOWN.contains(&name.as_str())) {
        kept.append(name.as_str(), &value);
    }
    kept.finish()
}

/// In a transaction only a collection that is made with its indexes can get them.
async fn check_new(call: &mut Call<'_>, ns: &Namespace) -> Result<()> {
    let filter = Filter::parse(&single("name", &Value::from(&*ns.collection)), &mut Names::new())?;
    let list = AdminOp::ListCollections { db: ns.db.to_string(), filter, name_only: true };
    if call.server.backend.admin(&mut call.session, &call.context, list).await?.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        Code::OperationNotSupportedInTransaction,
        format!("Cannot create new indexes on existing collection {ns} in a multi-document transaction."),
    ))
}
