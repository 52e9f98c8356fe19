//! The outlier array's entry in `OUTLIERS`.

use crate::rule::RegistryEntry;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "outlier",
    help: "An array whose first items are in the document and whose others are documents of their own.",
    page: "docs/concepts/outlier.md",
    example: "examples/outlier",
    blocks: &[
        "baskets:\n  outlier:\n    productIds: { keep: 1, overflow: basket_products, owner: basketId, item: productId, flag: hasMore, count: productCount }",
        // Nothing is embedded, and items are documents.
        "baskets:\n  outlier:\n    items: { keep: 0, overflow: basket_items, owner: basketId, item: item, flag: hasItems, count: itemCount }",
    ],
};
