//! What a worker of the pattern scenario does next, as data, and the command that says so. Half of it is aimed: the worker's own product
//! loses the child that gives it a value now, the largest, the smallest, the first or the last, by a delete, by another rank or by a
//! move to another product.

use super::{Kept, PRODUCTS};
use crate::rules::{DB, has_versions};
use crate::worker::session_of;
use bson::{DateTime, Document, doc};
use rand::RngExt;

const DAY: i64 = 86_400_000;
/// From so many reviews on a worker deletes as often as it inserts, and makes no more orders: more than spread in one
/// transaction, and not so many that a check after the last crash takes longer than after the first.
const MANY: usize = 1_200;

/// A review's product and rating.
pub(super) type Review = (i64, i64);
/// A sale's product, amount and whether it is paid.
pub(super) type Sale = (i64, i64, bool);

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Insert(Vec<(i64, Review)>),
    /// Another product, another rating.
    Change(Vec<(i64, Review)>),
    Delete(Vec<i64>),
    /// Made or changed.
    Sell(Vec<(i64, Sale)>),
    Refund(Vec<i64>),
    /// Two reviews in the client's own transaction.
    Both {
        number: i64,
        product: i64,
    },
    Order,
    /// By a client of the newest version or of the first.
    Rename {
        by_older: bool,
    },
    /// Items that go into the worker's own basket …
    Put(Vec<i64>),
    /// … and out of it.
    Take(Vec<i64>),
    Visit {
        product: i64,
    },
    /// In one of the collections that copy: only the audit looks there.
    Refer {
        place: usize,
        key: i64,
    },
}

impl Operation {
    /// How many documents it writes, beside those that rules write.
    pub(super) fn writes(&self) -> u64 {
        let number = match self {
            Operation::Insert(reviews) | Operation::Change(reviews) => reviews.len(),
            Operation::Sell(sales) => sales.len(),
            Operation::Delete(numbers) | Operation::Refund(numbers) => numbers.len(),
            Operation::Both { .. } => 2,
            _ => 1,
        };
        u64::try_from(number).unwrap_or_default()
    }
}

/// How many items a basket has before some are taken.
const MOST_ITEMS: usize = 12;

/// What the note of a paid sale says.
pub(super) const WORD: &str = "settled";

/// When a review was written.
pub(super) fn moment(number: i64) -> i64 {
    number % 7 * DAY + number
}

impl Kept {
    /// The product that only this worker's children are of.
    pub(super) fn own_product(&self) -> i64 {
        PRODUCTS + 1 + self.key()
    }

    /// The day of the worker's visits.
    pub(super) fn day(&self) -> DateTime {
        DateTime::from_millis(self.key() * DAY)
    }

    pub(super) fn review(&self, number: i64, (product, rating): Review) -> Document {
        doc! { "_id": self.id(number), "worker": self.key(), "number": number, "productId": product, "rating": rating,
        "at": DateTime::from_millis(moment(number)), "shelf": number % 3, "weight": rating }
    }

    pub(super) fn choose(&mut self) -> Operation {
        let mut rng = rand::rng();
        // The worker's own one half of the time; one that does not exist is among the others.
        let product = |rng: &mut rand::rngs::ThreadRng| match rng.random_bool(0.5) {
            true => self.own_product(),
            false => rng.random_range(0..PRODUCTS + 1),
        };
        let (crowded, busy) =
            (self.reviews.len() >= MANY, usize::try_from(self.orders).is_ok_and(|orders| orders >= MANY));
        let some = rng.random_range(1..6);
        match rng.random_range(0..22) {
            0 if !busy => Operation::Order,
            1 => Operation::Rename { by_older: has_versions() && rng.random_bool(0.5) },
            20 if self.basket.len() < MOST_ITEMS => {
                self.next += some;
                Operation::Put((self.next - some + 1..=self.next).collect())
            }
            20 | 21 if !self.basket.is_empty() => {
                let taken = |_: &i64| rng.random_bool(0.4);
                Operation::Take(self.basket.iter().copied().filter(taken).collect())
            }
            2 => {
                let product = product(&mut rng);
                self.next += 2;
                Operation::Both { number: self.next - 1, product }
            }
            3 => Operation::Visit { product: product(&mut rng) },
            4 => Operation::Refer { place: rng.random_range(0..4), key: product(&mut rng) },
            5..=7 if !self.reviews.is_empty() => Operation::Delete(self.aimed_reviews(rng.random_range(1..4))),
            8 | 9 if !self.reviews.is_empty() => {
                let numbers = self.aimed_reviews(rng.random_range(1..4));
                let change = |number: i64| (number, (product(&mut rng), rng.random_range(1..100)));
                Operation::Change(numbers.into_iter().map(change).collect())
            }
            10 | 11 => {
                let sale =
                    |rng: &mut rand::rngs::ThreadRng| (product(rng), rng.random_range(1..100), rng.random_bool(0.6));
                let sales: Vec<Sale> = (0..some).map(|_| sale(&mut rng)).collect();
                self.next += some;
                Operation::Sell((self.next - some + 1..).zip(sales).collect())
            }
            12 if !self.sales.is_empty() => {
                let changed =
                    |number: i64| (number, (product(&mut rng), rng.random_range(1..100), rng.random_bool(0.5)));
                Operation::Sell(self.aimed_sales(2).into_iter().map(changed).collect())
            }
            13 if !self.sales.is_empty() => Operation::Refund(self.aimed_sales(rng.random_range(1..3))),
            _ if crowded => Operation::Delete(self.aimed_reviews(4)),
            _ => {
                let reviews: Vec<Review> = (0..some).map(|_| (product(&mut rng), rng.random_range(1..100))).collect();
                self.next += some;
                Operation::Insert((self.next - some + 1..).zip(reviews).collect())
            }
        }
    }

    /// Reviews that their product has a value of now, as far as the worker's own go: largest, smallest, newest, oldest.
    fn aimed_reviews(&self, most: usize) -> Vec<i64> {
        let own = self.own_product();
        let mut numbers: Vec<i64> =
            self.reviews.iter().filter(|(_, review)| review.0 == own).map(|(number, _)| *number).collect();
        if numbers.is_empty() {
            numbers = self.reviews.keys().copied().collect();
        }
        let rating = |number: &i64| self.reviews.get(number).map(|review| review.1);
        match rand::rng().random_range(0..4) {
            0 => numbers.sort_by_key(|number| std::cmp::Reverse(rating(number))),
            1 => numbers.sort_by_key(rating),
            2 => numbers.sort_by_key(|number| std::cmp::Reverse(moment(*number))),
            _ => numbers.sort_by_key(|number| moment(*number)),
        }
        numbers.truncate(most);
        numbers
    }

    /// The dearest sales of the worker's own product, or of all.
    fn aimed_sales(&self, most: usize) -> Vec<i64> {
        let mut sales: Vec<(bool, i64, i64)> =
            self.sales.iter().map(|(number, sale)| (sale.0 == self.own_product(), sale.1, *number)).collect();
        sales.sort_unstable_by(|a, b| b.cmp(a));
        sales.into_iter().take(most).map(|(_, _, number)| number).collect()
    }

    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Insert(reviews) | Operation::Change(reviews) => self.reviews.extend(reviews.iter().copied()),
            Operation::Delete(numbers) => self.reviews.retain(|number, _| !numbers.contains(number)),
            Operation::Sell(sales) => self.sales.extend(sales.iter().copied()),
            Operation::Refund(numbers) => self.sales.retain(|number, _| !numbers.contains(number)),
            Operation::Both { number, product } => {
                self.reviews.extend([(*number, (*product, 3)), (number + 1, (*product, 4))]);
            }
            Operation::Order => self.orders += 1,
            Operation::Rename { .. } => self.renamed += 1,
            Operation::Put(items) => self.basket.extend(items),
            Operation::Take(items) => self.basket.retain(|item| !items.contains(item)),
            Operation::Visit { product } => *self.visits.entry(*product).or_default() += 1,
            Operation::Refer { .. } => {}
        }
    }

    pub(super) fn command(&self, operation: &Operation, relaxed: bool) -> Document {
        let worker = self.key();
        let deletes = |numbers: &[i64]| -> Vec<Document> {
            numbers.iter().map(|number| doc! { "q": { "_id": self.id(*number) }, "limit": 1 }).collect()
        };
        let mut command = match operation {
            Operation::Insert(reviews) => {
                let documents: Vec<Document> =
                    reviews.iter().map(|(number, review)| self.review(*number, *review)).collect();
                doc! { "insert": "reviews", "documents": documents }
            }
            Operation::Change(reviews) => {
                let change = |(number, (product, rating)): &(i64, Review)| {
                    doc! { "q": { "_id": self.id(*number) }, "u": { "$set": { "productId": product, "rating": rating, "weight": rating } } }
                };
                doc! { "update": "reviews", "updates": reviews.iter().map(change).collect::<Vec<_>>() }
            }
            Operation::Delete(numbers) => doc! { "delete": "reviews", "deletes": deletes(numbers) },
            Operation::Sell(sales) => {
                let sell = |(number, (product, amount, paid)): &(i64, Sale)| {
                    let sold = doc! { "productId": product, "amount": amount };
                    let status = if *paid { "paid" } else { "open" };
                    let note = if *paid { WORD } else { "to be paid" };
                    let sale =
                        doc! { "worker": worker, "number": number, "sold": sold, "status": status, "note": note };
                    doc! { "q": { "_id": self.id(*number) }, "u": { "$set": sale }, "upsert": true }
                };
                doc! { "update": "sales", "updates": sales.iter().map(sell).collect::<Vec<_>>() }
            }
            Operation::Refund(numbers) => doc! { "delete": "sales", "deletes": deletes(numbers) },
            Operation::Both { number, product } => {
                doc! { "insert": "reviews", "documents": [self.review(*number, (*product, 3))] }
            }
            Operation::Order => {
                doc! { "insert": "orders", "documents": [{ "_id": self.id(self.orders + 1), "worker": worker, "customerId": worker }] }
            }
            Operation::Rename { by_older } => {
                let field = if *by_older { "title" } else { "name" };
                doc! { "update": "customers", "updates": [{ "q": { "_id": worker },
                "u": { "$set": { field: format!("name {}", self.renamed + 1) } }, "upsert": true }] }
            }
            Operation::Put(items) => self.basket_update(doc! { "$push": { "productIds": { "$each": items.clone() } } }),
            Operation::Take(items) => self.basket_update(doc! { "$pull": { "productIds": { "$in": items.clone() } } }),
            Operation::Visit { product } => {
                doc! { "update": "visits", "updates": [{ "q": { "productId": product, "at": self.day() },
                "u": { "$inc": { "n": 1_i64 } }, "upsert": true }] }
            }
            Operation::Refer { place, key } => {
                let (collection, change) = match place {
                    0 => ("baskets", doc! { "items": [{ "productId": key }], "productIds": [key, worker] }),
                    1 => ("receipts", doc! { "customerId": key, "email": format!("{key}@example.org") }),
                    2 => ("answers", doc! { "reviewId": self.id(*key) }),
                    _ => ("invoices", doc! { "orderId": self.id(*key) }),
                };
                doc! { "update": collection, "updates": [{ "q": { "_id": worker }, "u": { "$set": change }, "upsert": true }] }
            }
        };
        command.insert("lsid", session_of(self.session));
        command.insert("txnNumber", self.transaction_number);
        if relaxed {
            command.insert("writeConcern", doc! { "w": 1 });
        }
        let db = match operation {
            Operation::Rename { by_older: true } => format!("{DB}@1"),
            _ => DB.to_owned(),
        };
        command.insert("$db", db);
        command
    }

    /// The basket that nobody else writes to, and of which no reference is made.
    pub(super) fn basket_id(&self) -> i64 {
        -1 - self.key()
    }

    fn basket_update(&self, change: Document) -> Document {
        doc! { "update": "baskets", "updates": [{ "q": { "_id": self.basket_id() }, "u": change, "upsert": true }] }
    }
}
