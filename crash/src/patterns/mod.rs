//! The pattern scenario: workers share products, each has one of its own besides, and reviews, sales, visits, orders and a customer, and
//! refers to them in other collections. The rules are those that the registries list. After each crash the documents are those
//! acknowledged, the values and copies that are known here are what they should be, and the audit finds none of all rules wrong.

mod operation;
mod verified;

use crate::rules::{CHANGING, DB, change, declaration, has_old_reviews};
use crate::scenario::{Progress, Scenario};
use crate::worker::{did, fine, found_in, send, session_of};
use anyhow::{Context, Result, ensure};
use bson::{Document, doc};
use judge::client::Client;
use operation::{Operation, Review, Sale};
use rand::RngExt;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Few, so that the workers meet on them.
const PRODUCTS: i64 = 5;
/// Who has written the reviews that were there before.
const OLD: i64 = -1;
const OLD_REVIEWS: i64 = 3_000;
/// Products of one worker each: more than there are workers.
const OWN_PRODUCTS: i64 = 64;

pub(crate) struct Kept {
    worker: usize,
    session: [u8; 16],
    transaction_number: i64,
    next: i64,
    /// Review number to its product and rating.
    reviews: BTreeMap<i64, Review>,
    sales: BTreeMap<i64, Sale>,
    /// How often each product was visited on the worker's own day.
    visits: BTreeMap<i64, i64>,
    orders: i64,
    /// How often the worker's customer was renamed.
    renamed: i64,
    /// The items of the worker's own basket, in their order.
    basket: Vec<i64>,
    in_flight: Option<Operation>,
}

impl Kept {
    fn key(&self) -> i64 {
        i64::try_from(self.worker).unwrap_or_default()
    }

    fn id(&self, number: i64) -> String {
        format!("{}-{number}", self.worker)
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
            step(doc! { "insert": "reviews", "documents": [self.review(number, (product, 3))], "$db": DB }, true),
            step(doc! { "insert": "reviews", "documents": [self.review(number + 1, (product, 4))], "$db": DB }, false),
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
            sales: BTreeMap::new(),
            visits: BTreeMap::new(),
            orders: 0,
            renamed: 0,
            basket: Vec::new(),
            in_flight: None,
        }
    }

    fn worker(&self) -> usize {
        self.worker
    }

    fn prepare(client: &mut Client, first: bool) -> Result<()> {
        if first {
            client.must(&doc! { "dropDatabase": 1, "$db": DB })?;
            if has_old_reviews() {
                // No rule is known yet, or the reviews would be of the newest version.
                client.must(&doc! { "pleach": "apply", "declaration": format!("database: {DB}\ncollections: {{}}\n"), "remove": true, "$db": DB })?;
                let number = |number: i64| doc! { "_id": format!("old-{number}"), "worker": OLD, "productId": 1_000_000 + number % 9, "stars": 3, "mass": 2, "place": 1 };
                for part in 0..OLD_REVIEWS / 1_000 {
                    let some: Vec<Document> = (part * 1_000..(part + 1) * 1_000).map(number).collect();
                    client.must(&doc! { "insert": "reviews", "documents": some, "$db": DB })?;
                }
            }
            // The rules of another world stay declared in a database that is dropped.
            client.must(&doc! { "pleach": "apply", "declaration": declaration()?, "remove": true, "$db": DB })?;
            let ids = (0..PRODUCTS).chain(PRODUCTS + 1..PRODUCTS + 1 + OWN_PRODUCTS);
            let products: Vec<Document> = ids.map(|id| doc! { "_id": id, "price": id, "cost": 1 }).collect();
            client.must(&doc! { "insert": "products", "documents": products, "$db": DB })?;
        } else if CHANGING.load(Ordering::Relaxed) {
            // Whatever was under way, these are the rules again.
            let apply = doc! { "pleach": "apply", "declaration": declaration()?, "remove": true, "overwrite": true, "create_missing": true };
            client.must(&Document::from_iter(apply.into_iter().chain(doc! { "$db": DB })))?;
        }
        Ok(())
    }

    fn release(&mut self, client: &mut Client) -> Result<()> {
        if let Some(Operation::Both { .. }) = &self.in_flight {
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
                    self.apply(&Operation::Both { number, product });
                }
            }
            Some(operation) => {
                let reply =
                    until_answered(client, &self.command(&operation, false)).context("the connection is gone")?;
                ensure!(did(&reply, operation.writes()), "sent again, {operation:?} was refused: {reply}");
                self.apply(&operation);
            }
        }
        Ok(())
    }

    fn run(mut self, address: &str, allow_relaxed: bool, progress: &Progress) -> Result<Kept> {
        if self.worker == 0 && CHANGING.load(Ordering::Relaxed) {
            change(address, progress)?;
            return Ok(self);
        }
        let Ok(mut client) = Client::connect(address) else { return Ok(self) };
        while !progress.is_stopped() {
            let operation = self.choose();
            self.transaction_number += 1;
            self.in_flight = Some(operation.clone());
            let relaxed = allow_relaxed && rand::rng().random_range(0..2) == 0;
            let done = match &operation {
                Operation::Both { number, product } => self.both(&mut client, *number, *product),
                _ => until_answered(&mut client, &self.command(&operation, relaxed)).map(|reply| {
                    ensure!(did(&reply, operation.writes()), "{operation:?} was refused: {reply}");
                    Ok(true)
                }),
            };
            match done {
                Some(done) => {
                    if done? {
                        self.apply(&operation);
                        progress.add(operation.writes());
                    }
                    self.in_flight = None;
                }
                // The connection is gone: the crash.
                None => break,
            }
        }
        Ok(self)
    }

    fn verify(client: &mut Client, models: &[Kept]) -> Result<()> {
        verified::verify(client, models)
    }
}
