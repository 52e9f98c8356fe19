//! The bucket's entry in `SHAPES`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "bucket",
    help: "Many documents of a series and a period stored as one.",
    page: "docs/concepts/bucket.md",
    example: "examples/bucket",
    blocks: &[
        "reviews:\n  bucket: { into: review_days, time: at, by: [productId], every: day, at_most: 3 }",
        // The series says nothing about links; figures are kept.
        "reviews:\n  bucket: { into: review_months, time: at, by: [shelf], every: month, at_most: 10, reading_id: indexed, stats: { weight: [min, max, avg] } }",
        "visits:\n  bucket: { into: visit_months, time: at, by: [productId], every: month, slot: day, sum: { n: n } }",
        "visits:\n  bucket: { into: visit_years, time: at, by: [productId], every: year, slot: day, sum: { n: n }, layout: field_names }",
    ],
};
