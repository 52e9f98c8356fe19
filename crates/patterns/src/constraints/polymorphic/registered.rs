//! The constraint in [`crate::constraints::CONSTRAINTS`], and the declarations that prove it.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "polymorphic",
    help: "Documents of several kinds, each with required fields, a schema and indexes of its own.",
    page: "docs/concepts/polymorphic.md",
    example: "examples/polymorphic",
    blocks: BLOCKS,
};

/// Kinds of the shop's sales, which are sources of sums and hosts of copies: what clients and other rules write must pass.
const BLOCKS: &[&str] = &[
    "sales:\n  polymorphic:\n    discriminator: status\n    kinds: { open: {}, paid: { schema: { properties: { sold: { bsonType: object } } }, indexes: [{ key: { sold.amount: 1 } }] } }\n    text: { note: 2 }",
];
