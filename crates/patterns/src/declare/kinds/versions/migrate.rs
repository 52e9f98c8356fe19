//! `migrate: { on_read: true, background: true, hours: "01:00-05:00", rate: 2000/s }`.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::{KeyDef, ValueType};
use crate::declare::tree::NodeContent;
use crate::mql::object;
use crate::rule::lens::Migrate;
use document::Value;

pub(super) const KEYS: &[KeyDef] = &[
    KeyDef {
        name: "background",
        help: "Whether `apply` brings all stored documents to the newest version; true if omitted.",
        shape: ValueType::Flag,
    },
    KeyDef {
        name: "hours",
        help: "The hours of the day, in UTC, in which the background migration works: `01:00-05:00`.",
        shape: ValueType::Word,
    },
    KeyDef {
        name: "on_read",
        help: "Whether an old document is written back in the newest version after it was read; false if omitted.",
        shape: ValueType::Flag,
    },
    KeyDef {
        name: "rate",
        help: "How many documents the background migration writes in a second at most: `2000/s`.",
        shape: ValueType::Word,
    },
];

pub(super) fn read(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Migrate> {
    let what = "write `migrate: { on_read: true }`";
    let block = Block::open(item.node, item.at.clone(), what, findings)?;
    block.only(KEYS, findings);
    let mut migrate = Migrate::default();
    let before = findings.errors();
    if let Some(flag) = block.get("on_read").and_then(|item| item.flag(findings)) {
        migrate.on_read = flag;
    }
    if let Some(flag) = block.get("background").and_then(|item| item.flag(findings)) {
        migrate.background = flag;
    }
    migrate.hours = block.get("hours").and_then(|item| hours(&item, findings));
    migrate.rate = block.get("rate").and_then(|item| rate(&item, findings));
    for key in ["hours", "rate"] {
        if !migrate.background && block.get(key).is_some() {
            let message = format!("`{key}` is about the background migration, and `background` is false");
            findings.error(&block.key_at(key), message, format!("leave out `{key}`, or write `background: true`"));
        }
    }
    (findings.errors() == before).then_some(migrate)
}

pub(super) fn normal(migrate: &Migrate) -> Value<'static> {
    let hours = migrate.hours_text().map(Value::string);
    object([
        ("on_read", Value::Bool(migrate.on_read)),
        ("background", Value::Bool(migrate.background)),
        ("hours", hours.unwrap_or(Value::Missing)),
        ("rate", migrate.rate.map_or(Value::Missing, |rate| Value::string(format!("{rate}/s")))),
    ])
}

fn hours(item: &BlockItem<'_>, findings: &mut Findings) -> Option<(u16, u16)> {
    let text = item.text("hours of the day", "\"01:00-05:00\"", findings)?;
    let found = text.split_once('-').and_then(|(from, to)| Some((minutes(from)?, minutes(to)?)));
    let found = found.filter(|(from, to)| from != to);
    if found.is_none() {
        findings.error(
            &item.at,
            format!("`hours: {}` is no span of a day", text.escape_debug()),
            "write two times in UTC, which may lie on both sides of midnight: `hours: \"23:00-05:00\"`",
        );
    }
    found
}

/// `01:30` as minutes since midnight; 24:00 is midnight too.
fn minutes(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number =
        |text: &str| text.parse::<u16>().ok().filter(|_| text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()));
    match (number(hour)?, number(minute)?) {
        (24, 0) => Some(0),
        (hour @ 0..24, minute @ 0..60) => Some(hour * 60 + minute),
        _ => None,
    }
}

fn rate(item: &BlockItem<'_>, findings: &mut Findings) -> Option<u32> {
    let found = match &item.node.content {
        NodeContent::Scalar(Value::String(text)) => {
            text.as_str().strip_suffix("/s").and_then(|number| number.trim().parse().ok())
        }
        _ => None,
    };
    let found = found.filter(|rate| (1..=1_000_000).contains(rate));
    if found.is_none() {
        findings.error(
            &item.at,
            "`rate` must be a number of documents in a second, from 1 to 1000000",
            "write `rate: 2000/s`",
        );
    }
    found
}
