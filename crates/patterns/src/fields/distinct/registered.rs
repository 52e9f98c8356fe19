//! The entry of distinct values in `FIELDS`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "distinct",
    help: "How many different values child documents have in a field.",
    page: "docs/concepts/computed.md",
    example: "examples/computed",
    blocks: &[
        "products:\n  computed:\n    ratings: { distinct: rating, from: reviews, by: productId }",
        "products:\n  computed:\n    goodWeights: { distinct: weight, from: reviews, by: productId, where: { rating: { $gt: 2 } } }",
        "products:\n  computed:\n    lateWeights: { distinct: weight, from: reviews, by: productId, lag: 1ms }",
        // Dotted on both sides.
        "products:\n  computed:\n    stats.amounts: { distinct: sold.amount, from: sales, by: sold.productId }",
        "products:\n  computed:\n    visitDays: { distinct: at, from: visits, by: productId }",
        // By each element, of each element.
        "products:\n  computed:\n    boughtWith: { distinct: items.productId, from: baskets, by: productIds, each: true, each_value: true }",
        "days:\n  computed:\n    reviewed: { distinct: productId, from: reviews, by: { $dateTrunc: { date: $at, unit: day } }, create: true }",
    ],
};
