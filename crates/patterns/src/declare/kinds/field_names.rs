//! Field names: a bounded discriminator stored as the name of a field instead of in every array element.

use crate::declare::kinds::{Pattern, Status};

pub(super) const PATTERN: Pattern = Pattern {
    name: "field_names",
    title: "Field names",
    help: "Stores each slot of a bucket under its own name instead of as an array element.",
    problem: "A date or a country code repeated in every element of an array costs more than the figures beside it.",
    mechanism: "A bucket with `layout: field_names`; a validator keeps the names to their grammar and number.",
    symptom: "A bounded discriminator repeated in every array element of many documents.",
    when_not: "The discriminator has no bound, or the index is already the bottleneck.",
    example: "events:\n  bucket:\n    { time: date, by: [key], every: quarter, slot: day, sum: { approved: a },\n      layout: field_names }",
    status: Status::Within { pattern: "bucket", written: "layout: field_names" },
};
