//! The tally's entry in `FIELDS`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "tally",
    help: "The count of child documents, or the sum or average of a field of theirs.",
    page: "docs/concepts/computed.md",
    example: "examples/computed",
    blocks: &[
        "products:\n  computed:\n    reviewCount: { count: reviews, by: productId }",
        "products:\n  computed:\n    avgRating: { avg: rating, from: reviews, by: productId }",
        "products:\n  computed:\n    good: { sum: rating, from: reviews, by: productId, where: { rating: { $gt: 2 } } }",
        "products:\n  computed:\n    lateCount: { count: reviews, by: productId, lag: 1ms }",
        // Dotted on both sides.
        "products:\n  computed:\n    stats.paid: { sum: sold.amount, from: sales, by: sold.productId, where: { status: paid } }",
        "products:\n  computed:\n    visits: { sum: n, from: visits, by: productId }",
        // Of documents that are made with their first child: by a period, by several keys, late, by each element.
        "days:\n  computed:\n    reviews: { count: reviews, by: { $dateTrunc: { date: $at, unit: day } }, create: true }",
        "shelves:\n  computed:\n    weight: { avg: weight, from: reviews, by: { shelf: $shelf, rated: { $toLower: $productId } }, create: true }",
        "days:\n  computed:\n    late: { sum: rating, from: reviews, by: { $dateTrunc: { date: $at, unit: day } }, create: true, lag: 1ms }",
        "wanted:\n  computed:\n    baskets: { count: baskets, by: productIds, each: true, create: true }",
        // By another key, by an expression.
        "products:\n  computed:\n    inBaskets: { count: baskets, by: productIds, each: true }",
        "customers:\n  computed:\n    receipts: { count: receipts, by: email, match: email }",
        "products:\n  computed:\n    roughly: { sum: weight, from: reviews, by: { $floor: { $divide: [$weight, 2] } } }",
        // Of a field that another rule keeps.
        "customers:\n  computed:\n    spent: { sum: total, from: orders, by: customerId }\norders:\n  computed:\n    total: { expr: { $multiply: [{ $ifNull: [$n, 0] }, 2] } }",
    ],
};
