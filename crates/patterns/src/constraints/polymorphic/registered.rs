//! The constraint in [`crate::constraints::CONSTRAINTS`], and the declarations that prove it.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "polymorphic",
    help: "Documents of several kinds, each with required fields, a schema and indexes of its own.",
    page: "docs/concepts/polymorphic.md",
    example: "examples/polymorphic",
    blocks: BLOCKS,
};

const BLOCKS: &[&str] = &[
    "products:\n  polymorphic:\n    discriminator: type\n    kinds:\n      book: { required: [title, isbn], indexes: [{ key: { isbn: 1 }, unique: true }] }\n      electronics: { required: [title, brand] }",
    "reviews:\n  polymorphic:\n    discriminator: kind\n    unknown: accept\n    kinds:\n      rated: { required: [rating], schema: { properties: { rating: { bsonType: number } } } }",
];
