//! The pattern scenario: workers share products and have reviews, visits, orders and a customer of their own, and refer to them in
//! other collections. The rules are those that the registries list. After each crash the documents are those acknowledged, the
//! counts, averages and copies that are known here are what they should be, and the audit finds none of all rules wrong.

use crate::rules::{CHANGING, DB, change, declaration, settle_outbox};
use crate::scenario::Scenario;
use crate::worker::{fine, found_in, send, session_of};
use anyhow::{Context, Result, ensure};
use bson::{Bson, DateTime, Document, doc};
use judge::client::Client;
use rand::RngExt;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DAY: i64 = 86_400_000;
/// Few, so that the workers meet on them.
const PRODUCTS: i64 = 5;
/// From so many reviews on a worker deletes as often as it inserts, and makes no more orders: more than spread in one
/// transaction, and not so many that a check after the last crash takes longer than after the first.
const MANY: usize = 1_200;

pub(crate) struct Kept {
    worker: usize,
    session: [u8; 16],
    transaction_number: i64,
    next: i64,
    /// Review number to its product and rating.
    reviews: BTreeMap<i64, (i64, i64)>,
    /// How often each product was visited on the worker's own day.
    visits: BTreeMap<i64, i64>,
    orders: i64,
    /// How often the worker's customer was renamed.
    renamed: i64,
    in_flight: Option<Operation>,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert {
        number: i64,
        product: i64,
        rating: i64,
    },
    Change {
        number: i64,
        product: i64,
        rating: i64,
    },
    Delete {
        number: i64,
    },
    /// Two reviews in the client's own transaction.
    Both {
        number: i64,
        product: i64,
    },
    Order,
    Rename,
    Visit {
        product: i64,
    },
    /// In one of the collections that copy: only the audit looks there.
    Refer {
        place: usize,
        key: i64,
    },
}

impl Kept {
    fn key(&self) -> i64 {
        i64::try_from(self.worker).unwrap_or_default()
    }

    /// The day of the worker's visits.
    fn day(&self) -> DateTime {
        DateTime::from_millis(self.key() * DAY)
    }

    fn id(&self, number: i64) -> String {
        format!("{}-{number}", self.worker)
    }

    fn review(&self, number: i64, product: i64, rating: i64) -> Document {
        let at = DateTime::from_millis(number % 7 * DAY + number);
        doc! { "_id": self.id(number), "worker": self.key(), "number": number, "productId": product, "rating": rating,
        "at": at, "shelf": number % 3, "weight": rating }
    }

    fn choose(&mut self) -> Operation {
        let mut rng = rand::rng();
        let (product, rating) = (rng.random_range(0..PRODUCTS + 1), rng.random_range(1..6));
        let start = rng.random_range(0..self.next.max(1));
        let existing = self.reviews.range(start..).next().map(|(number, _)| *number);
        let (crowded, busy) =
            (self.reviews.len() >= MANY, usize::try_from(self.orders).is_ok_and(|orders| orders >= MANY));
        match (rng.random_range(0..14), existing) {
            (0, _) if !busy => Operation::Order,
            (1, _) => Operation::Rename,
            (2, _) => {
                self.next += 2;
                Operation::Both { number: self.next - 1, product }
            }
            (12, _) => Operation::Visit { product },
            (13, _) => Operation::Refer { place: rng.random_range(0..4), key: product },
            (3..=5, Some(number)) => Operation::Change { number, product, rating },
            (6 | 7, Some(number)) => Operation::Delete { number },
            (_, Some(number)) if crowded => Operation::Delete { number },
            _ => {
                self.next += 1;
                Operation::Insert { number: self.next, product, rating }
            }
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Insert { number, product, rating } | Operation::Change { number, product, rating } => {
                self.reviews.insert(number, (product, rating));
            }
            Operation::Delete { number } => {
                self.reviews.remove(&number);
            }
            Operation::Both { number, product } => {
                self.reviews.insert(number, (product, 3));
                self.reviews.insert(number + 1, (product, 4));
            }
            Operation::Order => self.orders += 1,
            Operation::Rename => self.renamed += 1,
            Operation::Visit { product } => *self.visits.entry(product).or_default() += 1,
            Operation::Refer { .. } => {}
        }
    }

    fn command(&self, operation: Operation, relaxed: bool) -> Document {
        let worker = self.key();
        let mut command = match operation {
            Operation::Insert { number, product, rating } => {
                doc! { "insert": "reviews", "documents": [self.review(number, product, rating)] }
            }
            Operation::Change { number, product, rating } => {
                doc! { "update": "reviews", "updates": [{ "q": { "_id": self.id(number) },
                "u": { "$set": { "productId": product, "rating": rating } } }] }
            }
            Operation::Delete { number } => {
                doc! { "delete": "reviews", "deletes": [{ "q": { "_id": self.id(number) }, "limit": 1 }] }
            }
            Operation::Both { number, product } => {
                doc! { "insert": "reviews", "documents": [self.review(number, product, 3)] }
            }
            Operation::Order => {
                doc! { "insert": "orders", "documents": [{ "_id": self.id(self.orders + 1), "worker": worker, "customerId": worker }] }
            }
            Operation::Rename => {
                doc! { "update": "customers", "updates": [{ "q": { "_id": worker },
                "u": { "$set": { "name": format!("name {}", self.renamed + 1) } }, "upsert": true }] }
            }
            Operation::Visit { product } => {
                doc! { "update": "visits", "updates": [{ "q": { "productId": product, "at": self.day() },
                "u": { "$inc": { "n": 1_i64 } }, "upsert": true }] }
            }
            Operation::Refer { place, key } => {
                let (collection, change) = match place {
                    0 => ("baskets", doc! { "items": [{ "productId": key }], "productIds": [key, worker] }),
                    1 => ("receipts", doc! { "customerId": key, "email": format!("{key}@example.org") }),
                    2 => ("answers", doc! { "reviewId": self.id(key) }),
                    _ => ("invoices", doc! { "orderId": self.id(key) }),
                };
                doc! { "update": collection, "updates": [{ "q": { "_id": worker }, "u": { "$set": change }, "upsert": true }] }
            }
        };
        command.insert("lsid", session_of(self.session));
        command.insert("txnNumber", self.transaction_number);
        if relaxed {
            command.insert("writeConcern", doc! { "w": 1 });
        }
        command.insert("$db", DB);
        command
    }

    /// The client's own transaction. Nothing when the connection is gone; `false` when it was aborted by a conflict.
    fn both(&self, client: &mut Client, number: i64, product: i64) -> Option<Result<bool>> {
        let step = |mut command: Document, start: bool| {
            command.insert("lsid", session_of(self.session));
            command.insert("txnNumber", self.transaction_number);
            command.insert("autocommit", false);
            if start {
                command.insert("startTransaction", true);
            }
            command
        };
        let steps = [
            step(doc! { "insert": "reviews", "documents": [self.review(number, product, 3)], "$db": DB }, true),
            step(doc! { "insert": "reviews", "documents": [self.review(number + 1, product, 4)], "$db": DB }, false),
            step(doc! { "commitTransaction": 1, "$db": "admin" }, false),
        ];
        for command in steps {
            let ends = command.contains_key("commitTransaction");
            let mut reply = send(client, &command)?;
            // A commit whose fate is unknown is sent again, as drivers do.
            while ends
                && (has_label(&reply, "UnknownTransactionCommitResult") || has_label(&reply, "RetryableWriteError"))
            {
                std::thread::sleep(Duration::from_millis(50));
                reply = send(client, &command)?;
            }
            if has_label(&reply, "TransientTransactionError") {
                return Some(Ok(false));
            }
            if !fine(&reply) {
                return Some(Err(anyhow::anyhow!("in a transaction: {reply}")));
            }
        }
        Some(Ok(true))
    }
}

fn has_label(reply: &Document, label: &str) -> bool {
    reply.get_array("errorLabels").is_ok_and(|labels| labels.iter().any(|found| found.as_str() == Some(label)))
}

/// Sends a retryable statement until it is answered otherwise than by "try again".
fn until_answered(client: &mut Client, command: &Document) -> Option<Document> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let reply = send(client, command)?;
        if !has_label(&reply, "RetryableWriteError") || Instant::now() > end {
            return Some(reply);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Scenario for Kept {
    fn new(worker: usize) -> Kept {
        Kept {
            worker,
            session: rand::random(),
            transaction_number: 0,
            next: 0,
            reviews: BTreeMap::new(),
            visits: BTreeMap::new(),
            orders: 0,
            renamed: 0,
            in_flight: None,
        }
    }

    fn worker(&self) -> usize {
        self.worker
    }

    fn prepare(client: &mut Client, first: bool) -> Result<()> {
        if first {
            client.must(&doc! { "dropDatabase": 1, "$db": DB })?;
            // The rules of another world stay declared in a database that is dropped.
            client.must(&doc! { "pleach": "apply", "declaration": declaration()?, "remove": true, "$db": DB })?;
            let products: Vec<Document> = (0..PRODUCTS).map(|id| doc! { "_id": id, "price": id, "cost": 1 }).collect();
            client.must(&doc! { "insert": "products", "documents": products, "$db": DB })?;
        } else if CHANGING.load(Ordering::Relaxed) {
            // Whatever was under way, these are the rules again.
            let apply = doc! { "pleach": "apply", "declaration": declaration()?, "remove": true, "overwrite": true, "create_missing": true };
            client.must(&Document::from_iter(apply.into_iter().chain(doc! { "$db": DB })))?;
        }
        Ok(())
    }

    fn release(&mut self, client: &mut Client) -> Result<()> {
        if let Some(Operation::Both { .. }) = self.in_flight {
            let abort = doc! { "abortTransaction": 1, "lsid": session_of(self.session),
            "txnNumber": self.transaction_number, "autocommit": false, "$db": "admin" };
            // If it was committed, this does nothing.
            send(client, &abort).context("the connection is gone")?;
        }
        Ok(())
    }

    fn settle(&mut self, client: &mut Client) -> Result<()> {
        match self.in_flight.take() {
            None => {}
            Some(Operation::Both { number, product }) => {
                let ids = [self.id(number), self.id(number + 1)];
                let there = found_in(client, DB, "reviews", doc! { "_id": { "$in": ids.to_vec() } })?.len();
                ensure!(there != 1, "half a transaction: {ids:?}");
                if there == 2 {
                    self.apply(Operation::Both { number, product });
                }
            }
            Some(operation) => {
                let reply =
                    until_answered(client, &self.command(operation, false)).context("the connection is gone")?;
                ensure!(fine(&reply), "sent again, {operation:?} was refused: {reply}");
                self.apply(operation);
            }
        }
        Ok(())
    }

    fn run(mut self, address: &str, allow_relaxed: bool, stop: &AtomicBool) -> Result<(Kept, u64)> {
        if self.worker == 0 && CHANGING.load(Ordering::Relaxed) {
            change(address, stop)?;
            return Ok((self, 0));
        }
        let mut acknowledged = 0;
        let Ok(mut client) = Client::connect(address) else { return Ok((self, 0)) };
        while !stop.load(Ordering::Relaxed) {
            let operation = self.choose();
            self.transaction_number += 1;
            self.in_flight = Some(operation);
            let relaxed = allow_relaxed && rand::rng().random_range(0..2) == 0;
            let done = match operation {
                Operation::Both { number, product } => self.both(&mut client, number, product),
                _ => until_answered(&mut client, &self.command(operation, relaxed)).map(|reply| {
                    ensure!(fine(&reply), "{operation:?} was refused: {reply}");
                    Ok(true)
                }),
            };
            match done {
                Some(done) => {
                    if done? {
                        self.apply(operation);
                        acknowledged += 1;
                    }
                    self.in_flight = None;
                }
                // The connection is gone: the crash.
                None => break,
            }
        }
        Ok((self, acknowledged))
    }

    fn verify(client: &mut Client, models: &[Kept]) -> Result<()> {
        settle_outbox(client)?;
        for model in models {
            let worker = model.key();
            let mut stored = BTreeMap::new();
            for row in found_in(client, DB, "reviews", doc! { "worker": worker })? {
                stored.insert(row.get_i64("number")?, (row.get_i64("productId")?, row.get_i64("rating")?));
            }
            ensure!(stored == model.reviews, "worker {worker}: reviews are not those acknowledged");
            let mut visits = BTreeMap::new();
            for row in found_in(client, DB, "visits", doc! { "at": model.day() })? {
                visits.insert(row.get_i64("productId")?, row.get_i64("n")?);
            }
            ensure!(visits == model.visits, "worker {worker}: visits are not those acknowledged: {visits:?}");
            let orders = found_in(client, DB, "orders", doc! { "worker": worker })?;
            ensure!(i64::try_from(orders.len())? == model.orders, "worker {worker}: {} orders", orders.len());
            let name = (model.renamed > 0).then(|| format!("name {}", model.renamed));
            for order in orders {
                let copy = order.get_document("customer").ok().and_then(|copy| copy.get_str("name").ok());
                ensure!(copy == name.as_deref(), "worker {worker}: the copy is {copy:?}, the customer {name:?}");
            }
        }
        for product in found_in(client, DB, "products", doc! {})? {
            let id = product.get_i64("_id")?;
            let ratings: Vec<i64> =
                models.iter().flat_map(|m| m.reviews.values()).filter(|(p, _)| *p == id).map(|(_, r)| *r).collect();
            let number = |name: &str| product.get(name).and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()));
            ensure!(number("reviewCount") == Some(i64::try_from(ratings.len())?), "count of {product}: {ratings:?}");
            let stars: i64 = ratings.iter().filter(|rating| **rating > 2).sum();
            ensure!(number("good") == Some(stars), "sum of {product}: {stars}");
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let average = match ratings.len() {
                0 => Some(Bson::Null),
                count => Some(Bson::Double(ratings.iter().sum::<i64>() as f64 / count as f64)),
            };
            ensure!(product.get("avgRating") == average.as_ref(), "average of {product}: {average:?}");
        }
        let audit = client.must(&doc! { "pleach": "audit", "$db": DB })?;
        let drifted = audit.get("drifted").and_then(|n| n.as_i32().map(i64::from).or(n.as_i64()));
        ensure!(drifted == Some(0), "the audit found {audit}");
        Ok(())
    }
}
