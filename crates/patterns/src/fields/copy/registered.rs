//! The copy's entry in `FIELDS`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "copy",
    help: "A copy of some fields of a referenced document.",
    page: "docs/concepts/extended_reference.md",
    example: "examples/extended_reference",
    blocks: &[
        "orders:\n  extended_reference:\n    customer: { from: customers, by: customerId, fields: [name, tier] }",
        // Deferred, by another field than `_id`, frozen.
        "receipts:\n  extended_reference:\n    customer: { from: customers, by: customerId, fields: [name], when_deleted: unset, lag: 1ms }",
        "receipts:\n  extended_reference:\n    payer: { from: customers, by: email, match: email, fields: [name] }",
        "sales:\n  extended_reference:\n    product: { from: products, by: sold.productId, fields: [price], when_changed: keep }",
        // Every policy of deletes.
        "contracts:\n  extended_reference:\n    customer: { from: customers, by: customerId, fields: [name], when_deleted: reject }",
        "invoices:\n  extended_reference:\n    order: { from: orders, by: orderId, fields: { buyer: customer.name }, when_deleted: unset }",
        "notes:\n  extended_reference:\n    customer: { from: customers, by: customerId, fields: [name], when_deleted: cascade }",
        // Per element of an array, of sub-documents and of ids.
        "baskets:\n  extended_reference:\n    items.product: { from: products, by: items.productId, fields: [price] }",
        "baskets:\n  extended_reference:\n    seen: { from: products, by: productIds, each: true, fields: { now: price } }",
        // Of a document that may be stored in another form.
        "answers:\n  extended_reference:\n    review: { from: reviews, by: reviewId, fields: [rating], when_deleted: unset }",
    ],
};
