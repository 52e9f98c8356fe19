//! The names in a bucket: top-level fields of a reading, and names that do not meet in the stored document.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::names;
use crate::shapes::bucket::{Body, Bucket, Layout, Slot};
use std::collections::HashSet;
use std::sync::Arc;

/// The name of a top-level field that a reading may have.
pub(super) fn top(item: &BlockItem<'_>, example: &str, findings: &mut Findings) -> Option<Arc<str>> {
    let text = item.text("a field", example, findings)?;
    sound(text, item, findings).then(|| text.into())
}

/// The name that something gets in the stored document.
pub(super) fn stored(item: &BlockItem<'_>, example: &str, findings: &mut Findings) -> Option<Arc<str>> {
    let text = item.text("a name", example, findings)?;
    let reason = match text {
        "_id" | "_pleach" => Err(format!("`{text}` has a meaning of its own")),
        _ => names::field(text),
    };
    if let Err(reason) = &reason {
        let name = text.escape_debug();
        findings.error(
            &item.at,
            format!("`{name}` cannot be the name of a stored field: {reason}"),
            "write a plain name",
        );
    }
    reason.is_ok().then(|| text.into())
}

/// Whether a reading can have a field of that name; if not, it is a finding.
pub(super) fn sound(name: &str, item: &BlockItem<'_>, findings: &mut Findings) -> bool {
    let (reason, hint) = if name.contains('.') {
        (
            "a bucket takes top-level fields only".to_owned(),
            "have writers put it at the top of the document, under a name without dots".to_owned(),
        )
    } else if let Err(reason) = names::field(name) {
        (reason, "write a plain name of a field".to_owned())
    } else if name == "_id" || name == "_pleach" {
        (format!("`{name}` has a meaning of its own"), "name another field".to_owned())
    } else {
        return true;
    };
    findings.error(&item.at, format!("`{}: {}`: {reason}", item.key, name.escape_debug()), hint);
    false
}

/// Names that would meet in the stored document or in a logical one.
pub(super) fn distinct(bucket: &Bucket, block: &Block<'_>, findings: &mut Findings) {
    let fields: HashSet<&str> = bucket.by.iter().map(|series| &*series.field).collect();
    let series = |name: &str| fields.contains(name);
    let reading = |name: &str| *bucket.time == *name || series(name);
    if series(&bucket.time) {
        findings.error(
            &block.key_at("by"),
            format!("`{}` is both the time and a series", bucket.time),
            "leave it out of `by`: buckets are apart by time anyway",
        );
    }
    let every = bucket.every.name();
    let own: &[&str] = match &bucket.body {
        // A packed bucket stores no series under its name.
        _ if bucket.packed => &[],
        Body::Readings(_) => &[every, "n", "count", "readings", "stats"],
        Body::Slots(_) => &[every, "items"],
    };
    for series in bucket.by.iter().filter(|series| own.contains(&&*series.field)) {
        findings.error(
            &block.key_at("by"),
            format!("`{}` is a field of the bucket itself, beside the series", series.field),
            "have writers call the series' field something else",
        );
    }
    match &bucket.body {
        Body::Readings(readings) => {
            for (field, _) in readings.stats.iter().filter(|(field, _)| reading(field)) {
                findings.error(
                    &block.key_at("stats"),
                    format!(
                        "`{field}` is the same for the whole bucket or its time: there is nothing to keep figures of"
                    ),
                    "name fields of the readings other than `time` and `by`",
                );
            }
            for (field, _) in readings.stats.iter().filter(|(field, _)| **field == *readings.unit.name) {
                findings.error(
                    &block.key_at("unit"),
                    format!("`{field}` is a field of the readings: `stats` names it"),
                    "keep the offset under another name",
                );
            }
        }
        Body::Slots(slots) => {
            let by_field = match &slots.slot {
                Slot::Field { field, .. } => Some(field),
                Slot::Time(_) => None,
            };
            if let Some(field) = by_field.filter(|field| reading(field)) {
                findings.error(
                    &block.key_at("slot"),
                    format!("`{field}` is a series or the time already, and so the same for the whole bucket"),
                    "name another field, or a unit of time",
                );
            }
            for (logical, short) in &slots.sums {
                if reading(logical) || by_field == Some(logical) {
                    findings.error(
                        &block.key_at("sum"),
                        format!("`{logical}` tells the slots apart and cannot be added up"),
                        "name the fields that hold amounts",
                    );
                }
                let beside = by_field.unwrap_or(&bucket.time);
                if slots.layout == Layout::Array && short == beside {
                    findings.error(
                        &block.key_at("sum"),
                        format!("`{short}` stands in the elements of the array already"),
                        "give the sum another short name",
                    );
                }
            }
        }
    }
}
