//! The extreme's entry in `FIELDS`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "extreme",
    help: "The smallest or largest value of a field of child documents.",
    page: "docs/concepts/computed.md",
    example: "examples/computed",
    blocks: &[
        "products:\n  computed:\n    bestRating: { max: rating, from: reviews, by: productId }",
        "products:\n  computed:\n    worstRating: { min: rating, from: reviews, by: productId }",
        "products:\n  computed:\n    worstGood: { min: rating, from: reviews, by: productId, where: { rating: { $gt: 2 } } }",
        "products:\n  computed:\n    lateBest: { max: rating, from: reviews, by: productId, lag: 1ms }",
        // Dotted on both sides.
        "products:\n  computed:\n    stats.mostPaid: { max: sold.amount, from: sales, by: sold.productId, where: { status: paid } }",
        "products:\n  computed:\n    lastVisit: { max: at, from: visits, by: productId }",
        // Of documents that are made with their first child, and per element of its key.
        "days:\n  computed:\n    heaviest: { max: weight, from: reviews, by: { $dateTrunc: { date: $at, unit: day } }, create: true }",
        "wanted:\n  computed:\n    firstBasket: { min: _id, from: baskets, by: productIds, each: true, create: true }",
        // Of a field that another rule keeps.
        "customers:\n  computed:\n    largestOrder: { max: doubled, from: orders, by: customerId }\norders:\n  computed:\n    doubled: { expr: { $multiply: [{ $ifNull: [$n, 0] }, 2] } }",
    ],
};
