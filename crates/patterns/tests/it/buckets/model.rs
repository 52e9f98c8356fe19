//! Random operations on buckets and on a plain list of documents: both must be the same after each of them.

use super::*;
use document::Env;
use document::filter::Details;
use document::op::DeleteStatement;
use document::update::Applied;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A collection as a list.
#[derive(Default)]
struct Plain(Vec<bson::Document>);

impl Plain {
    fn matching(&self, query: &bson::Document) -> Vec<usize> {
        let filter = filter(query.clone());
        let is = |doc: &bson::Document| filter.matches(&Doc::from(doc), &Env::fixed()).unwrap();
        let mut found: Vec<usize> = (0..self.0.len()).filter(|at| is(&self.0[*at])).collect();
        found.sort_by_key(|at| (self.0[*at].get_i32("s").unwrap(), *self.0[*at].get_datetime("ts").unwrap()));
        found
    }

    /// Gives how many matched.
    fn update(&mut self, query: &bson::Document, update: &bson::Document, multi: bool) -> u64 {
        let found = self.matching(query);
        let some: Vec<usize> = found.into_iter().take(if multi { usize::MAX } else { 1 }).collect();
        for at in &some {
            let doc = Doc::from(&self.0[*at]);
            let update = change(update.clone());
            if let Applied::Changed(after) = update.apply(&doc, &Details::default(), &Env::fixed()).unwrap() {
                self.0[*at] = bson::Document::try_from(&after).unwrap();
            }
        }
        some.len() as u64
    }

    fn delete(&mut self, query: &bson::Document, multi: bool) -> u64 {
        let found = self.matching(query);
        let mut some: Vec<usize> = found.into_iter().take(if multi { usize::MAX } else { 1 }).collect();
        some.sort_unstable();
        some.iter().rev().for_each(|at| drop(self.0.remove(*at)));
        some.len() as u64
    }
}

/// Times are all different, so that the first of several is always the same.
fn fresh(random: &mut StdRng, next: &mut i64) -> bson::Document {
    *next += 1;
    let mut doc =
        reading(random.random_range(0..3), random.random_range(0..3) * HOUR + *next, random.random_range(0..9));
    doc.insert("_id", *next);
    doc
}

fn query(random: &mut StdRng, next: i64) -> bson::Document {
    match random.random_range(0..6) {
        0 => doc! {"s": random.random_range(0..4)},
        1 => doc! {"temp": {"$gt": random.random_range(0..9)}},
        2 => doc! {"_id": random.random_range(0..=next)},
        3 => doc! {"ts": {"$gte": at(HOUR), "$lt": at(random.random_range(0..4) * HOUR)}},
        4 => doc! {"s": {"$in": [0, 2]}, "temp": random.random_range(0..9)},
        _ => doc! {"$or": [{"temp": 3}, {"s": 1, "temp": {"$lt": 2}}]},
    }
}

fn changes(random: &mut StdRng, next: &mut i64, multi: bool) -> bson::Document {
    *next += 1;
    match random.random_range(0..if multi { 3 } else { 5 }) {
        0 => doc! {"$inc": {"temp": 1}},
        1 => doc! {"$set": {"s": random.random_range(0..3)}},
        2 => doc! {"$set": {"note": {"n": *next}}, "$unset": {"old": ""}},
        3 => doc! {"$set": {"ts": at(random.random_range(0..3) * HOUR + *next)}},
        _ => doc! {"s": 1, "ts": at(*next), "temp": 4, "whole": true},
    }
}

fn differs(seed: u64, bucket: Bucket) {
    let buckets = Buckets::new(bucket);
    let mut plain = Plain::default();
    let mut random = StdRng::seed_from_u64(seed);
    let mut next = 0;
    run(async {
        for step in 0..80 {
            let multi = random.random_bool(0.3);
            match random.random_range(0..10) {
                0..4 => {
                    let count = if random.random_bool(0.5) { 1 } else { random.random_range(2..12) };
                    let new: Vec<_> = (0..count).map(|_| fresh(&mut random, &mut next)).collect();
                    assert_eq!(buckets.did(insert(NAME, new.clone())).await.n, new.len() as u64);
                    plain.0.extend(new);
                }
                4..8 => {
                    let (query, change) = (query(&mut random, next), changes(&mut random, &mut next, multi));
                    let how: &[&str] = if multi { &["multi"] } else { &[] };
                    let written = buckets.did(update(NAME, query.clone(), change.clone(), how)).await;
                    assert_eq!(written.n, plain.update(&query, &change, multi), "{query} {change}");
                }
                _ => {
                    let query = query(&mut random, next);
                    let statement = DeleteStatement { filter: filter(query.clone()), multi, hint: None };
                    let op = document::op::Delete::of(ns(NAME), vec![statement]);
                    assert_eq!(buckets.did(WriteOp::Delete(op)).await.n, plain.delete(&query, multi), "{query}");
                }
            }
            if step % 4 == 0 {
                buckets.check(&plain.0).await;
            }
        }
        buckets.check(&plain.0).await;
    });
}

#[test]
fn buckets_and_a_list_agree() {
    for seed in 0..2 {
        differs(seed, hours(readings(5)));
        differs(seed, hours(Readings { stats: Vec::new(), reading_id: ReadingId::Indexed, ..readings(3) }));
    }
}
