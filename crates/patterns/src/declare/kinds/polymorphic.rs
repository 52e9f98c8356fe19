//! Polymorphic: documents of several kinds in one collection, each kind with its own rules.

use crate::declare::kinds::{Pattern, Status};

pub(super) const PATTERN: Pattern = Pattern {
    name: "polymorphic",
    title: "Polymorphic",
    help: "Checks documents of several kinds in one collection, each kind with its own required fields and indexes.",
    problem: "Things that are read together differ in shape, and nothing says which shapes there are.",
    mechanism: "A discriminator is required, each kind has its own schema, and partial indexes hold only their kind.",
    symptom: "Several similar collections that are searched together, or one collection with fields that only some documents have.",
    when_not: "The kinds are never read together.",
    example: "products:\n  polymorphic:\n    discriminator: type\n    kinds: { book: { required: [title, isbn] } }",
    status: Status::NotYet,
};
