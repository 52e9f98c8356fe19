//! The keys of a bucket that holds sums per slot.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::bucket::{grammar, names};
use crate::declare::spelling;
use crate::declare::tree::NodeContent;
use crate::shapes::bucket::{Grain, Layout, Period, Slot, Slots};
use document::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// So many entries in one document are still read and written fast: a day has 1,440 minutes.
pub(super) const MOST: u32 = 1_500;

const UNITS: [Grain; 5] = [Grain::Second, Grain::Minute, Grain::Hour, Grain::Day, Grain::Month];

/// What readings have and slots have not, and why.
const OF_READINGS: &[(&str, &str)] = &[
    (
        "at_most",
        "a bucket has one entry per slot and is never full; the bound of a field stands in `slot: { field, keys, at_most }`",
    ),
    ("unit", "a slot is a unit itself, and dates are cut to it"),
    ("inexact", "dates are always cut to their slot"),
    ("reading_id", "the `_id` of a slot is its series and time, and it cannot be otherwise"),
    ("stats", "a slot keeps no single readings: name what it adds up in `sum`"),
];

/// What is worth knowing about a valid one.
pub(super) fn note(block: &Block<'_>, findings: &mut Findings) {
    findings.note(
        &block.key_at("slot"),
        "the `_id`s that documents have are dropped: a slot adds documents up, and its `_id` is made from series and time",
        "buckets without `slot` keep every document with its `_id`",
    );
}

pub(super) fn read(
    block: &Block<'_>,
    every: Option<Period>,
    layout: Option<Layout>,
    findings: &mut Findings,
) -> Option<Slots> {
    for (key, reason) in OF_READINGS.iter().filter(|(key, _)| block.get(key).is_some()) {
        findings.error(&block.key_at(key), format!("`{key}` beside `slot`: {reason}"), format!("leave out `{key}`"));
    }
    let slot = match block.get("slot") {
        Some(item) => slot(&item, every, findings),
        None => {
            findings.error(
                &block.key_at("sum"),
                "`sum` without `slot`: nothing says what is added up together",
                "add `slot: day`, or keep figures of single readings with `stats: { amount: [sum] }`",
            );
            None
        }
    };
    let sums = match block.get("sum") {
        Some(item) => sums(&item, block, findings),
        None => {
            findings.error(
                &block.key_at("slot"),
                "`slot` without `sum`: a slot holds sums, and none is named",
                "add `sum: { amount: a }`",
            );
            None
        }
    };
    Some(Slots { slot: slot?, sums: sums?, layout: layout? })
}

fn slot(item: &BlockItem<'_>, every: Option<Period>, findings: &mut Findings) -> Option<Slot> {
    if let NodeContent::Map(_) = &item.node.content {
        return field(item, findings);
    }
    let words = || UNITS.iter().map(|unit| unit.name());
    let either = format!("it is {}, or {BY_FIELD}", spelling::one_of(words()));
    let text = match &item.node.content {
        NodeContent::Scalar(Value::String(text)) => text.as_str(),
        _ => {
            findings.error(&item.at, format!("`slot` must be a word or a map, not {}", item.node.kind()), either);
            return None;
        }
    };
    let grain = UNITS.into_iter().chain([Grain::Millisecond]).find(|unit| unit.name() == text);
    let Some(grain) = grain else {
        let hint = match spelling::nearest(text, words()) {
            Some(meant) => format!("did you mean `{meant}`? I{}", either.trim_start_matches('i')),
            None => either,
        };
        findings.error(&item.at, format!("`slot` cannot be `{}`", text.escape_debug()), hint);
        return None;
    };
    let every = every?;
    let period = every.name();
    let possible = UNITS.iter().filter(|unit| (2..=u64::from(MOST)).contains(&every.units(**unit)));
    let hint = format!(
        "in a bucket of one {period} a slot is {}, or {BY_FIELD}",
        spelling::one_of(possible.map(|unit| unit.name()))
    );
    match every.units(grain) {
        0 | 1 => findings.error(&item.at, format!("`slot: {text}` is not finer than `every: {period}`"), hint),
        many if many > u64::from(MOST) => findings.error(
            &item.at,
            format!(
                "`slot: {text}` is too fine for `every: {period}`: {many} slots in one document, of at most {MOST}"
            ),
            hint,
        ),
        _ => return Some(Slot::Time(grain)),
    }
    None
}

const BY_FIELD: &str = "`{ field: country, keys: \"^[A-Z]{2}$\", at_most: 250 }`";

/// `{ field: country, keys: "^[A-Z]{2}$", at_most: 250 }`.
fn field(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Slot> {
    let known = ["at_most", "field", "keys"];
    let block = Block::open(item.node, item.at.clone(), &format!("write {BY_FIELD}"), findings)?;
    for entry in block.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        block.unknown(&entry.key, known.into_iter(), known.into_iter(), findings);
    }
    let field = block
        .require("field", "field: <the field that tells slots apart>", findings)
        .and_then(|item| names::top(&item, "country", findings));
    for (key, means) in [
        ("keys", "what its values look like: `keys: \"^[A-Z]{2}$\"`"),
        ("at_most", "how many different ones there can be: `at_most: 250`"),
    ] {
        let misspelt = block.entries.iter().any(|entry| spelling::nearest(&entry.key, [key]).is_some());
        if block.get(key).is_none() && !misspelt {
            findings.error(
                &block.at,
                format!("`slot` has no `{key}`: an unbounded discriminator would make a bucket grow for ever"),
                format!("say {means}"),
            );
        }
    }
    let keys = block.get("keys").and_then(|item| grammar::read(&item, findings));
    let at_most = block.get("at_most").and_then(|item| item.number(MOST, "250", findings));
    Some(Slot::Field { field: field?, keys: keys?, at_most: at_most? })
}

/// `sum: { approved: a }` or `sum: [approved]`.
fn sums(item: &BlockItem<'_>, block: &Block<'_>, findings: &mut Findings) -> Option<Vec<(Arc<str>, Arc<str>)>> {
    const EXAMPLE: &str = "write `sum: { approved: a, rejected: r }` or `sum: [approved, rejected]`";
    let before = findings.errors();
    let mut all: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    let (mut logicals, mut shorts) = (HashSet::new(), HashSet::new());
    let mut add = |item: &BlockItem<'_>, logical: Arc<str>, short: Arc<str>, findings: &mut Findings| {
        let twice = |name: &str, findings: &mut Findings| {
            findings.error(&item.at, format!("`{name}` is there twice"), "each sum has a name of its own");
        };
        if logicals.contains(&logical) {
            twice(&logical, findings);
        } else if shorts.contains(&short) {
            twice(&short, findings);
        } else {
            logicals.insert(logical.clone());
            shorts.insert(short.clone());
            all.push((logical, short));
        }
    };
    match &item.node.content {
        NodeContent::List(nodes) if !nodes.is_empty() => {
            for (index, node) in nodes.iter().enumerate() {
                let own = BlockItem { node, at: item.at.inside(&index.to_string(), node.spot), key: "sum" };
                if let Some(name) = names::top(&own, "[approved]", findings) {
                    add(&own, name.clone(), name, findings);
                }
            }
        }
        NodeContent::Map(entries) if !entries.is_empty() => {
            let fields = Block { entries, at: block.key_at("sum") };
            for own in fields.items() {
                let key = BlockItem { at: fields.key_at(own.key), key: "sum", ..own.clone() };
                let logical = names::sound(own.key, &key, findings).then(|| own.key.into());
                let short = names::stored(&own, "a", findings);
                if let (Some(logical), Some(short)) = (logical, short) {
                    add(&own, logical, short, findings);
                }
            }
        }
        NodeContent::List(_) | NodeContent::Map(_) => findings.error(&block.key_at("sum"), "`sum` is empty", EXAMPLE),
        _ => {
            let what = if item.node.is_empty() { "empty" } else { item.node.kind() };
            findings.error(&item.at, format!("`sum` must be a list or a map, not {what}"), EXAMPLE);
        }
    }
    (findings.errors() == before).then_some(all)
}
