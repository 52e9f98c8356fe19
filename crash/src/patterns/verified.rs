//! What must be there after a crash of the pattern scenario: the documents that were acknowledged, the values of products that the
//! models tell, and no drift of any rule.

use super::operation::{WORD, moment};
use super::{Kept, OLD, OLD_REVIEWS};
use crate::rules::{DB, has_kinds, has_old_reviews, settle_outbox};
use crate::worker::found_in;
use anyhow::{Result, ensure};
use bson::{Bson, DateTime, Document, doc};
use judge::client::Client;
use std::collections::BTreeMap;

pub(super) fn verify(client: &mut Client, models: &[Kept]) -> Result<()> {
    settle_outbox(client)?;
    for model in models {
        documents(client, model)?;
    }
    for product in found_in(client, DB, "products", doc! {})? {
        values(&product, models)?;
    }
    if has_old_reviews() {
        let newest = doc! { "worker": OLD, "rating": 3, "weight": 2, "shelf": 1, "stars": { "$exists": false } };
        let query = doc! { "count": "reviews", "query": newest, "$db": DB };
        let found = number(client.must(&query)?.get("n"));
        ensure!(found == Some(OLD_REVIEWS), "{found:?} of {OLD_REVIEWS} old reviews are seen in the newest version");
    }
    let audit = client.must(&doc! { "pleach": "audit", "$db": DB })?;
    ensure!(number(audit.get("drifted")) == Some(0), "the audit found {audit}");
    Ok(())
}

fn number(value: Option<&Bson>) -> Option<i64> {
    value.and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()))
}

/// Those acknowledged.
fn documents(client: &mut Client, model: &Kept) -> Result<()> {
    let worker = model.key();
    let mut reviews = BTreeMap::new();
    for row in found_in(client, DB, "reviews", doc! { "worker": worker })? {
        reviews.insert(row.get_i64("number")?, (row.get_i64("productId")?, row.get_i64("rating")?));
    }
    ensure!(reviews == model.reviews, "worker {worker}: reviews are not those acknowledged");
    let mut sales = BTreeMap::new();
    for row in found_in(client, DB, "sales", doc! { "worker": worker })? {
        let sold = row.get_document("sold")?;
        let sale = (sold.get_i64("productId")?, sold.get_i64("amount")?, row.get_str("status")? == "paid");
        sales.insert(row.get_i64("number")?, sale);
    }
    ensure!(sales == model.sales, "worker {worker}: sales are not those acknowledged");
    let mut visits = BTreeMap::new();
    for row in found_in(client, DB, "visits", doc! { "at": model.day() })? {
        visits.insert(row.get_i64("productId")?, row.get_i64("n")?);
    }
    ensure!(visits == model.visits, "worker {worker}: visits are not those acknowledged: {visits:?}");
    if has_kinds() {
        let searched = doc! { "$text": { "$search": WORD }, "worker": worker };
        let found = found_in(client, DB, "sales", searched)?.len();
        let paid = model.sales.values().filter(|sale| sale.2).count();
        ensure!(found == paid, "worker {worker}: a search finds {found} sales, {paid} are paid");
    }
    let items = basket(client, model)?;
    ensure!(items == model.basket, "worker {worker}: the basket has {items:?}, not {:?}", model.basket);
    let orders = found_in(client, DB, "orders", doc! { "worker": worker })?;
    ensure!(i64::try_from(orders.len())? == model.orders, "worker {worker}: {} orders", orders.len());
    let name = (model.renamed > 0).then(|| format!("name {}", model.renamed));
    for order in orders {
        let copy = order.get_document("customer").ok().and_then(|copy| copy.get_str("name").ok());
        ensure!(copy == name.as_deref(), "worker {worker}: the copy is {copy:?}, the customer {name:?}");
    }
    Ok(())
}

/// All items of the worker's basket: those in the document, and those that overflow.
fn basket(client: &mut Client, model: &Kept) -> Result<Vec<i64>> {
    let Some(basket) = found_in(client, DB, "baskets", doc! { "_id": model.basket_id() })?.pop() else {
        return Ok(Vec::new());
    };
    let mut overflow = found_in(client, DB, "basket_products", doc! { "basketId": model.basket_id() })?;
    overflow.sort_by_key(|item| number(item.get("index")));
    let embedded = basket.get_array("productIds").cloned().unwrap_or_default();
    let items = embedded.iter().chain(overflow.iter().filter_map(|item| item.get("productId")));
    Ok(items.filter_map(|item| number(Some(item))).collect())
}

/// What a product has of all workers' reviews and sales. Not every world keeps every field; the audit knows which.
fn values(product: &Document, models: &[Kept]) -> Result<()> {
    let id = product.get_i64("_id")?;
    let reviews =
        models.iter().flat_map(|model| model.reviews.iter().map(move |(number, review)| (model, *number, *review)));
    let own: Vec<(&Kept, i64, i64)> = reviews
        .filter(|(_, _, review)| review.0 == id)
        .map(|(model, number, review)| (model, number, review.1))
        .collect();
    let ratings: Vec<i64> = own.iter().map(|(_, _, rating)| *rating).collect();
    ensure!(
        number(product.get("reviewCount")) == Some(i64::try_from(ratings.len())?),
        "count of {product}: {ratings:?}"
    );
    let stars: i64 = ratings.iter().filter(|rating| **rating > 2).sum();
    ensure!(number(product.get("good")) == Some(stars), "sum of {product}: {stars}");
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let average = match ratings.len() {
        0 => Some(Bson::Null),
        count => Some(Bson::Double(ratings.iter().sum::<i64>() as f64 / count as f64)),
    };
    ensure!(product.get("avgRating") == average.as_ref(), "average of {product}: {average:?}");
    for (name, wanted) in [("bestRating", ratings.iter().max()), ("worstRating", ratings.iter().min())] {
        if let Some(stored) = product.get(name) {
            ensure!(number(Some(stored)) == wanted.copied(), "{name} of {product}: {wanted:?}");
        }
    }
    if let Ok(window) = product.get_array("recentReviews") {
        let mut newest: Vec<(i64, i64)> = own.iter().map(|(_, number, rating)| (moment(*number), *rating)).collect();
        newest.sort_unstable_by(|a, b| b.cmp(a));
        let moments = newest.iter().take(3).map(|(at, _)| Bson::DateTime(DateTime::from_millis(*at)));
        let stored = window.iter().filter_map(|item| item.as_document()?.get("at").cloned());
        ensure!(stored.eq(moments), "recentReviews of {product}: {newest:?}");
    }
    let sales = models.iter().flat_map(|model| model.sales.values()).filter(|sale| sale.0 == id);
    let paid: Vec<i64> = sales.filter(|sale| sale.2).map(|sale| sale.1).collect();
    if let Ok(stats) = product.get_document("stats") {
        ensure!(number(stats.get("paid")) == Some(paid.iter().sum()), "stats.paid of {product}: {paid:?}");
        ensure!(number(stats.get("mostPaid")) == paid.iter().max().copied(), "stats.mostPaid of {product}: {paid:?}");
    }
    Ok(())
}
