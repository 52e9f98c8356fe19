//! Schema versioning: documents of several shapes in one collection, read and written in one.

use crate::declare::kinds::{Pattern, Status};

pub(super) const PATTERN: Pattern = Pattern {
    name: "versions",
    title: "Schema versioning",
    help: "Lets documents of older and newer shapes live in one collection, each client reading and writing one shape.",
    problem: "A change of the schema needs a migration of all documents before the first client may use it.",
    mechanism: "Steps describe each change both ways; reads give the newest shape, and a background migration rewrites the rest.",
    symptom: "Old documents after a schema change, and code that checks for both shapes.",
    when_not: "The collection is small enough to be rewritten while nobody writes to it.",
    example: "users:\n  versions:\n    field: schemaVersion\n    steps: [{ rename: { phone: phoneNumber } }]",
    status: Status::NotYet,
};
