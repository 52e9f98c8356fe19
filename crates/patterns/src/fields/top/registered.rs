//! The window's entry in `FIELDS`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "top",
    help: "The first few child documents by an order, whole or some of their fields.",
    page: "docs/concepts/subset.md",
    example: "examples/subset",
    blocks: &[
        "products:\n  subset:\n    recentReviews: { from: reviews, by: productId, sort: { at: -1 }, keep: 3, fields: [rating, at] }",
        "products:\n  subset:\n    wholeReviews: { from: reviews, by: productId, sort: { at: 1 }, keep: 2 }",
        // Items that do not tell their order.
        "products:\n  subset:\n    topRatings: { from: reviews, by: productId, sort: { weight: -1 }, keep: 2, fields: { stars: rating } }",
        "products:\n  subset:\n    goodReviews: { from: reviews, by: productId, where: { rating: { $gt: 2 } }, sort: { rating: -1 }, keep: 2, fields: [rating] }",
        "products:\n  subset:\n    lateReviews: { from: reviews, by: productId, sort: { at: -1 }, keep: 2, fields: [at], lag: 1ms }",
        // Equal ones, told apart by `_id`.
        "products:\n  subset:\n    onShelf: { from: reviews, by: productId, sort: { shelf: 1, rating: -1 }, keep: 2, fields: { shelf: shelf, rating: rating, review: _id } }",
        // Dotted on both sides.
        "products:\n  subset:\n    lists.sales: { from: sales, by: sold.productId, sort: { sold.amount: -1 }, keep: 2, fields: { amount: sold.amount, status: status } }",
        // With what other rules keep in the children.
        "customers:\n  subset:\n    lastOrders: { from: orders, by: customerId, sort: { _id: -1 }, keep: 2, fields: { id: _id, buyer: buyer.name, n: n } }\norders:\n  extended_reference:\n    buyer: { from: customers, by: customerId, fields: [name] }",
    ],
};
