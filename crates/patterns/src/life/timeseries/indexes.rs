//! Indexes on a time-series collection. Clients name its fields; what is indexed are the buckets: the meta field under its own
//! name, the time as the period's start, measurements as fields of the readings. The rule's row remembers what clients asked for.

use crate::execute::access::Access;
use crate::life::expiry;
use crate::life::timeseries::Life;
use crate::life::timeseries::options::ensure_expiry;
use crate::rule::IndexNeed;
use crate::shapes::bucket::Bucket;
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Context, Hint, Namespace};
use document::pipeline::expr::Names;
use document::value::{order, show};
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// What MongoDB says about commands that only an ordinary collection answers.
pub(crate) fn is_timeseries(ns: &Namespace) -> Error {
    Error::new(Code::CommandNotSupportedOnView, format!("Namespace {ns} is a timeseries collection"))
}

impl Life {
    /// What clients have made; `None` if it is no time-series collection.
    pub(crate) fn timeseries_indexes(&self, ns: &Namespace) -> Option<Vec<Doc<'static>>> {
        Some(self.timeseries(ns)?.row.shape?.indexes)
    }

    pub(crate) async fn create_timeseries_indexes(
        &self,
        context: &Context,
        ns: &Namespace,
        specs: &[Doc<'static>],
    ) -> Result<Doc<'static>> {
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        let Some(entry) = self.settled_timeseries(ns)? else { return Err(not_found(ns)) };
        let (Some(bucket), Some(shape)) = (entry.rule.bucket(), &entry.row.shape) else { return Err(not_found(ns)) };
        for spec in specs {
            check(bucket, spec)?;
        }
        let mut row = entry.row.clone();
        let mut known = shape.indexes.clone();
        let before = known.len();
        for spec in specs {
            if !is_new(&known, spec)? {
                continue;
            }
            let made = make(&mut at, bucket, spec).await?;
            known.push(made);
        }
        let after = known.len();
        if after > before {
            if let Some(shape) = &mut row.shape {
                shape.indexes = known;
            }
            self.save_changed(&mut at, &entry, row).await?;
        }
        let mut reply = DocWriter::new();
        reply.append("numIndexesBefore", &number(before)).append("numIndexesAfter", &number(after));
        match after > before {
            true => {
                reply.append("createdCollectionAutomatically", &Value::Bool(false));
                reply.append("commitQuorum", &Value::from("votingMembers"));
            }
            false => {
                reply.append("note", &Value::from("all indexes already exist"));
            }
        }
        Ok(reply.finish())
    }

    pub(crate) async fn drop_timeseries_indexes(
        &self,
        context: &Context,
        ns: &Namespace,
        which: &Value<'static>,
    ) -> Result<Doc<'static>> {
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        let Some(entry) = self.settled_timeseries(ns)? else { return Err(not_found(ns)) };
        let (Some(bucket), Some(shape)) = (entry.rule.bucket(), &entry.row.shape) else { return Err(not_found(ns)) };
        let gone = chosen(&shape.indexes, which)?;
        let mut row = entry.row.clone();
        if let Some(shape) = &mut row.shape {
            shape.indexes.retain(|index| !gone.contains(&name(index)));
        }
        // First what clients are told: an index that is left over by a stop in between is only work.
        if !gone.is_empty() {
            self.save_changed(&mut at, &entry, row.clone()).await?;
        }
        let own: Vec<String> = entry.rule.needs().indexes.iter().map(IndexNeed::name).collect();
        let stored = expiry::indexes(&mut at, &bucket.into).await?;
        for index in shape.indexes.iter().filter(|index| gone.contains(&name(index)) && !own.contains(&name(index))) {
            let key = stored_key(bucket, index);
            if stored.iter().any(|there| name(there) == name(index) && key_of(there) == key) {
                let op = AdminOp::DropIndexes { ns: bucket.into.clone(), which: Value::string(name(index)) };
                at.backend.admin(at.session, at.context, op).await?;
            }
        }
        if !gone.is_empty() {
            // What an index of a client served beside, or had the room of.
            let options = row.shape.as_ref().and_then(|shape| shape.timeseries.clone()).unwrap_or_else(Doc::empty);
            ensure_expiry(&mut at, bucket, &options).await?;
            ensure(&mut at, bucket, &row.shape.unwrap_or_default().indexes).await?;
        }
        let mut reply = DocWriter::new();
        reply.append("nIndexesWas", &number(shape.indexes.len()));
        if is_star(which) {
            reply.append("msg", &Value::from("non-_id indexes dropped for collection"));
        }
        Ok(reply.finish())
    }

    /// The index of the buckets that a client means by one of the time-series collection.
    pub(crate) async fn timeseries_hint(&self, context: &Context, ns: &Namespace, hint: &Hint) -> Result<Option<Hint>> {
        let Some(entry) = self.timeseries(ns) else { return Ok(None) };
        let (Some(bucket), Some(shape)) = (entry.rule.bucket(), &entry.row.shape) else { return Ok(None) };
        let known = match hint {
            Hint::Natural { .. } => return Ok(None),
            Hint::Name(wanted) => shape.indexes.iter().find(|index| name(index) == *wanted),
            Hint::Keys(key) => shape.indexes.iter().find(|index| same(key_of(index).as_ref(), key)),
        };
        let Some(index) = known else {
            let message = "hint provided does not correspond to an existing index";
            return Err(Error::bad_value(format!(
                "error processing query: ns={ns} planner returned error :: caused by :: {message}"
            )));
        };
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        let (key, wanted) = (stored_key(bucket, index), name(index));
        let there = expiry::indexes(&mut at, &bucket.into).await?;
        let serving =
            there.iter().find(|there| name(there) == wanted).or(there.iter().find(|there| key_of(there) == key));
        Ok(serving.map(|there| Hint::Name(name(there))))
    }
}

/// Makes what is missing of them: after the buckets were made anew, or an index that served beside has gone.
pub(in crate::life) async fn ensure(at: &mut Access<'_>, bucket: &Bucket, indexes: &[Doc<'static>]) -> Result<()> {
    for index in indexes {
        make(at, bucket, index).await?;
    }
    Ok(())
}

/// Makes the index of the buckets unless there is one of the same key; gives it as clients see it.
async fn make(at: &mut Access<'_>, bucket: &Bucket, spec: &Doc<'static>) -> Result<Doc<'static>> {
    let (key, wanted) = (stored_key(bucket, spec), name(spec));
    let options = |index: &Doc<'_>| {
        let chosen =
            ["collation", "partialFilterExpression", "sparse"].map(|option| index.get(option).map(Value::into_owned));
        chosen.map(|value| value.filter(Value::is_truthy))
    };
    let there = expiry::indexes(at, &bucket.into).await?;
    let spec_there = stored_spec(bucket, spec)?;
    let serves = |there: &&Doc<'static>| key_of(there) == key && options(there) == options(&spec_there);
    let found = match there.iter().find(serves) {
        Some(_) => None,
        None => {
            let op = AdminOp::CreateIndexes { ns: bucket.into.clone(), indexes: vec![spec_there] };
            at.backend.admin(at.session, at.context, op).await?;
            expiry::indexes(at, &bucket.into).await?.into_iter().find(|index| name(index) == wanted)
        }
    };
    // Normalised as the store does, but by the client's own words.
    let mut shown = DocWriter::new();
    shown.append("v", &Value::Int32(2)).append("key", &spec.get("key").unwrap_or(Value::Missing));
    shown.append("name", &Value::string(wanted));
    for (option, value) in found.as_ref().unwrap_or(spec).iter() {
        match option.as_str() {
            "v" | "key" | "name" | "expireAfterSeconds" | "background" | "partialFilterExpression" => {}
            other => {
                shown.append(other, &value);
            }
        }
    }
    shown.append("partialFilterExpression", &spec.get("partialFilterExpression").unwrap_or(Value::Missing));
    Ok(shown.finish())
}

/// What a time-series collection cannot have, in MongoDB's words.
fn check(bucket: &Bucket, spec: &Doc<'_>) -> Result<()> {
    let refused = |what: &str| {
        let message = format!("{what} indexes are not supported on time-series collections");
        Err(Error::new(Code::InvalidOptions, message))
    };
    let has = |option: &str| spec.get(option).is_some_and(|value| value.is_truthy());
    if has("unique") {
        return refused("Unique");
    }
    if spec.contains("expireAfterSeconds") {
        return refused("TTL");
    }
    let Some(Value::Document(key)) = spec.get("key") else { return Ok(()) };
    if key.iter().any(|(_, value)| value.as_str() == Some("text")) {
        return refused("Text");
    }
    if key.is_empty() {
        return Err(invalid(spec, "Empty object is not a valid index spec"));
    }
    for (name, direction) in key.iter() {
        if name.as_str() == &*bucket.time && !direction.is_number() {
            let field = show::element(&direction);
            let message = format!(
                "Invalid index spec for time-series collection: {}. Indexes on the time field must be ascending or descending (numbers only): {}: {field}",
                show::document(&key),
                bucket.time
            );
            return Err(invalid(spec, &message));
        }
        if has("sparse") && is_measured(bucket, name.as_str()) {
            let message = "Sparse indexes are not supported on time-series measurements";
            return Err(Error::new(Code::InvalidOptions, message));
        }
    }
    Ok(())
}

fn invalid(spec: &Doc<'_>, why: &str) -> Error {
    let message = format!("BadValue: {why} Command request: {{ indexes: [ {} ] }}", show::document(spec));
    Error::new(Code::CannotCreateIndex, message)
}

/// Whether it is another one than those that are known; the same under another name, or another of the same name, is neither.
fn is_new(known: &[Doc<'static>], spec: &Doc<'_>) -> Result<bool> {
    let key = key_of(spec);
    let same_options = |index: &Doc<'_>| {
        ["collation", "partialFilterExpression", "sparse"].iter().all(|option| {
            let truthy = |doc: &Doc<'_>| doc.get(option).filter(|value| value.is_truthy()).map(Value::into_owned);
            truthy(index) == truthy(spec)
        })
    };
    if let Some(there) = known.iter().find(|index| name(index) == name(spec)) {
        if key_of(there) == key && same_options(there) {
            return Ok(false);
        }
        let message = format!(
            "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: {}, existing index: {}",
            show::document(spec),
            show::document(there)
        );
        return Err(Error::new(Code::IndexKeySpecsConflict, message));
    }
    match known.iter().find(|index| key_of(index) == key && same_options(index)) {
        Some(there) => {
            let message = format!("Index already exists with a different name: {}", name(there));
            Err(Error::new(Code::IndexOptionsConflict, message))
        }
        None => Ok(true),
    }
}

fn chosen(known: &[Doc<'static>], which: &Value<'_>) -> Result<Vec<String>> {
    let by_name = |wanted: &str| match known.iter().any(|index| name(index) == wanted) {
        true => Ok(wanted.to_owned()),
        false if wanted == "_id_" => {
            Err(Error::new(Code::Location(5_979_800), "It is illegal to drop the clusteredIndex"))
        }
        false => Err(Error::new(Code::IndexNotFound, format!("index not found with name [{wanted}]"))),
    };
    match which {
        _ if is_star(which) => Ok(known.iter().map(name).collect()),
        Value::Array(names) => names.iter().map(|wanted| by_name(wanted.as_str().unwrap_or_default())).collect(),
        Value::Document(key) => match known.iter().find(|index| same(key_of(index).as_ref(), key)) {
            Some(index) => Ok(vec![name(index)]),
            None => {
                let message = format!("can't find index with key: {}", show::document(key));
                Err(Error::new(Code::IndexNotFound, message))
            }
        },
        other => Ok(vec![by_name(other.as_str().unwrap_or_default())?]),
    }
}

fn is_star(which: &Value<'_>) -> bool {
    match which {
        Value::Array(names) => names.count() == 1 && names.get(0).is_some_and(|only| only.as_str() == Some("*")),
        other => other.as_str() == Some("*"),
    }
}

fn is_measured(bucket: &Bucket, path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    path != &*bucket.time && !bucket.by.iter().any(|series| &*series.field == first)
}

fn stored_path(bucket: &Bucket, path: &str) -> String {
    match is_measured(bucket, path) {
        true => format!("readings.{path}"),
        false if path == &*bucket.time => bucket.every.name().to_owned(),
        false => path.to_owned(),
    }
}

fn stored_key(bucket: &Bucket, spec: &Doc<'_>) -> Option<Doc<'static>> {
    let mut key = DocWriter::new();
    for (path, direction) in key_of(spec)?.iter() {
        key.append(&stored_path(bucket, path.as_str()), &direction);
    }
    Some(key.finish())
}

/// The same of the buckets. A condition becomes what it says about a whole bucket.
fn stored_spec(bucket: &Bucket, spec: &Doc<'static>) -> Result<Doc<'static>> {
    let mut stored = DocWriter::new();
    for (option, value) in spec.iter() {
        match (option.as_str(), &value) {
            ("key", Value::Document(_)) => {
                stored.append("key", &stored_key(bucket, spec).map_or(Value::Missing, Value::Document));
            }
            ("partialFilterExpression", Value::Document(filter)) => {
                let pushed = bucket.push(&Filter::parse(filter, &mut Names::new())?).root.to_query();
                if !pushed.is_empty() {
                    stored.append("partialFilterExpression", &Value::Document(pushed));
                }
            }
            (other, _) => {
                stored.append(other, &value);
            }
        }
    }
    Ok(stored.finish())
}

fn key_of(index: &Doc<'_>) -> Option<Doc<'static>> {
    match index.get("key") {
        Some(Value::Document(key)) => Some(key.into_owned()),
        _ => None,
    }
}

fn same(known: Option<&Doc<'static>>, key: &Doc<'_>) -> bool {
    known.is_some_and(|known| order::compare_documents(known, key).is_eq())
}

fn name(index: &Doc<'_>) -> String {
    index.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn not_found(ns: &Namespace) -> Error {
    Error::new(Code::NamespaceNotFound, format!("ns not found {ns}"))
}

fn number(count: usize) -> Value<'static> {
    Value::Int32(i32::try_from(count).unwrap_or(i32::MAX))
}
