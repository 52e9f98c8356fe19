//! Outlier: the first items of an array stay embedded, the rest of the few huge ones goes to an overflow collection.

use crate::declare::kinds::{Pattern, Status};

pub(super) const PATTERN: Pattern = Pattern {
    name: "outlier",
    title: "Outlier",
    help: "Keeps the first items of an array embedded and moves the rest of the few huge ones to an overflow collection.",
    problem: "A few documents are a hundred times larger than the others and slow down every read that meets them.",
    mechanism: "Items past the limit are written to the overflow collection in the same transaction as a flag and a count.",
    symptom: "A few documents whose array is far longer than the average, near the limit of 16 MB.",
    when_not: "Most documents are large: then the array is better off in a collection of its own.",
    example: "users:\n  outlier:\n    followers: { keep: 500, overflow: follower_overflow }",
    status: Status::NotYet,
};
