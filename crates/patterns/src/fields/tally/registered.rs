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
        // Of a field that another rule keeps.
        "customers:\n  computed:\n    spent: { sum: total, from: orders, by: customerId }\norders:\n  computed:\n    total: { expr: { $multiply: [{ $ifNull: [$n, 0] }, 2] } }",
    ],
};
