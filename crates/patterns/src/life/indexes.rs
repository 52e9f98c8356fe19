//! The indexes that a rule needs: on the reference or `by` path, so that a change finds what it concerns, and unique ones on
//! `match`, so that a reference means one document.

use super::records::At;
use crate::rule::{Fold, Link, Rule, Upkeep};
use crate::shape::bucket::{Body, Bucket, ReadingId};
use document::op::{AdminOp, Namespace};
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// An index that a rule needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Needed {
    pub ns: Namespace,
    /// Dotted paths, all ascending.
    pub paths: Vec<String>,
    pub unique: bool,
}

impl Needed {
    pub fn name(&self) -> String {
        let parts: Vec<String> = self.paths.iter().map(|path| format!("{path}_1")).collect();
        parts.join("_")
    }

    /// As `createIndexes` takes it.
    pub fn spec(&self) -> Doc<'static> {
        let mut spec = DocWriter::new();
        spec.start_document("key");
        for path in &self.paths {
            spec.append(path, &Value::Int32(1));
        }
        spec.end().append("name", &Value::String(self.name().into()));
        if self.unique {
            spec.append("unique", &Value::Bool(true));
        }
        spec.finish()
    }

    /// `{ createIndexes: …, indexes: […] }`: what a person would run.
    pub fn command(&self) -> Doc<'static> {
        let mut command = DocWriter::new();
        command.append("createIndexes", &Value::from(&*self.ns.collection));
        command.append("indexes", &Value::Array([Value::Document(self.spec())].into_iter().collect()));
        command.finish()
    }

    /// Whether an index that is there serves as well.
    fn is_served_by(&self, index: &Doc<'_>) -> bool {
        let has = |name: &str| index.get(name).is_some_and(|value| value.is_truthy());
        if index.contains("partialFilterExpression") || has("sparse") || has("hidden") {
            return false;
        }
        let Some(Value::Document(key)) = index.get("key") else { return false };
        let keys: Vec<_> = key.iter().collect();
        // An index of more paths finds as well; only an exact one keeps values apart.
        let leads = self
            .paths
            .iter()
            .zip(&keys)
            .filter(|(path, (name, direction))| name.as_str() == **path && direction.is_number());
        match self.unique {
            true => leads.count() == keys.len() && keys.len() == self.paths.len() && has("unique"),
            false => leads.count() == self.paths.len(),
        }
    }
}

/// What a rule needs, whatever is there.
pub fn needed(rule: &Rule) -> Vec<Needed> {
    let link = match &rule.upkeep {
        Upkeep::Link(link) => link,
        Upkeep::Bucket(bucket) => return of_buckets(bucket),
        Upkeep::Expression(_) => return Vec::new(),
    };
    let mut list = Vec::new();
    let mut add = |ns: &Namespace, paths: Vec<String>, unique: bool| {
        // Collections are kept by `_id`, which is unique.
        if paths.first().is_some_and(|path| path != "_id") {
            list.push(Needed { ns: ns.clone(), paths, unique });
        }
    };
    match &link.fold {
        Fold::One { .. } => {
            add(&rule.host, vec![link.local.path.dotted()], false);
            add(&link.source, vec![link.foreign.path.dotted()], true);
        }
        Fold::Tally(_) => {
            add(&link.source, by_and_where(link), false);
            add(&rule.host, vec![link.local.path.dotted()], true);
        }
    }
    list
}

/// Series and period, so that a filter on both reads few buckets; the readings' own `_id` if declared.
fn of_buckets(bucket: &Bucket) -> Vec<Needed> {
    let needed = |paths: Vec<String>| Needed { ns: bucket.into.clone(), paths, unique: false };
    let mut list = Vec::new();
    if !bucket.packed {
        let series = bucket.by.iter().map(|series| series.field.to_string());
        list.push(needed(series.chain([bucket.every.name().to_owned()]).collect()));
    }
    if matches!(&bucket.body, Body::Readings(readings) if readings.reading_id == ReadingId::Indexed) {
        list.push(needed(vec!["readings._id".to_owned()]));
    }
    list
}

/// The `by` path, then the one path that `where` reads: more would cost every write more than it saves.
fn by_and_where(link: &Link) -> Vec<String> {
    let mut paths = vec![link.foreign.path.dotted()];
    let read = link.filter.as_ref().and_then(|filter| filter.root.reads()).unwrap_or_default();
    if let [path] = read.as_slice()
        && !link.foreign.each
        && *path != link.foreign.path
    {
        paths.push(path.dotted());
    }
    paths
}

/// What a rule needs and is not there yet.
pub(crate) async fn missing(at: &mut At<'_>, rule: &Rule) -> Result<Vec<Needed>> {
    let mut list = Vec::new();
    for needed in needed(rule) {
        let there = match at.backend.admin(at.session, at.context, AdminOp::ListIndexes { ns: needed.ns.clone() }).await
        {
            Ok(indexes) => indexes,
            Err(error) if error.code() == Code::NamespaceNotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        if !there.iter().any(|index| needed.is_served_by(index)) {
            list.push(needed);
        }
    }
    Ok(list)
}

pub(crate) async fn create(at: &mut At<'_>, rule: &Rule, needed: &Needed) -> Result<()> {
    let op = AdminOp::CreateIndexes { ns: needed.ns.clone(), indexes: vec![needed.spec()] };
    match at.backend.admin(at.session, at.context, op).await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Code::DuplicateKey => {
            let (ns, path) = (&needed.ns, needed.paths.join(", "));
            Err(Error::new(
                Code::DuplicateKey,
                format!(
                    "rule {} needs a unique index on {path} of {ns}, and values are there twice: {error}",
                    rule.name
                ),
            )
            .with_hint(format!("make {path} unique in {}, or match on another field", ns.collection)))
        }
        Err(error) => Err(error.context(&format!("rule {} needs an index on {}: ", rule.name, needed.ns))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn an_index_that_is_there_serves_if_it_leads_with_the_paths() {
        let plain = Needed { ns: Namespace::new("shop", "reviews"), paths: vec!["a".into()], unique: false };
        let unique = Needed { unique: true, ..plain.clone() };
        for (index, serves, serves_unique) in [
            (doc! { "key": { "a": 1 } }, true, false),
            (doc! { "key": { "a": -1, "b": 1 } }, true, false),
            (doc! { "key": { "a": 1 }, "unique": true }, true, true),
            (doc! { "key": { "a": 1, "b": 1 }, "unique": true }, true, false),
            (doc! { "key": { "b": 1, "a": 1 } }, false, false),
            (doc! { "key": { "a": "hashed" } }, false, false),
            (doc! { "key": { "a": 1 }, "sparse": true, "unique": true }, false, false),
            (doc! { "key": { "a": 1 }, "partialFilterExpression": { "b": 1 } }, false, false),
        ] {
            let shown = index.to_string();
            let index = Doc::from(index);
            assert_eq!((plain.is_served_by(&index), unique.is_served_by(&index)), (serves, serves_unique), "{shown}");
        }
        assert_eq!(unique.spec(), Doc::from(doc! { "key": { "a": 1 }, "name": "a_1", "unique": true }));
    }
}
