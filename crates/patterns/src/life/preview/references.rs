//! Which references have no source. If none has, the declaration or the data is almost surely wrong: what it looks like is said, also
//! by an audit, which would otherwise find every value right.

use crate::execute::access::{Access, aggregate};
use crate::life::preview::{RulePreview, grouped, names, sample};
use crate::life::{catalog, relocate};
use crate::mql::{call, call_with, field, list, object};
use crate::rule::{KeyPath, Link, LinkKey, Refers, Rule, key};
use document::backend::{BatchLimit, Session};
use document::filter::{Filter, Node, Test};
use document::op::{Find, Namespace};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::project::Projection;
use document::{Array, Result, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// How many references are looked up together.
const BATCH: BatchLimit = BatchLimit { documents: 2_000, bytes: 4 << 20 };

#[derive(Clone, Debug, Default)]
pub(crate) struct References {
    pub(crate) all: u64,
    pub(crate) dangling: u64,
    /// One that has no source.
    example: Option<Value<'static>>,
}

/// The two sides of a link: the one that refers, and the other.
struct Sides<'r> {
    from: (&'r Namespace, &'r KeyPath),
    to: (&'r Namespace, &'r KeyPath),
    /// How many arrays a reference may be inside of.
    arrays: usize,
    filter: Option<&'r Filter>,
}

impl<'r> Sides<'r> {
    /// `None` for a roll-up: its documents are made for the keys, which may be computed.
    fn of(rule: &'r Rule, link: &'r Link) -> Option<Sides<'r>> {
        let LinkKey::Path(foreign) = &link.foreign else { return None };
        let (host, source) = ((&rule.host, &link.local), (&link.source, foreign));
        let sides = match link.refers {
            Refers::Host => {
                // One copy per element of an array that reference and copy share.
                let executor = link.local.path.parts.len() > 1 && link.local.path.first() == rule.field.first();
                let arrays = if link.local.each || executor { link.local.path.parts.len() } else { 0 };
                Sides { from: host, to: source, arrays, filter: None }
            }
            Refers::Source => {
                let arrays = if foreign.each { foreign.path.parts.len() } else { 0 };
                Sides { from: source, to: host, arrays, filter: link.filter.as_ref() }
            }
        };
        (!link.create).then_some(sides)
    }

    /// Rows `{ _id: reference, n }`; `grouped` gives each reference once.
    fn rows(&self, grouped: bool) -> Result<Pipeline> {
        let mut stages = Vec::new();
        if let Some(filter) = self.filter {
            stages.push(call("$match", Value::Document(filter.source.clone())));
        }
        let reference = field(&self.from.1.path.dotted());
        stages.push(call("$project", object([("_id", Value::Int32(0)), ("ref", reference)])));
        stages.extend((0..self.arrays).map(|_| call("$unwind", field("ref"))));
        let unlinked = list(["missing", "null", "undefined", "array"].map(Value::from));
        let links = call_with("$not", [call_with("$in", [call("$type", field("ref")), unlinked])]);
        stages.push(call("$match", object([("$expr", links)])));
        stages.push(match grouped {
            true => call("$group", object([("_id", field("ref")), ("n", call("$sum", Value::Int32(1)))])),
            false => call("$project", object([("_id", field("ref")), ("n", call("$literal", Value::Int32(1)))])),
        });
        let stages: Array<'static> = stages.into_iter().collect();
        Pipeline::parse(&stages, &mut Names::new())
    }

    /// Of these references, those that something has.
    async fn found(&self, at: &mut Access<'_>, references: Vec<Value<'static>>) -> Result<HashSet<Vec<u8>>> {
        let (ns, side) = self.to;
        let path = side.path.dotted();
        let wanted = Test::among(references);
        let filter = Filter::from_node(Node::field(&path, wanted));
        let shown = match &*path {
            "_id" => crate::mql::document([("_id", Value::Int32(1))]),
            path => crate::mql::document([("_id", Value::Int32(0)), (path, Value::Int32(1))]),
        };
        let projection = Some(Arc::new(Projection::parse_find(&shown, &filter, &mut Names::new())?));
        let rows = at.find(Find { projection, ..Find::matching(ns.clone(), filter) }).await?;
        Ok(rows.iter().flat_map(|row| key::linked(row, side).values).map(|value| key::bytes(&value)).collect())
    }
}

/// No reference of a rule leads to a document.
#[derive(Clone, Debug)]
pub(crate) struct AllReferencesDangle {
    /// What it looks like, in words.
    pub(crate) text: String,
    /// No document has the field of the reference at all.
    pub(crate) lacks_field: bool,
    /// It may be as it should be: what is referred to can still come. Otherwise a name is misspelt, or types differ.
    pub(crate) may_come: bool,
}

/// Looks whether any reference of the rule leads to a document. `None` if one does, or if there is nobody to refer.
pub(crate) async fn all_references_dangle(at: &mut Access<'_>, rule: &Rule) -> Result<Option<AllReferencesDangle>> {
    let Some(link) = rule.link() else { return Ok(None) };
    let Some(sides) = Sides::of(rule, link) else { return Ok(None) };
    let Some(references) = if_none_leads(at, &sides).await? else { return Ok(None) };
    if references.all > 0 {
        let (text, may_come) = all_dangling(at, &sides, &references).await?;
        return Ok(Some(AllReferencesDangle { text, lacks_field: false, may_come }));
    }
    let (from, by) = sides.from;
    let Some((text, near)) = names::lacking(at, from, &by.path).await? else { return Ok(None) };
    let meant = near.as_ref().map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
    Ok(Some(AllReferencesDangle { text: format!("{text}{meant}"), lacks_field: true, may_come: near.is_none() }))
}

/// Counts the references of a rule that links two collections, and says what is odd about them.
pub(super) async fn look(at: &mut Access<'_>, rule_preview: &mut RulePreview) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let Some(link) = rule.link() else { return Ok(()) };
    let Some(sides) = Sides::of(&rule, link) else { return Ok(()) };
    let references = count(at, &sides).await?;
    if references.all > 0 && references.dangling == references.all {
        rule_preview.notes.push(all_dangling(at, &sides, &references).await?.0);
    } else if references.dangling > 0 {
        let (ns, path) = (&sides.from.0.collection, &sides.from.1.path);
        let such = references.example.as_ref().map(|example| format!(", such as {}", sample::shown(example)));
        rule_preview.notes.push(format!(
            "{} of {} references in {ns}.{path} have no document in {}{}",
            grouped(references.dangling),
            grouped(references.all),
            sides.to.0.collection,
            such.unwrap_or_default()
        ));
    }
    rule_preview.references = Some(references);
    Ok(())
}

async fn count(at: &mut Access<'_>, sides: &Sides<'_>) -> Result<References> {
    // A real MongoDB groups them on its disk; here they come one by one, so that memory stays bounded.
    let pipeline = sides.rows(!at.backend.facts().runs_our_code)?;
    walk(at, sides, pipeline, |_| false).await
}

/// Counts them. `None` if one leads to a document; mostly it is among the first.
async fn if_none_leads(at: &mut Access<'_>, sides: &Sides<'_>) -> Result<Option<References>> {
    let leads = |counted: &References| counted.dangling < counted.all;
    let counted = walk(at, sides, sides.rows(false)?, leads).await?;
    Ok((!leads(&counted)).then_some(counted))
}

/// Looks the references up, batch by batch, until `is_enough`.
async fn walk(
    at: &mut Access<'_>,
    sides: &Sides<'_>,
    pipeline: Pipeline,
    is_enough: impl Fn(&References) -> bool,
) -> Result<References> {
    let mut reading = Session::default();
    let mut cursor = at.backend.read(&mut reading, at.context, aggregate(sides.from.0, pipeline)).await?;
    let mut counted = References::default();
    loop {
        let batch = cursor.next(&mut reading, at.context, BATCH).await?;
        let mut references: HashMap<Vec<u8>, (Value<'static>, u64)> = HashMap::new();
        for row in &batch.documents {
            let Some(value) = row.get("_id") else { continue };
            let number = u64::try_from(catalog::long(row.get("n"))).unwrap_or(0);
            references.entry(key::bytes(&value)).or_insert_with(|| (value.into_owned(), 0)).1 += number;
        }
        if !references.is_empty() {
            let found = sides.found(at, references.values().map(|(value, _)| value.clone()).collect()).await?;
            for (key, (value, number)) in references {
                counted.all += number;
                if !found.contains(&key) {
                    counted.dangling += number;
                    counted.example.get_or_insert(value);
                }
            }
        }
        if batch.exhausted || is_enough(&counted) {
            return Ok(counted);
        }
    }
}

/// What it looks like if no reference has a source, and whether it may be so because the sources are still to come.
async fn all_dangling(at: &mut Access<'_>, sides: &Sides<'_>, references: &References) -> Result<(String, bool)> {
    let ((from, by), (to, side)) = (sides.from, sides.to);
    let (from_path, to_path) = (format!("{}.{}", from.collection, by.path), format!("{}.{}", to.collection, side.path));
    let none = match references.all {
        1 => format!("the only reference in {from_path} has no document in {}", to.collection),
        all => format!("none of the {} references in {from_path} has a document in {}", grouped(all), to.collection),
    };
    if relocate::stored::look_up(at, to).await?.is_none() {
        return Ok((format!("{none}: that collection does not exist"), true));
    }
    let documents = sample::documents(at, to).await?;
    let keys: Vec<Value<'static>> = documents.iter().flat_map(|doc| key::linked(doc, side).values).collect();
    let Some(example) = &references.example else { return Ok((none, true)) };
    match keys.first() {
        None if documents.is_empty() => Ok((format!("{none}: that collection is empty"), true)),
        None => Ok((format!("{none}: no document there has `{}`", side.path), true)),
        Some(first) if keys.iter().all(|key| sample::kind(key) != sample::kind(example)) => {
            let (kind, other) = (sample::kind(example), sample::kind(first));
            let (value, first) = (sample::shown(example), sample::shown(first));
            let holds = format!("{from_path} holds {kind} such as {value}, {to_path} holds {other} such as {first}");
            Ok((format!("{none}: {holds}: values of different types never match"), false))
        }
        Some(first) => {
            let holds =
                format!("{from_path} holds {}, {to_path} holds {}", sample::shown(example), sample::shown(first));
            Ok((format!("{none}: almost surely a wrong `by`, `from` or `match`. {holds}"), true))
        }
    }
}
