//! The entry of versions in `LENSES`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "lens",
    help: "Documents of several versions in one collection, each seen as one of the newest.",
    page: "docs/concepts/versions.md",
    example: "examples/versions",
    blocks: &[
        // A host of fields, and a source of copies.
        "products:\n  versions:\n    field: v\n    steps:\n      - { rename: { amount: price } }\n      - { rename: { expense: cost } }\n    migrate: { background: false }",
        "customers:\n  versions:\n    field: v\n    steps: [[{ rename: { title: name } }, { rename: { rank: tier } }]]\n    migrate: { on_read: true }",
        // A source of folds, migrated so slowly that a crash meets it under way.
        "reviews:\n  versions: { field: v, steps: [{ rename: { stars: rating } }, { rename: { mass: weight, place: shelf } }], migrate: { rate: 200/s } }",
        // Kinds are told apart by a field that another version calls otherwise.
        "sales:\n  versions: { field: v, steps: [{ rename: { state: status } }, { rename: { item: sold } }] }",
    ],
};
