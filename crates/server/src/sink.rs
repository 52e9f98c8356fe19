//! `$out` and `$merge`: the results of a pipeline, written through the backend's ordinary writes.

use crate::batch::AGGREGATING;
use crate::dispatch::Call;
use crate::statements::{self, single};
use crate::{identity, namespace};
use document::backend::{BatchLimit, Cursor};
use document::filter::Filter;
use document::op::{
    AdminOp, Aggregate, CollectionOptions, Insert, Namespace, ReadOp, UpdateOp, UpdateStatement, WriteOp, Written,
};
use document::pipeline::expr::Names;
use document::pipeline::{MergeSpec, Sink, WhenMatched, WhenNotMatched};
use document::{Code, Doc, Error, Result, Value};

/// How many results are taken and written at a time.
const CHUNK: BatchLimit = BatchLimit { documents: 1000, bytes: 4 << 20 };

pub(crate) async fn run(call: &mut Call<'_>, op: Aggregate, sink: &Sink, bypass_validation: bool) -> Result<()> {
    let db = op.ns.db.to_string();
    let in_db = |other: &Option<String>| other.clone().unwrap_or_else(|| db.clone());
    let target = match sink {
        Sink::Out { db, collection } => Namespace::new(&in_db(db), collection),
        Sink::Merge(merge) => Namespace::new(&in_db(&merge.db), &merge.collection),
    };
    namespace::check_database(&target.db)?;
    namespace::check_writable(&target).map_err(|error| match sink {
        Sink::Out { .. } => {
            let message = format!("{AGGREGATING}error with target namespace: {}", error.message());
            Error::new(Code::IllegalOperation, message)
        }
        Sink::Merge(_) => error,
    })?;
    let existing = collection_info(call, &target).await?;
    let is_view = existing.as_ref().and_then(|info| info.get("type")).as_ref().and_then(Value::as_str) == Some("view");
    let is_merge = matches!(sink, Sink::Merge(_));
    if is_view && !(is_merge && call.server.backend.takes_writes(&target)) {
        return Err(Error::new(
            Code::CommandNotSupportedOnView,
            format!("Namespace {target} is a view, not a collection"),
        ));
    }
    if let Sink::Merge(merge) = sink {
        check_unique(call, &target, &merge.on).await?;
    }
    let mut cursor = call.server.backend.read(&mut call.session, &call.context, ReadOp::Aggregate(op)).await?;
    match sink {
        Sink::Out { .. } => out(call, &mut *cursor, &target, existing, bypass_validation).await,
        Sink::Merge(spec) => pour(call, &mut *cursor, Goal::Merged(&target, spec), bypass_validation).await,
    }
}

async fn next(call: &mut Call<'_>, cursor: &mut dyn Cursor) -> Result<(Vec<Doc<'static>>, bool)> {
    let batch =
        cursor.next(&mut call.session, &call.context, CHUNK).await.map_err(|error| error.context(AGGREGATING))?;
    Ok((batch.documents, batch.exhausted))
}

/// Writes into a collection beside the target, with its options and indexes, and puts it in the target's place at the end.
async fn out(
    call: &mut Call<'_>,
    cursor: &mut dyn Cursor,
    target: &Namespace,
    existing: Option<Doc<'static>>,
    bypass_validation: bool,
) -> Result<()> {
    let unique: String = identity::uuid().iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary = Namespace::new(&target.db, &format!("tmp.agg_out.{unique}"));
    let options = existing.as_ref().map(kept_options).unwrap_or_default();
    admin(call, AdminOp::Create { ns: temporary.clone(), options }).await?;
    let result = fill(call, cursor, target, &temporary, existing.is_some(), bypass_validation).await;
    let result = match result {
        Ok(()) => {
            let rename = AdminOp::Rename { from: temporary.clone(), to: target.clone(), drop_target: true };
            admin(call, rename).await.map(|_| ())
        }
        Err(error) => Err(error),
    };
    if result.is_err() {
        let _ = admin(call, AdminOp::Drop { ns: temporary }).await;
    }
    result
}

async fn fill(
    call: &mut Call<'_>,
    cursor: &mut dyn Cursor,
    target: &Namespace,
    temporary: &Namespace,
    exists: bool,
    bypass_validation: bool,
) -> Result<()> {
    if exists {
        let indexes = admin(call, AdminOp::ListIndexes { ns: target.clone() }).await?;
        let is_id = |index: &Doc<'_>| index.get("name").as_ref().and_then(Value::as_str) == Some("_id_");
        let indexes: Vec<Doc<'static>> = indexes.into_iter().filter(|index| !is_id(index)).collect();
        if !indexes.is_empty() {
            admin(call, AdminOp::CreateIndexes { ns: temporary.clone(), indexes }).await?;
        }
    }
    pour(call, cursor, Goal::Beside(temporary), bypass_validation).await
}

/// Where results go.
#[derive(Clone, Copy)]
enum Goal<'a> {
    /// Into a new collection, which takes the target's place later.
    Beside(&'a Namespace),
    Merged(&'a Namespace, &'a MergeSpec),
}

/// Takes and writes all results, some at a time.
async fn pour(call: &mut Call<'_>, cursor: &mut dyn Cursor, goal: Goal<'_>, bypass_validation: bool) -> Result<()> {
    loop {
        let (documents, exhausted) = next(call, cursor).await?;
        if !documents.is_empty() {
            let written = match goal {
                Goal::Beside(ns) => insert(call, ns, documents, true, bypass_validation).await,
                Goal::Merged(ns, spec) => merge_chunk(call, ns, spec, documents, bypass_validation).await,
            };
            written.map_err(|error| error.context(AGGREGATING))?;
        }
        if exhausted {
            return Ok(());
        }
    }
}

async fn merge_chunk(
    call: &mut Call<'_>,
    target: &Namespace,
    spec: &MergeSpec,
    documents: Vec<Doc<'static>>,
    bypass_validation: bool,
) -> Result<()> {
    if matches!(spec.matched, WhenMatched::Fail) {
        return insert(call, target, documents, false, bypass_validation).await.map_err(|error| {
            if error.code() != Code::DuplicateKey {
                return error;
            }
            error.context(
                "$merge with whenMatched: fail found an existing document with the same values for the 'on' fields :: caused by :: ",
            )
        });
    }
    if spec.inserts_as_it_is() {
        return update_or_insert(call, target, spec, documents, bypass_validation).await;
    }
    let count = documents.len();
    let statements =
        documents.into_iter().map(|doc| spec.statement(doc, &call.context.env)).collect::<Result<Vec<_>>>()?;
    let op =
        WriteOp::Update(UpdateOp { ordered: false, bypass_validation, ..UpdateOp::of(target.clone(), statements) });
    let written = fail_on_error(statements::write(call, &op).await?)?;
    if spec.not_matched == WhenNotMatched::Fail && written.n < u64::try_from(count).unwrap_or(u64::MAX) {
        return Err(Error::new(
            Code::MergeStageNoMatchingDocument,
            "$merge could not find a matching document in the target collection for at least one document in the source collection",
        ));
    }
    Ok(())
}

/// A result that matches nothing is inserted as it is, not what the pipeline would make of an empty document. One that
/// fails does not keep the others from being written.
async fn update_or_insert(
    call: &mut Call<'_>,
    target: &Namespace,
    spec: &MergeSpec,
    documents: Vec<Doc<'static>>,
    bypass_validation: bool,
) -> Result<()> {
    let mut failed = None;
    for doc in documents {
        let doc = spec.with_id(doc, &call.context.env);
        let statement = UpdateStatement { upsert: false, ..spec.statement(doc.clone(), &call.context.env)? };
        let op = WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(target.clone(), vec![statement]) });
        let result = match fail_on_error(statements::write(call, &op).await?) {
            Ok(written) if written.n == 0 => insert(call, target, vec![doc], true, bypass_validation).await,
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            failed.get_or_insert(error);
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn insert(
    call: &mut Call<'_>,
    ns: &Namespace,
    documents: Vec<Doc<'static>>,
    ordered: bool,
    bypass_validation: bool,
) -> Result<()> {
    let op =
        WriteOp::Insert(Insert { ns: ns.clone(), documents, ordered, bypass_validation, statement_ids: Vec::new() });
    fail_on_error(statements::write(call, &op).await?).map(|_| ())
}

/// The first statement's error is the stage's.
fn fail_on_error(mut written: Written) -> Result<Written> {
    if written.errors.is_empty() { Ok(written) } else { Err(written.errors.remove(0).error) }
}

async fn admin(call: &mut Call<'_>, op: AdminOp) -> Result<Vec<Doc<'static>>> {
    call.server.backend.admin(&mut call.session, &call.context, op).await
}

/// What `listCollections` says about the target; `None` if it does not exist.
async fn collection_info(call: &mut Call<'_>, ns: &Namespace) -> Result<Option<Doc<'static>>> {
    let filter = Filter::parse(&single("name", &Value::from(&*ns.collection)), &mut Names::new())?;
    let list = AdminOp::ListCollections { db: ns.db.to_string(), filter, name_only: false };
    Ok(admin(call, list).await?.into_iter().next())
}

fn kept_options(info: &Doc<'static>) -> CollectionOptions {
    let Some(Value::Document(options)) = info.get("options") else { return CollectionOptions::default() };
    let document = |name: &str| match options.get(name) {
        Some(Value::Document(doc)) => Some(doc.into_owned()),
        _ => None,
    };
    let text = |name: &str| options.get(name).and_then(|value| value.as_str().map(str::to_owned));
    CollectionOptions {
        validator: document("validator"),
        validation_level: text("validationLevel"),
        validation_action: text("validationAction"),
        ..CollectionOptions::default()
    }
}

/// Fields other than `_id` identify a document only if a unique index says so.
async fn check_unique(call: &mut Call<'_>, target: &Namespace, on: &[String]) -> Result<()> {
    if matches!(on, [id] if id == "_id") {
        return Ok(());
    }
    let indexes = match admin(call, AdminOp::ListIndexes { ns: target.clone() }).await {
        Ok(indexes) => indexes,
        Err(error) if error.code() == Code::NamespaceNotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let fits = |index: &Doc<'static>| {
        let Some(Value::Document(key)) = index.get("key") else { return false };
        let names: Vec<String> = key.iter().map(|(name, _)| name.to_string()).collect();
        index.get("unique").is_some_and(|unique| unique.is_truthy())
            && !index.contains("partialFilterExpression")
            && !index.get("sparse").is_some_and(|sparse| sparse.is_truthy())
            && names.len() == on.len()
            && on.iter().all(|path| names.contains(path))
    };
    if indexes.iter().any(fits) {
        return Ok(());
    }
    Err(Error::new(Code::Location(51183), "Cannot find index to verify that join fields will be unique"))
}
