//! The indexes that a rule needs: on the reference or `by` path, so that a change finds what it concerns, and unique ones on
//! `match`, so that a reference means one document.
//!
//! An index that is there is used if it serves. What is made here is remembered in the catalog ([`made`]), so that it is removed
//! with the last rule that needs it, and nothing else is.

pub(crate) mod made;

#[cfg(test)]
mod tests;

pub(crate) use made::Made;

use crate::life::access::Access;
use crate::life::expiry;
use crate::life::relocate::stored;
use crate::rule::{Link, LinkKey, Refers, Rule};
use crate::shapes::bucket::{Body, Bucket, ReadingId};
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
    /// A unique index on the same paths that does not keep all values apart.
    beside: Option<String>,
}

/// All types of values that a reference can have, by name and by number.
const TYPES: &[(&str, i64)] = &[
    ("double", 1),
    ("string", 2),
    ("object", 3),
    ("array", 4),
    ("binData", 5),
    ("objectId", 7),
    ("bool", 8),
    ("date", 9),
    ("regex", 11),
    ("int", 16),
    ("timestamp", 17),
    ("long", 18),
    ("decimal", 19),
    ("minKey", -1),
    ("maxKey", 127),
];

/// Those that `$type: "number"` means.
const NUMBERS: &[&str] = &["double", "int", "long", "decimal"];

impl Needed {
    pub fn new(ns: &Namespace, paths: Vec<String>, unique: bool) -> Needed {
        let name = paths.iter().map(|path| format!("{path}_1")).collect::<Vec<_>>().join("_");
        Needed { ns: ns.clone(), paths, unique, name, beside: None }
    }

    /// What it is called, if it has to be made.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// As `createIndexes` takes it. A unique one leaves documents alone that lack the field or have null.
    pub fn spec(&self) -> Doc<'static> {
        let mut spec = DocWriter::new();
        spec.start_document("key");
        for path in &self.paths {
            spec.append(path, &Value::Int32(1));
        }
        spec.end().append("name", &Value::from(&*self.name));
        if self.unique {
            spec.append("unique", &Value::Bool(true)).start_document("partialFilterExpression");
            for path in &self.paths {
                let types = TYPES.iter().map(|(name, _)| Value::from(*name)).collect();
                spec.start_document(path).append("$type", &Value::Array(types)).end();
            }
            spec.end();
        }
        spec.finish()
    }

    /// Why it is made although there is one that is like it. `None` if there is none.
    pub(crate) fn note(&self) -> Option<String> {
        let (beside, collection, path) = (self.beside.as_ref()?, &self.ns.collection, self.paths.join(", "));
        Some(format!(
            "the unique index `{beside}` of `{collection}` leaves values of `{path}` out that a reference may have: one of all values is made beside it"
        ))
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

    /// Whether it keeps some values apart, and leaves others out.
    fn is_almost_served_by(&self, index: &Doc<'_>) -> bool {
        has(index, "unique")
            && index.contains("partialFilterExpression")
            && self.leads(index).is_some_and(|(leading, keys)| leading == keys && keys == self.paths.len())
    }

    /// Whether a part of a partial filter only asks that the field is there, or that it is not null.
    fn is_about_presence(&self, path: &str, test: &Value<'_>) -> bool {
        let Value::Document(tests) = test else { return false };
        self.paths.iter().any(|own| own == path)
            && tests.iter().all(|(operator, operand)| match operator.as_str() {
                "$exists" => operand.is_truthy(),
                "$type" => are_all_types(&operand),
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

/// Whether the operand of `$type` has every type that a reference can have.
fn are_all_types(operand: &Value<'_>) -> bool {
    let types: Vec<Value<'static>> = match operand {
        Value::Array(types) => types.iter().map(Value::into_owned).collect(),
        one => vec![one.clone().into_owned()],
    };
    let is_named = |name: &str| types.iter().any(|own| own.as_str() == Some(name));
    TYPES.iter().all(|(name, number)| {
        is_named(name)
            || types.iter().any(|own| own.as_i64_exact() == Some(*number))
            || (NUMBERS.contains(name) && is_named("number"))
    })
}

fn has(index: &Doc<'_>, option: &str) -> bool {
    index.get(option).is_some_and(|value| value.is_truthy())
}

/// What a rule needs, whatever is there.
pub fn needed(rule: &Rule) -> Vec<Needed> {
    if let Some(bucket) = rule.bucket() {
        return of_buckets(bucket);
    }
    let Some(link) = rule.link() else { return Vec::new() };
    let mut list = Vec::new();
    let mut add = |ns: &Namespace, paths: Vec<String>, unique: bool| {
        // Collections are kept by `_id`, which is unique.
        if paths.first().is_some_and(|path| path != "_id") {
            list.push(Needed::new(ns, paths, unique));
        }
    };
    match link.refers {
        Refers::Host => {
            add(&rule.host, vec![link.local.path.dotted()], false);
            add(&link.source, sought(&link.foreign), true);
        }
        Refers::Source => {
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
    let mut paths = sought(&link.foreign);
    let read = link.filter.as_ref().and_then(|filter| filter.root.reads()).unwrap_or_default();
    if let [path] = read.as_slice()
        && !link.foreign.each()
        && !paths.is_empty()
        && !paths.contains(&path.dotted())
    {
        paths.push(path.dotted());
    }
    paths
}

/// The paths by which the documents of a key are found; none if they cannot be.
fn sought(key: &LinkKey) -> Vec<String> {
    match key {
        LinkKey::Path(key) => vec![key.path.dotted()],
        LinkKey::Expression(expression) => {
            expression.seek.iter().flat_map(|seek| seek.paths()).map(|path| path.dotted()).collect()
        }
    }
}

/// What a rule needs and is not there yet.
pub(crate) async fn missing(at: &mut Access<'_>, rule: &Rule) -> Result<Vec<Needed>> {
    missing_beside(at, rule, &[]).await
}

/// What a rule needs and is neither there nor planned for another rule.
pub(crate) async fn missing_beside(at: &mut Access<'_>, rule: &Rule, planned: &[&Needed]) -> Result<Vec<Needed>> {
    let mut list: Vec<Needed> = Vec::new();
    for needed in needed(rule) {
        // Of a collection in another form: its shape has the indexes that find its documents.
        if rule.link().is_some() && stored::found(at, &needed.ns).await?.is_some_and(|found| found.is_view()) {
            continue;
        }
        let mut there = expiry::indexes(at, &needed.ns).await?;
        let all = planned.iter().copied().chain(&list).filter(|other| other.ns == needed.ns);
        there.extend(all.map(Needed::spec));
        list.extend(unserved(needed, there));
    }
    Ok(list)
}

/// What has to be made beside the indexes that are there. MongoDB finds nothing by a unique index that leaves null alone: a plain
/// one is needed for that.
fn unserved(mut needed: Needed, mut there: Vec<Doc<'static>>) -> Vec<Needed> {
    let mut list = Vec::new();
    let serving: Vec<_> = there.iter().filter(|index| needed.is_served_by(index)).collect();
    if !needed.unique && !serving.is_empty() || serving.iter().any(|index| Needed::finds_by(index)) {
        return list;
    }
    let finding = Needed::new(&needed.ns, needed.paths.clone(), false);
    if serving.is_empty() {
        needed.beside = there.iter().find(|index| needed.is_almost_served_by(index)).and_then(name_of);
        let needed = with_free_name(needed, &there);
        there.push(needed.spec());
        list.push(needed);
    }
    if !there.iter().any(|index| finding.is_served_by(index)) {
        list.push(with_free_name(finding, &there));
    }
    list
}

/// An index of that name is there, and is another one: it stays.
fn with_free_name(mut needed: Needed, there: &[Doc<'static>]) -> Needed {
    let is_taken = |name: &str| there.iter().any(|index| name_of(index).is_some_and(|own| own == name));
    let plain = needed.name.clone();
    for number in 1.. {
        if !is_taken(&needed.name) {
            break;
        }
        needed.name = if number == 1 { format!("{plain}_pleach") } else { format!("{plain}_pleach_{number}") };
    }
    needed
}

fn name_of(index: &Doc<'static>) -> Option<String> {
    index.get("name")?.as_str().map(str::to_owned)
}

/// Makes an index that a rule needs, and remembers that. An index that cannot be made leaves nothing behind.
pub(crate) async fn create(at: &mut Access<'_>, rule: &Rule, needed: &Needed) -> Result<()> {
    let made = Made::of(needed);
    // Before it is there: what a stop leaves behind is known to be ours.
    made.save(at).await?;
    let op = AdminOp::CreateIndexes { ns: needed.ns.clone(), indexes: vec![needed.spec()] };
    match at.backend.admin(at.session, at.context, op).await {
        Ok(_) => Ok(()),
        Err(error) => {
            made.forget(at).await?;
            Err(explained(error, rule, needed))
        }
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
