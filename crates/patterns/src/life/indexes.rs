//! The indexes that a rule needs: on the reference or `by` path, so that a change finds what it concerns, and unique ones on
//! `match`, so that a reference means one document.
//!
//! An index that is there is used if it serves. What is made here is remembered in the catalog ([`made`]), so that it is removed
//! with the last rule that needs it, and nothing else is.

pub(crate) mod made;

pub(crate) use made::Made;

use super::expiry;
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
    /// What it is called, if it has to be made.
    name: String,
}

/// What a unique index leaves alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// Documents without the field.
    Missing,
    /// Those with null as well. MongoDB finds nothing by such an index: another one is needed for that.
    Null,
}

/// All types of values that a reference can have.
const TYPES: &[&str] = &[
    "double",
    "string",
    "object",
    "array",
    "binData",
    "objectId",
    "bool",
    "date",
    "regex",
    "int",
    "timestamp",
    "long",
    "decimal",
    "minKey",
    "maxKey",
];

impl Needed {
    pub fn new(ns: &Namespace, paths: Vec<String>, unique: bool) -> Needed {
        let name = paths.iter().map(|path| format!("{path}_1")).collect::<Vec<_>>().join("_");
        Needed { ns: ns.clone(), paths, unique, name }
    }

    /// What it is called, if it has to be made.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// As `createIndexes` takes it.
    pub fn spec(&self) -> Doc<'static> {
        self.spec_that(Leaves::Missing)
    }

    fn spec_that(&self, leaves: Leaves) -> Doc<'static> {
        let mut spec = DocWriter::new();
        spec.start_document("key");
        for path in &self.paths {
            spec.append(path, &Value::Int32(1));
        }
        spec.end().append("name", &Value::from(&*self.name));
        if self.unique {
            spec.append("unique", &Value::Bool(true)).start_document("partialFilterExpression");
            for path in &self.paths {
                spec.start_document(path);
                match leaves {
                    Leaves::Missing => spec.append("$exists", &Value::Bool(true)),
                    Leaves::Null => {
                        let types = TYPES.iter().map(|name| Value::from(*name)).collect();
                        spec.append("$type", &Value::Array(types))
                    }
                };
                spec.end();
            }
            spec.end();
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
    pub(crate) fn is_served_by(&self, index: &Doc<'_>) -> bool {
        match self.unique {
            true => self.is_kept_unique_by(index),
            false => self.is_found_by(index),
        }
    }

    /// An index of more paths finds as well.
    fn is_found_by(&self, index: &Doc<'_>) -> bool {
        !has(index, "hidden")
            && !has(index, "sparse")
            && !index.contains("partialFilterExpression")
            && !index.contains("collation")
            && self.leads(index).is_some_and(|(leading, _)| leading == self.paths.len())
    }

    /// Only one of exactly these paths keeps values apart. Documents without the field may be left out, and those with null: no
    /// reference means them.
    fn is_kept_unique_by(&self, index: &Doc<'_>) -> bool {
        let exact = |(leading, keys)| leading == keys && keys == self.paths.len();
        let partial = match index.get("partialFilterExpression") {
            None => true,
            Some(Value::Document(filter)) => {
                filter.iter().all(|(path, test)| self.is_about_presence(path.as_str(), &test))
            }
            Some(_) => false,
        };
        has(index, "unique") && partial && !index.contains("collation") && self.leads(index).is_some_and(exact)
    }

    /// Whether a part of a partial filter only asks for the field itself: that it is there, or has a type.
    fn is_about_presence(&self, path: &str, test: &Value<'_>) -> bool {
        let Value::Document(tests) = test else { return false };
        self.paths.iter().any(|own| own == path)
            && tests.iter().all(|(operator, operand)| match operator.as_str() {
                "$exists" => operand.is_truthy(),
                "$type" => true,
                _ => false,
            })
    }

    /// Whether MongoDB finds references by an index that keeps them apart.
    fn finds_by(index: &Doc<'_>) -> bool {
        let by_type = match index.get("partialFilterExpression") {
            Some(Value::Document(filter)) => {
                filter.iter().any(|(_, test)| matches!(test, Value::Document(test) if test.contains("$type")))
            }
            _ => false,
        };
        !by_type && !has(index, "hidden")
    }

    /// How many paths of the index are ours, from the first one on, and how many it has.
    fn leads(&self, index: &Doc<'_>) -> Option<(usize, usize)> {
        let Some(Value::Document(key)) = index.get("key") else { return None };
        let keys: Vec<_> = key.iter().collect();
        let same = |(path, (name, direction)): &(&String, &(document::Text<'_>, Value<'_>))| {
            name.as_str() == **path && direction.is_number()
        };
        Some((self.paths.iter().zip(&keys).take_while(same).count(), keys.len()))
    }
}

fn has(index: &Doc<'_>, option: &str) -> bool {
    index.get(option).is_some_and(|value| value.is_truthy())
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
            list.push(Needed::new(ns, paths, unique));
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
    let needed = |paths: Vec<String>| Needed::new(&bucket.into, paths, false);
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
        let there = expiry::indexes(at, &needed.ns).await?;
        list.extend(unserved(needed, &there));
    }
    Ok(list)
}

/// What has to be made beside the indexes that are there.
fn unserved(needed: Needed, there: &[Doc<'static>]) -> Option<Needed> {
    let serving: Vec<_> = there.iter().filter(|index| needed.is_served_by(index)).collect();
    let needed = match serving.is_empty() {
        true => needed,
        false if !needed.unique || serving.iter().any(|index| Needed::finds_by(index)) => return None,
        // What keeps values apart finds none of them.
        false => {
            let finding = Needed::new(&needed.ns, needed.paths, false);
            if there.iter().any(|index| finding.is_served_by(index)) {
                return None;
            }
            finding
        }
    };
    Some(with_free_name(needed, there))
}

/// An index of that name is there, and is another one: it stays.
fn with_free_name(mut needed: Needed, there: &[Doc<'static>]) -> Needed {
    let is_taken =
        |name: &str| there.iter().any(|index| index.get("name").is_some_and(|own| own.as_str() == Some(name)));
    let plain = needed.name.clone();
    for number in 1.. {
        if !is_taken(&needed.name) {
            break;
        }
        needed.name = if number == 1 { format!("{plain}_pleach") } else { format!("{plain}_pleach_{number}") };
    }
    needed
}

/// Makes an index that a rule needs, and remembers that. An index that cannot be made leaves nothing behind.
pub(crate) async fn create(at: &mut At<'_>, rule: &Rule, needed: &Needed) -> Result<()> {
    match make(at, needed, needed.spec()).await {
        Err(error) if needed.unique && is_of_null(&error) => {}
        other => return other.map_err(|error| explained(error, rule, needed)),
    }
    make(at, needed, needed.spec_that(Leaves::Null)).await.map_err(|error| explained(error, rule, needed))?;
    let there = expiry::indexes(at, &needed.ns).await?;
    let finding = Needed::new(&needed.ns, needed.paths.clone(), false);
    match unserved(finding, &there) {
        Some(finding) => make(at, &finding, finding.spec()).await.map_err(|error| explained(error, rule, &finding)),
        None => Ok(()),
    }
}

async fn make(at: &mut At<'_>, needed: &Needed, spec: Doc<'static>) -> Result<()> {
    let made = Made::of(needed);
    // Before it is there: what a stop leaves behind is known to be ours.
    made.save(at).await?;
    let op = AdminOp::CreateIndexes { ns: needed.ns.clone(), indexes: vec![spec] };
    match at.backend.admin(at.session, at.context, op).await {
        Ok(_) => Ok(()),
        Err(error) => {
            made.forget(at).await?;
            Err(error)
        }
    }
}

/// Whether several documents have null.
fn is_of_null(error: &Error) -> bool {
    let value = error.info().and_then(|info| info.get("keyValue"));
    error.code() == Code::DuplicateKey
        && match value {
            Some(Value::Document(value)) => value.iter().all(|(_, value)| value.is_nullish()),
            _ => error.message().contains(": null }"),
        }
}

fn explained(error: Error, rule: &Rule, needed: &Needed) -> Error {
    if error.code() != Code::DuplicateKey {
        return error.context(&format!("rule {} needs an index on {}: ", rule.name, needed.ns));
    }
    let (ns, path) = (&needed.ns, needed.paths.join(", "));
    let example = error.message().split_once("dup key: ").map_or("", |(_, example)| example);
    let message = format!(
        "rule {} needs a unique index on {path} of {ns}, and several documents have the same value, such as {example}",
        rule.name
    );
    Error::new(Code::DuplicateKey, message)
        .with_hint(format!("make {path} unique in {}, or match on another field", ns.collection))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn needs(unique: bool) -> Needed {
        Needed::new(&Namespace::new("shop", "reviews"), vec!["a".into()], unique)
    }

    #[test]
    fn an_index_that_is_there_serves_if_it_leads_with_the_paths() {
        let (plain, unique) = (needs(false), needs(true));
        for (index, serves, serves_unique) in [
            (doc! { "key": { "a": 1 } }, true, false),
            (doc! { "key": { "a": -1, "b": 1 } }, true, false),
            (doc! { "key": { "a": 1 }, "unique": true }, true, true),
            (doc! { "key": { "a": 1, "b": 1 }, "unique": true }, true, false),
            (doc! { "key": { "b": 1, "a": 1 } }, false, false),
            (doc! { "key": { "a": "hashed" } }, false, false),
            (doc! { "key": { "a": 1 }, "sparse": true }, false, false),
            (doc! { "key": { "a": 1 }, "sparse": true, "unique": true }, false, true),
            (doc! { "key": { "a": 1 }, "partialFilterExpression": { "b": 1 }, "unique": true }, false, false),
            (
                doc! { "key": { "a": 1 }, "partialFilterExpression": { "a": { "$gt": 5 } }, "unique": true },
                false,
                false,
            ),
            (
                doc! { "key": { "a": 1 }, "partialFilterExpression": { "a": { "$exists": true } }, "unique": true },
                false,
                true,
            ),
            (
                doc! { "key": { "a": 1 }, "partialFilterExpression": { "a": { "$type": "string" } }, "unique": true },
                false,
                true,
            ),
            (doc! { "key": { "a": 1 }, "collation": { "locale": "de" }, "unique": true }, false, false),
        ] {
            let shown = index.to_string();
            let index = Doc::from(index);
            assert_eq!((plain.is_served_by(&index), unique.is_served_by(&index)), (serves, serves_unique), "{shown}");
        }
    }

    #[test]
    fn what_is_made_leaves_documents_without_the_field_alone() {
        let partial = doc! { "a": { "$exists": true } };
        let spec = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true, "partialFilterExpression": partial };
        assert_eq!(needs(true).spec(), Doc::from(spec.clone()));
        assert!(needs(true).is_served_by(&Doc::from(spec)));
        assert!(needs(true).is_served_by(&needs(true).spec_that(Leaves::Null)));
        assert_eq!(needs(false).spec(), Doc::from(doc! { "key": { "a": 1 }, "name": "a_1" }));
    }

    #[test]
    fn an_index_of_the_same_name_keeps_it() {
        let there = |index: bson::Document| vec![Doc::from(index)];
        let name = |needed: Option<Needed>| needed.map(|needed| (needed.name, needed.unique));
        let other = there(doc! { "key": { "a": 1 }, "name": "a_1" });
        assert_eq!(name(unserved(needs(true), &other)), Some(("a_1_pleach".to_owned(), true)));
        assert_eq!(name(unserved(needs(false), &other)), None);
        let sparse = there(doc! { "key": { "a": 1 }, "name": "own", "sparse": true, "unique": true });
        assert_eq!(name(unserved(needs(true), &sparse)), None);
        let typed = there(
            doc! { "key": { "a": 1 }, "name": "a_1", "unique": true, "partialFilterExpression": { "a": { "$type": "string" } } },
        );
        assert_eq!(name(unserved(needs(true), &typed)), Some(("a_1_pleach".to_owned(), false)), "it finds nothing");
    }
}
