//! What becomes of the items of an array that a rule lifts: how many there are, and which cannot become documents. Counted inside the
//! database, but for what a validator would refuse, which is asked of each item; nothing is lifted while one of them is in the way.

use crate::execute::access::{Access, aggregate};
use crate::life::lift::item::{Lift, holds};
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::requirements::{Found, Requirements};
use crate::life::preview::{RulePreview, documents, grouped, long, shown};
use crate::life::{CatalogRule, Life, catalog};
use crate::mql::{call, call_with, cond, field, list, object};
use crate::rule::Rule;
use document::backend::{BatchLimit, Cursor, Session};
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::value::Path;
use document::{Array, Doc, DocWriter, Result, Value};

const BATCH: BatchLimit = BatchLimit { documents: 2_000, bytes: 4 << 20 };

/// What is in the way of a lift: the name in the plan, and how it reads behind a number.
const PROBLEMS: &[(&str, &str)] = &[
    ("not_arrays", "documents have something else than an array there"),
    ("not_documents", "items are not documents"),
    ("bad_ids", "items have an `_id` that no document can have"),
    ("other_keys", "items have a `BY` of another document"),
    ("no_room", "items have no room for `BY`"),
    ("keyless", "documents have items and no `LOCAL` by which they would find them"),
    ("duplicates", "values of `_id` are used by several items"),
    ("taken", "items have the `_id` of a document of `INTO` with other content"),
    ("unstorable", "items cannot be stored in `INTO`"),
    ("refused", "items would be refused by `INTO`"),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct LiftCounts {
    array: String,
    into: String,
    hosts: u64,
    items: u64,
    /// By their names in [`PROBLEMS`]: how many, and the `_id` of one.
    problems: Vec<(&'static str, u64, Value<'static>)>,
    /// What is asked of documents that the first refused item lacks.
    why: Option<String>,
}

impl LiftCounts {
    /// `{ array, into, documents, items }` and what is in the way.
    pub(super) fn show(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        doc.append("array", &Value::from(&*self.array)).append("into", &Value::from(&*self.into));
        doc.append("documents", &long(self.hosts)).append("items", &long(self.items));
        for (name, number, _) in &self.problems {
            doc.append(name, &long(*number));
        }
        doc.finish()
    }

    fn note(&mut self, name: &'static str, number: u64, example: Option<Value<'static>>) {
        if number > 0 {
            self.problems.push((name, number, example.unwrap_or(Value::Null)));
        }
    }

    fn refusals(&self, lift: &Lift<'_>) -> Vec<Refusal> {
        let words = |name: &str| PROBLEMS.iter().find(|(other, _)| *other == name).map_or("", |(_, words)| words);
        let refusal = |(name, number, id): &(&'static str, u64, Value<'static>)| {
            let (by, local) = (lift.by.dotted(), lift.link.local.path.dotted());
            let words = words(name).replace("BY", &by).replace("LOCAL", &local).replace("INTO", &self.into);
            let of = if *name == "duplicates" { "such as _id" } else { "such as in the document with _id" };
            let why =
                self.why.as_ref().filter(|_| *name == "refused").map_or_else(String::new, |why| format!(": {why}"));
            let reason = format!(
                "rule {}: `{}` cannot be lifted: {} {words}, {of} {}{why}",
                lift.rule.name,
                self.array,
                grouped(*number),
                shown(id)
            );
            Refusal { need: Need::OtherData("change these items first, or leave out `lift`".to_owned()), reason }
        };
        self.problems.iter().map(refusal).collect()
    }
}

/// Counts the items and what is in their way, and the windows that would be replaced.
pub(super) async fn look(
    life: &Life,
    at: &mut Access<'_>,
    declared: &[Rule],
    rule_preview: &mut RulePreview,
) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let Some(lift) = Lift::of(&rule) else { return Ok(()) };
    let (array, into) = (lift.array.dotted(), lift.source().collection.to_string());
    let mut counts = LiftCounts { array, into, ..LiftCounts::default() };
    count_items(at, &lift, &mut counts).await?;
    count_duplicates(at, &lift, &mut counts).await?;
    match shape_of(life, &rule) {
        Some(shaped) => count_unstorable(at, &lift, &shaped, &mut counts).await?,
        None => {
            count_taken(at, &lift, &mut counts).await?;
            count_refused(at, &lift, declared, &mut counts, &mut rule_preview.notes).await?;
        }
    }
    rule_preview.refusals.extend(counts.refusals(&lift));
    rule_preview.lift = Some(counts);
    if !lift.is_window() && life.kept(&rule).is_none() {
        rule_preview.refusals.extend(windows(at, &rule).await?);
    }
    Ok(())
}

/// The number of each thing that can be wrong with a host or its items, summed up.
async fn count_items(at: &mut Access<'_>, lift: &Lift<'_>, counts: &mut LiftCounts) -> Result<()> {
    let (array, key) = (field("array"), field("key"));
    let kind = |value: Value<'static>| call("$type", value);
    let is = |value: Value<'static>, kinds: &[&'static str]| {
        call_with("$in", [kind(value), list(kinds.iter().map(|kind| Value::from(*kind)))])
    };
    let not = |condition: Value<'static>| call("$not", list([condition]));
    let item = |path: &str| Value::string(format!("$$item{path}"));
    let by = format!(".{}", lift.by);
    let items = cond(call("$isArray", list([array.clone()])), array.clone(), list([]));
    let number = |condition: Value<'static>| {
        let filter = object([("input", items.clone()), ("as", Value::from("item")), ("cond", condition)]);
        call("$size", call("$filter", filter))
    };
    let is_document = || is(item(""), &["object"]);
    let both = |a: Value<'static>, b: Value<'static>| call_with("$and", [a, b]);
    let other = both(not(is(item(&by), &["missing"])), call_with("$ne", [item(&by), key.clone()]));
    let ways = (1..lift.by.parts.len()).map(|parts| {
        let way: String = lift.by.parts.iter().take(parts).map(|part| format!(".{}", part.name)).collect();
        not(is(item(&way), &["object", "null", "undefined", "missing"]))
    });
    let size = || call("$size", items.clone());
    let has_items = call_with("$gt", [size(), Value::Int32(0)]);
    let flag = |condition: Value<'static>| cond(condition, Value::Int32(1), Value::Int32(0));
    let lacks_key = is(key.clone(), &["missing", "null", "undefined", "array"]);
    let measured = [
        ("hosts", flag(has_items.clone())),
        ("items", size()),
        ("not_arrays", flag(not(is(array.clone(), &["array", "missing", "null", "undefined"])))),
        ("not_documents", number(not(is_document()))),
        ("bad_ids", number(both(is_document(), is(item("._id"), &["array", "regex", "undefined"])))),
        ("other_keys", number(both(is_document(), other))),
        ("no_room", number(both(is_document(), call("$or", list(ways.collect::<Vec<_>>()))))),
        ("keyless", flag(both(has_items, lacks_key))),
    ];
    let seen = object([("array", field(&lift.array.dotted())), ("key", field(&lift.link.local.path.dotted()))]);
    let (mut sums, mut examples) = (vec![("_id".to_owned(), Value::Null)], Vec::new());
    for (name, _) in &measured {
        sums.push(((*name).to_owned(), call("$sum", field(name))));
        let example = cond(call_with("$gt", [field(name), Value::Int32(0)]), field("_id"), Value::from("$$REMOVE"));
        examples.push((format!("{name}_id"), call("$min", example)));
    }
    sums.extend(examples);
    let group = object(sums.iter().map(|(name, value)| (&**name, value.borrow())));
    let stages = [call("$project", seen), call("$project", object(measured)), call("$group", group)];
    for row in run(at, lift, stages).await? {
        let number = |name: &str| u64::try_from(catalog::long(row.get(name))).unwrap_or(0);
        (counts.hosts, counts.items) = (number("hosts"), number("items"));
        for (name, _) in PROBLEMS {
            counts.note(name, number(name), row.get(&format!("{name}_id")));
        }
    }
    Ok(())
}

/// Ids that several items have, of one host or of several.
async fn count_duplicates(at: &mut Access<'_>, lift: &Lift<'_>, counts: &mut LiftCounts) -> Result<()> {
    let ids = object([("_id", Value::Int32(0)), ("id", field(&format!("{}._id", lift.array)))]);
    let by_id = object([("_id", field("id")), ("n", call("$sum", Value::Int32(1)))]);
    let several = object([("n", call("$gt", Value::Int32(1)))]);
    let all =
        object([("_id", Value::Null), ("n", call("$sum", Value::Int32(1))), ("id", call("$first", field("_id")))]);
    let stages = [
        call("$project", ids),
        call("$unwind", field("id")),
        call("$group", by_id),
        call("$match", several),
        call("$group", all),
    ];
    for row in run(at, lift, stages).await? {
        counts.note("duplicates", u64::try_from(catalog::long(row.get("n"))).unwrap_or(0), row.get("id"));
    }
    Ok(())
}

/// `{ _id, key, item }` of each item.
fn unwound(lift: &Lift<'_>) -> [Value<'static>; 2] {
    let seen = object([("key", field(&lift.link.local.path.dotted())), ("item", field(&lift.array.dotted()))]);
    [call("$project", seen), call("$unwind", field("item"))]
}

/// Items whose `_id` a document of the child collection has, unless that document has all that the item has.
async fn count_taken(at: &mut Access<'_>, lift: &Lift<'_>, counts: &mut LiftCounts) -> Result<()> {
    let lookup = object([
        ("from", Value::from(&*lift.source().collection)),
        ("localField", Value::from("item._id")),
        ("foreignField", Value::from("_id")),
        ("as", Value::from("stored")),
    ]);
    let exists = |path: &'static str| call("$match", object([(path, call("$exists", Value::Bool(true)))]));
    let mut rows = Rows::open(at, lift, [exists("item._id"), call("$lookup", lookup), exists("stored.0")]).await?;
    let (mut number, mut example) = (0, None);
    while let Some(some) = rows.next(at).await? {
        for row in some.iter().filter(|row| is_taken(lift, row)) {
            number += 1;
            example = example.or_else(|| row.get("_id"));
        }
    }
    counts.note("taken", number, example);
    Ok(())
}

/// The items of all hosts, some at a time.
struct Rows {
    reading: Session,
    cursor: Option<Box<dyn Cursor>>,
}

impl Rows {
    async fn open(
        at: &mut Access<'_>,
        lift: &Lift<'_>,
        then: impl IntoIterator<Item = Value<'static>>,
    ) -> Result<Rows> {
        let stages = unwound(lift).into_iter().chain(then);
        let pipeline = Pipeline::parse(&stages.collect(), &mut Names::new())?;
        let mut reading = Session::default();
        let cursor = at.backend.read(&mut reading, at.context, aggregate(lift.host(), pipeline)).await?;
        Ok(Rows { reading, cursor: Some(cursor) })
    }

    async fn next(&mut self, at: &mut Access<'_>) -> Result<Option<Vec<Doc<'static>>>> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        let batch = cursor.next(&mut self.reading, at.context, BATCH).await?;
        if batch.exhausted {
            self.cursor = None;
        }
        Ok(Some(batch.documents))
    }
}

/// Items that the child collection would refuse: by its validator, or by what a constraint is about to ask.
async fn count_refused(
    at: &mut Access<'_>,
    lift: &Lift<'_>,
    declared: &[Rule],
    counts: &mut LiftCounts,
    notes: &mut Vec<String>,
) -> Result<()> {
    let asked = match Requirements::look(at, lift.source(), declared).await? {
        Found::Nothing => return Ok(()),
        Found::Unreadable => {
            notes.push(format!(
                "the validator of {} is one that only MongoDB can read: an item that it refuses stops the lift where it is",
                counts.into
            ));
            return Ok(());
        }
        Found::Required(asked) => asked,
    };
    let (mut number, mut example) = (0, None);
    let mut rows = Rows::open(at, lift, []).await?;
    while let Some(some) = rows.next(at).await? {
        let value = |row: &Doc<'static>, name: &str| row.get(name).unwrap_or(Value::Missing);
        // Each with an `_id` that no other of them has.
        let child = |(place, row): (u64, &Doc<'static>)| {
            lift.child(&value(row, "_id"), &value(row, "key"), place, &value(row, "item"))
                .map(|child| (value(row, "_id").into_owned(), child.document))
        };
        // What cannot become a document is counted elsewhere.
        let (of, children): (Vec<_>, Vec<_>) = (0..).zip(&some).filter_map(|row| child(row).ok()).unzip();
        for (host, why) in of.into_iter().zip(asked.refuses(at, children).await?) {
            let Some(why) = why else { continue };
            number += 1;
            if example.is_none() {
                (example, counts.why) = (Some(host), Some(why));
            }
        }
    }
    counts.note("refused", number, example);
    Ok(())
}

fn is_taken(lift: &Lift<'_>, row: &Doc<'static>) -> bool {
    let value = |name: &str| row.get(name).unwrap_or(Value::Missing);
    let stored = match field_of_document(row, &Path::new("stored").parts) {
        Value::Array(stored) => stored.iter().next().map(Value::into_owned),
        _ => None,
    };
    match (lift.child(&value("_id"), &value("key"), 0, &value("item")), stored) {
        (Ok(child), Some(Value::Document(stored))) => !holds(&stored, &child.document),
        // What cannot become a document is counted elsewhere.
        _ => false,
    }
}

/// The rule that stores the children in another form.
fn shape_of(life: &Life, rule: &Rule) -> Option<CatalogRule> {
    let source = &rule.link()?.source;
    life.entries().into_iter().find(|entry| entry.rule.host == *source && entry.rule.shape().is_some())
}

/// Items that the form of the child collection does not take.
async fn count_unstorable(
    at: &mut Access<'_>,
    lift: &Lift<'_>,
    shaped: &CatalogRule,
    counts: &mut LiftCounts,
) -> Result<()> {
    let Some(shape) = shaped.rule.shape() else { return Ok(()) };
    let Some(assess) = shape.assess()? else { return Ok(()) };
    let key = lift.by.parts.iter().rev().fold(field("key"), |inner, part| object([(&*part.name, inner)]));
    let child = call("$replaceWith", call_with("$mergeObjects", [object([("_id", field("_id"))]), field("item"), key]));
    let documents = call("$match", object([("item", call("$type", Value::from("object")))]));
    let stages = unwound(lift).into_iter().chain([documents, child]).collect();
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?.then(assess);
    let rows = at.all(aggregate(lift.host(), pipeline)).await?;
    let losses = shape.losses(&rows);
    counts.note("unstorable", losses.misfits, losses.misfit.map(|(id, _)| id));
    Ok(())
}

/// Windows that somebody keeps by hand: what they become is known when the items are documents, so they are replaced with a word only.
async fn windows(at: &mut Access<'_>, rule: &Rule) -> Result<Option<Refusal>> {
    let has = call("$match", object([(&*rule.field.dotted(), call("$exists", Value::Bool(true)))]));
    let stages: Array<'static> = [has, call("$count", Value::from("n"))].into_iter().collect();
    let rows = at.all(aggregate(&rule.host, Pipeline::parse(&stages, &mut Names::new())?)).await?;
    let number = rows.first().map_or(0, |row| u64::try_from(catalog::long(row.get("n"))).unwrap_or(0));
    let have = if number == 1 { "has" } else { "have" };
    let reason = format!(
        "rule {}: {} {have} a `{}`, which the window replaces when the items are documents",
        rule.name,
        documents(number),
        rule.field
    );
    Ok((number > 0).then_some(Refusal { need: Need::Overwrite, reason }))
}

async fn run(
    at: &mut Access<'_>,
    lift: &Lift<'_>,
    stages: impl IntoIterator<Item = Value<'static>>,
) -> Result<Vec<Doc<'static>>> {
    let pipeline = Pipeline::parse(&stages.into_iter().collect(), &mut Names::new())?;
    at.all(aggregate(lift.host(), pipeline)).await
}
