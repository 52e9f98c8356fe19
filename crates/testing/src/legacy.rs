//! Data that was there before any rule, and rules over it: what they replace must come back.

use bson::{Document, doc};

/// Everything that rules may do to a field: copies plain, in arrays, in a list; counts, sums with their state, an expression; in
/// sub-documents of their own, of others and shared.
pub const RULES: &str = "{ orders: {
    extended_reference: {
        customer: { from: customers, by: customerId, fields: [name], when_deleted: unset },
        items.product: { from: products, by: items.productId, fields: [title], when_deleted: unset },
        authors: { from: customers, by: authorIds, each: true, fields: [name] },
        ship.to: { from: customers, by: ship.customerId, fields: [city] } },
    computed: {
        stats.lines: { count: lines, by: orderId },
        stats.total: { sum: n, from: lines, by: orderId },
        deep.a.b: { count: lines, by: orderId },
        mean: { avg: n, from: lines, by: orderId },
        double: { expr: { $multiply: [$price, 2] } } } } }";

pub const NAMES: [&str; 9] = [
    "orders.customer",
    "orders.items.product",
    "orders.authors",
    "orders.ship.to",
    "orders.stats.lines",
    "orders.stats.total",
    "orders.deep.a.b",
    "orders.mean",
    "orders.double",
];

/// Orders as applications leave them behind: right, stale, partly there, of other types, in another order.
fn orders() -> Vec<Document> {
    vec![
        doc! { "_id": 1, "price": 4 },
        doc! { "_id": 2, "customerId": 1, "price": 4, "customer": { "name": "Ann" }, "double": 8, "mean": 1.5 },
        doc! { "_id": 3, "customer": { "name": "stale", "x": 1 }, "customerId": 1, "double": "eight", "price": 1, "z": 1 },
        doc! { "_id": 4, "customer": "text", "customerId": 99, "note": 1, "price": 1.5, "mean": null, "$odd": 1, "a.b": 2 },
        doc! { "_id": 5, "price": 1, "items": [
        { "productId": 1, "product": { "title": "old" }, "n": 1 }, { "productId": 2 }, 7,
        { "product": { "title": "no reference" }, "n": 2 }, { "productId": 1 }, { "productId": 77, "product": 5, "n": 3 } ] },
        doc! { "_id": 6, "authors": [{ "name": "Ann" }, null], "authorIds": [1, 2, 50], "price": 1 },
        doc! { "_id": 7, "authors": "none", "authorIds": [], "price": 1, "items": [] },
        doc! { "_id": 8, "stats": { "lines": 44, "own": 1, "total": "x" }, "price": 1, "deep": { "a": {} } },
        doc! { "_id": 9, "stats": { "own": 1 }, "price": 1, "deep": {} },
        doc! { "_id": 10, "price": 1, "deep": { "a": { "b": 3, "c": 1 } }, "_pleach": { "mine": 1 } },
        doc! { "_id": 11, "ship": { "to": { "city": "Rome" }, "customerId": 2, "x": 1 }, "price": 1 },
        doc! { "_id": 12, "ship": { "to": { "city": "gone" }, "customerId": 98, "x": 1 }, "price": 1 },
        doc! { "_id": 12.5, "stats": {}, "price": 1 },
        doc! { "_id": 13, "price": 1, "items": { "productId": 1, "product": { "title": "plain" } } },
        doc! { "_id": "text", "price": 2, "double": 4 },
        doc! { "_id": { "a": 1 }, "price": 2, "double": 5, "deep": { "a": { "b": null } } },
    ]
}

/// Everything that is there, by collection.
pub fn documents() -> Vec<(&'static str, Vec<Document>)> {
    let customer = |id: i32, name: &str| doc! { "_id": id, "name": name, "city": format!("{name}burg") };
    let lines = (0..20).map(|id| doc! { "_id": id, "orderId": id % 12, "n": id });
    vec![
        ("orders", orders()),
        ("customers", vec![customer(1, "Ann"), customer(2, "Bob")]),
        ("products", vec![doc! { "_id": 1, "title": "Book" }, doc! { "_id": 2, "title": "Pen" }]),
        ("lines", lines.collect()),
    ]
}
