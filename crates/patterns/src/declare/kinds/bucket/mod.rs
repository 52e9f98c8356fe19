//! Bucket: readings of one series and period in one stored document.
//!
//! Before: `sensor_data { _id, sensorId: 7, ts: 10:05, temp: 21.5 }`, millions of them.
//! After: `sensor_hours { _id, sensorId: 7, hour: 10:00, count: 60, readings: [{ m: 5, temp: 21.5 }, …] }`, and `sensor_data` is a
//! view that gives the readings.

mod grammar;
mod names;
mod normal;
mod readings;
mod slots;

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::extended_reference::word;
use crate::declare::kinds::{DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType};
use crate::declare::names::collection;
use crate::declare::normal as declared;
use crate::declare::tree::NodeContent;
use crate::rule::{ClientWrites, Kind, Rule};
use crate::shapes::bucket::{Body, Bucket, BucketShape, Layout, Period, Series};
use document::op::Namespace;
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "bucket",
    title: "Bucket",
    help: "Stores many small time-series documents as few larger ones; clients still see one document per reading.",
    problem: "Millions of tiny documents: more index and overhead than data.",
    mechanism: "A reading is added to the open bucket of its series and period; the declared name is a view that gives single readings.",
    symptom: "Very many small documents with a series and a time, mostly inserted in order and read by ranges of time.",
    when_not: "Readings are mostly read or changed one by one by their own id.",
    example: "sensor_data:\n  bucket: { time: ts, by: [sensorId], every: hour, at_most: 60 }",
    status: Status::There(Definition { per: Per::Collection, keys: KEYS, forms: FORMS, lower }),
};

const LAYOUTS: &[(&str, Layout)] = &[("array", Layout::Array), ("field_names", Layout::FieldNames)];
/// Whether the stored `_id` is packed.
const BUCKET_IDS: &[(&str, bool)] = &[("fields", false), ("packed", true)];

const KEYS: &[KeyDef] = &[
    KeyDef {
        name: "at_most",
        help: "A bucket with so many readings is full, and the next one begins; 1000 if omitted.",
        shape: ValueType::Number { most: readings::MOST },
    },
    KeyDef {
        name: "bucket_id",
        help: "Whether a bucket's `_id` is a document of its series and period (the default), or both packed into bytes.",
        shape: ValueType::Choice(&["fields", "packed"]),
    },
    KeyDef {
        name: "by",
        help: "The fields that tell series apart; `{ field, as: hex }` stores hex digits as bytes.",
        shape: ValueType::List {
            of: &ValueType::Either(&[
                ValueType::Name,
                ValueType::Record(&[
                    KeyDef { name: "as", help: "How it is stored.", shape: ValueType::Choice(&["hex"]) },
                    KeyDef { name: "field", help: "The field.", shape: ValueType::Name },
                ]),
            ]),
            least: 0,
        },
    },
    KeyDef {
        name: "every",
        help: "The span of one bucket, in UTC.",
        shape: ValueType::Choice(&["minute", "hour", "day", "month", "quarter", "year"]),
    },
    KeyDef {
        name: "inexact",
        help: "Whether a reading that is no whole unit is rejected (the default) or its time truncated.",
        shape: ValueType::Choice(&["reject", "truncate"]),
    },
    KeyDef {
        name: "into",
        help: "The collection that the buckets are stored in; the collection's name and `_buckets` if omitted.",
        shape: ValueType::Collection,
    },
    KeyDef {
        name: "layout",
        help: "Whether slots are elements of an array (the default) or fields under names of their own.",
        shape: ValueType::Choice(&["array", "field_names"]),
    },
    KeyDef {
        name: "reading_id",
        help: "Whether the `_id` of a reading is stored (the default), stored and indexed, or made from its series and time.",
        shape: ValueType::Choice(&["stored", "indexed", "time"]),
    },
    KeyDef {
        name: "slot",
        help: "One entry per unit of time, or per value of a bounded field, holding sums instead of single readings.",
        shape: ValueType::Either(&[
            ValueType::Choice(&["second", "minute", "hour", "day", "month"]),
            ValueType::Record(&[
                KeyDef {
                    name: "at_most",
                    help: "How many of them a bucket may have.",
                    shape: ValueType::Number { most: slots::MOST },
                },
                KeyDef { name: "field", help: "The field.", shape: ValueType::Name },
                KeyDef { name: "keys", help: "What its values look like.", shape: ValueType::Regex },
            ]),
        ]),
    },
    KeyDef {
        name: "stats",
        help: "Figures over fields of a bucket's readings: `{ temp: [min, max, avg] }` keeps `stats.minTemp` and so on.",
        shape: ValueType::Map(&ValueType::List {
            of: &ValueType::Choice(&["avg", "count", "last", "max", "min", "sum"]),
            least: 1,
        }),
    },
    KeyDef {
        name: "sum",
        help: "What a slot adds up: a list of fields, or a map from the field to a short name that is stored instead.",
        shape: ValueType::Either(&[
            ValueType::List { of: &ValueType::Name, least: 1 },
            ValueType::Map(&ValueType::Name),
        ]),
    },
    KeyDef { name: "time", help: "The field that holds a reading's date.", shape: ValueType::Name },
    KeyDef {
        name: "unit",
        help: "In what a reading's distance from the period's start is kept, and under which name: `{ minute: m }`; `{ ms: t }` if omitted.",
        shape: ValueType::Pair(&["ms", "second", "minute", "hour", "day"]),
    },
];

const FORMS: &[KeySet] = &[
    KeySet {
        required: &["time", "by", "every"],
        optional: &["into", "at_most", "unit", "inexact", "reading_id", "stats", "layout", "bucket_id"],
    },
    KeySet { required: &["time", "by", "every", "slot", "sum"], optional: &["into", "layout", "bucket_id"] },
];

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    let before = findings.errors();
    block.only(KEYS, findings);
    let into = into(block, target, findings);
    let time = block
        .require("time", "time: <the field that holds the date>", findings)
        .and_then(|item| names::top(&item, "ts", findings));
    let by = block
        .require("by", "by: [<the field that tells series apart>]", findings)
        .and_then(|item| series(&item, findings));
    let every = block
        .require("every", "every: <the span of a bucket, such as hour or day>", findings)
        .and_then(|item| item.choice(&Period::ALL.map(|period| (period.name(), period)), findings));
    let layout = block.get("layout").map_or(Some(Layout::Array), |item| item.choice(LAYOUTS, findings));
    let packed = block.get("bucket_id").map_or(Some(false), |item| item.choice(BUCKET_IDS, findings));
    let body = match ["slot", "sum"].iter().any(|key| block.get(key).is_some()) {
        true => slots::read(block, every, layout, findings).map(Body::Slots),
        false => {
            needs_slots(block, layout, packed, findings);
            readings::read(block, every, findings).map(Body::Readings)
        }
    };
    let bucket = Bucket { into: into?, time: time?, by: by?, every: every?, body: body?, packed: packed? };
    packable(&bucket, block, findings);
    names::distinct(&bucket, block, findings);
    if findings.errors() > before {
        return None;
    }
    match &bucket.body {
        Body::Readings(readings) => readings::note(readings, block, findings),
        Body::Slots(_) => slots::note(block, findings),
    }
    Some(Rule {
        name: target.name.clone(),
        pattern: PATTERN.name,
        host: target.host.clone(),
        field: target.field.clone(),
        lift: None,
        client_writes: ClientWrites::Override,
        declaration: declared::collection_rule(&target.host, PATTERN.name, normal::block(&bucket)),
        kind: Kind::Shape(Arc::new(BucketShape::new(Arc::new(bucket)))),
    })
}

fn into(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Namespace> {
    let (database, logical) = (&target.host.db, &target.host.collection);
    let Some(item) = block.get("into") else {
        let name = format!("{logical}_buckets");
        if let Err(reason) = collection(database, &name) {
            findings.error(
                &block.at,
                format!("`{name}` cannot be the stored collection: {reason}"),
                "name it: `into: <a shorter name>`",
            );
            return None;
        }
        return Some(Namespace::new(database, &name));
    };
    let name = item.collection(database, "sensor_hours", findings)?;
    if *name == **logical {
        findings.error(
            &item.at,
            format!("`into: {name}` is the collection itself, which clients will see as a view of the buckets"),
            format!("store the buckets under another name: `into: {name}_buckets`, or leave `into` out"),
        );
        return None;
    }
    Some(Namespace::new(database, name))
}

/// `by: [sensorId, { field: key, as: hex }]`.
fn series(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Vec<Series>> {
    const EXAMPLE: &str = "[sensorId]";
    let NodeContent::List(items) = &item.node.content else {
        item.expected("a list of fields", EXAMPLE, findings);
        return None;
    };
    let mut all: Vec<Series> = Vec::new();
    let mut seen = HashSet::new();
    let before = findings.errors();
    for (index, node) in items.iter().enumerate() {
        let at = item.at.inside(&index.to_string(), node.spot);
        let own = BlockItem { node, at: at.clone(), key: "by" };
        let found = match &node.content {
            NodeContent::Map(_) => hex(&own, findings),
            _ => names::top(&own, EXAMPLE, findings).map(|field| Series { field, hex: false }),
        };
        let Some(found) = found else { continue };
        match seen.insert(found.field.clone()) {
            true => all.push(found),
            false => findings.error(&at, format!("`{}` is there twice", found.field), "keep one of them"),
        }
    }
    (findings.errors() == before).then_some(all)
}

/// `{ field: key, as: hex }`.
fn hex(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Series> {
    const FIELD: &str = "field: <the field>";
    let known = ["as", "field"];
    let block = Block::open(item.node, item.at.clone(), "write `{ field: key, as: hex }`", findings)?;
    for entry in block.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        block.unknown(&entry.key, known.into_iter(), known.into_iter(), findings);
    }
    let field = block.require("field", FIELD, findings).and_then(|item| names::top(&item, "key", findings));
    let hex = block.require("as", "as: hex", findings).and_then(|item| item.choice(&[("hex", true)], findings));
    Some(Series { field: field?, hex: hex? })
}

/// What only slots can have.
fn needs_slots(block: &Block<'_>, layout: Option<Layout>, packed: Option<bool>, findings: &mut Findings) {
    if layout == Some(Layout::FieldNames) {
        findings.error(
            &block.key_at("layout"),
            "`layout: field_names` without `slot`: a reading has no name to be stored under",
            "say what a slot is and what it adds up: `slot: day` and `sum: { amount: a }`",
        );
    }
    if packed == Some(true) {
        findings.error(
            &block.key_at("bucket_id"),
            "`bucket_id: packed` without `slot`: a bucket of readings has a number beside its series and period, and is found by them",
            "leave out `bucket_id`, or declare slots: `slot: day` and `sum: { amount: a }`",
        );
    }
}

/// Packed bytes hold one series of digits and the period.
fn packable(bucket: &Bucket, block: &Block<'_>, findings: &mut Findings) {
    if !bucket.packed || matches!(&*bucket.by, [Series { hex: true, .. }]) {
        return;
    }
    let found = match &*bucket.by {
        [series] => format!("`{}` is not", series.field),
        by => format!("there are {} fields", by.len()),
    };
    findings.error(
        &block.key_at("bucket_id"),
        format!("`bucket_id: packed` needs exactly one series that is stored as bytes, and {found}"),
        "write `by: [{ field: key, as: hex }]`, or leave out `bucket_id`",
    );
}
