//! The keys of a bucket that holds single readings.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::bucket::names;
use crate::declare::spelling;
use crate::declare::tree::NodeContent;
use crate::shapes::bucket::{Grain, Inexact, Period, ReadingId, Readings, Stat, Unit};
use std::collections::HashSet;
use std::sync::Arc;

/// A bucket is one document, and each insert rewrites it.
pub(super) const MOST: u32 = 100_000;
const AT_MOST: u32 = 1_000;

const UNITS: [Grain; 5] = [Grain::Millisecond, Grain::Second, Grain::Minute, Grain::Hour, Grain::Day];
pub(super) const INEXACT: &[(&str, Inexact)] = &[("reject", Inexact::Reject), ("truncate", Inexact::Truncate)];
pub(super) const READING_IDS: &[(&str, ReadingId)] =
    &[("stored", ReadingId::Stored), ("indexed", ReadingId::Indexed), ("time", ReadingId::Time)];

pub(super) fn read(block: &Block<'_>, every: Option<Period>, findings: &mut Findings) -> Option<Readings> {
    let at_most = block.get("at_most").map_or(Some(AT_MOST), |item| item.number(MOST, "1000", findings));
    let unit = match block.get("unit") {
        Some(item) => unit(&item, every, findings),
        None => Some(Unit { size: Grain::Millisecond, name: "t".into() }),
    };
    let inexact = block.get("inexact").map_or(Some(Inexact::Reject), |item| item.choice(INEXACT, findings));
    let reading_id = block.get("reading_id").map_or(Some(ReadingId::Stored), |item| item.choice(READING_IDS, findings));
    let stats = block.get("stats").map_or(Some(Vec::new()), |item| stats(&item, block, findings));
    Some(Readings { at_most: at_most?, unit: unit?, inexact: inexact?, reading_id: reading_id?, stats: stats? })
}

/// What is worth knowing about a valid one.
pub(super) fn note(readings: &Readings, block: &Block<'_>, findings: &mut Findings) {
    match readings.reading_id {
        // SEMANTICS R14: as with MongoDB's own time series.
        ReadingId::Stored | ReadingId::Indexed => findings.note(
            &block.key_at("reading_id"),
            "two readings may have the same `_id`: it is stored inside a bucket, where no unique index reaches it",
            "nothing is lost by it; `reading_id: time` would refuse a second reading of a time, and drop the `_id`s that documents have",
        ),
        ReadingId::Time => findings.note(
            &block.key_at("reading_id"),
            "the `_id`s that documents have, and those that clients send, are dropped: `reading_id: time` makes `_id` from series and time",
            "`reading_id: stored`, the default, keeps them",
        ),
    }
}

/// `unit: { minute: m }`.
fn unit(item: &BlockItem<'_>, every: Option<Period>, findings: &mut Findings) -> Option<Unit> {
    const EXAMPLE: &str = "{ minute: m }";
    let NodeContent::Map(entries) = &item.node.content else {
        item.expected("a map of one unit to a name", EXAMPLE, findings);
        return None;
    };
    let [_] = &**entries else {
        findings.error(
            &item.at,
            format!("`unit` has {} entries, and a reading has one offset", entries.len()),
            format!("write `unit: {EXAMPLE}`"),
        );
        return None;
    };
    let block = Block { entries, at: item.at.clone() };
    let name = block.items().next()?;
    let words = || UNITS.iter().map(|unit| unit.name());
    let Some(size) = UNITS.iter().copied().find(|unit| unit.name() == name.key) else {
        block.unknown(name.key, words(), words(), findings);
        return None;
    };
    if let Some(every) = every.filter(|every| every.units(size) < 2) {
        let finer = UNITS.iter().filter(|unit| every.units(**unit) > 1).map(|unit| unit.name());
        findings.error(
            &block.key_at(name.key),
            format!("a bucket of one {} has no two {}s to tell apart", every.name(), name.key),
            format!("use a finer unit: {}", spelling::one_of(finer)),
        );
        return None;
    }
    Some(Unit { size, name: names::stored(&name, "m", findings)? })
}

/// `stats: { temp: [min, max] }`.
fn stats(item: &BlockItem<'_>, block: &Block<'_>, findings: &mut Findings) -> Option<Vec<(Arc<str>, Vec<Stat>)>> {
    const EXAMPLE: &str = "write `stats: { temp: [min, max, avg] }`";
    let fields = Block::open(item.node, block.key_at("stats"), EXAMPLE, findings)?;
    let before = findings.errors();
    let mut all: Vec<(Arc<str>, Vec<Stat>)> = Vec::new();
    let mut kept: HashSet<String> = HashSet::new();
    for field in fields.items() {
        let key = BlockItem { at: fields.key_at(field.key), ..field.clone() };
        if !names::sound(field.key, &BlockItem { key: "stats", ..key.clone() }, findings) {
            continue;
        }
        let nodes = match &field.node.content {
            NodeContent::List(nodes) if !nodes.is_empty() => nodes,
            NodeContent::List(_) => {
                findings.error(&field.at, format!("`{}` lists no figure", field.key), EXAMPLE);
                continue;
            }
            _ => {
                field.expected("a list of figures", "[min, max, avg]", findings);
                continue;
            }
        };
        let mut figures = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let own = BlockItem { node, at: field.at.inside(&index.to_string(), node.spot), key: field.key };
            let Some(stat) = own.choice(&Stat::ALL.map(|stat| (stat.name(), stat)), findings) else { continue };
            let name = stat.of(field.key);
            match kept.contains(&name) {
                true => findings.error(&own.at, format!("`stats.{name}` is there twice"), "keep one of them"),
                false => figures.push(stat),
            }
            kept.insert(name);
        }
        all.push((field.key.into(), figures));
    }
    (findings.errors() == before).then_some(all)
}
