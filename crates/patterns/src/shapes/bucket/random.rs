//! Readings by chance for tests: one bucket of them, the same for the same seed.

use crate::shapes::bucket::{Body, Bucket, ReadingId, Slot};
use bson::{Bson, doc};

/// A small generator: tests must be the same every time.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0x1234_5678))
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// `count` readings of one series and period.
pub(super) fn readings(bucket: &Bucket, seed: u64, count: usize) -> Vec<bson::Document> {
    let mut dice = Dice::new(seed);
    let any = i64::try_from(dice.below(4_000_000_000_000)).unwrap() - 1_000_000_000_000;
    let start = bucket.every.start(any);
    let length = u64::try_from(bucket.every.next(start) - start).unwrap();
    let series: Vec<(String, Option<Bson>)> = bucket
        .by
        .iter()
        .map(|series| {
            let value = match dice.below(6) {
                0 if !bucket.packed => None,
                1 if !bucket.packed => Some(Bson::Null),
                roll if series.hex => {
                    Some(Bson::from(["", "00", "abcd", "0011ff"][usize::try_from(roll).unwrap() % 4]))
                }
                2 => Some(Bson::from(7)),
                3 => Some(Bson::from(doc! { "site": 1, "row": "x" })),
                _ => Some(Bson::from("A")),
            };
            (series.field.to_string(), value)
        })
        .collect();
    let mut readings = Vec::new();
    let mut taken = Vec::new();
    while readings.len() < count {
        let mut at = start + i64::try_from(dice.below(length)).unwrap();
        let mut reading = doc! {};
        if let Body::Readings(body) = &bucket.body {
            at = body.unit.size.start(at);
            if body.reading_id == ReadingId::Time && taken.contains(&at) {
                continue;
            }
            taken.push(at);
            reading.insert("_id", i32::try_from(readings.len()).unwrap());
        }
        for (name, value) in series.iter().filter_map(|(name, value)| Some((name, value.clone()?))) {
            reading.insert(name, value);
        }
        reading.insert(&*bucket.time, bson::DateTime::from_millis(at));
        match &bucket.body {
            Body::Readings(_) => {
                for name in ["temp", "humid", "a.b"] {
                    if let Some(value) = value(&mut dice) {
                        reading.insert(name, value);
                    }
                }
            }
            Body::Slots(slots) => {
                if let Slot::Field { field, .. } = &slots.slot {
                    reading.insert(&**field, ["DE", "FR", "IT", "ES"][usize::try_from(dice.below(4)).unwrap()]);
                }
                for (name, _) in &slots.sums {
                    if dice.below(2) == 0 {
                        reading.insert(&**name, number(&mut dice));
                    }
                }
            }
        }
        readings.push(reading);
    }
    readings
}

fn number(dice: &mut Dice) -> Bson {
    match dice.below(8) {
        0 => Bson::from(0.5),
        1 => Bson::from(1_i64 << 40),
        _ => Bson::from(i32::try_from(dice.below(9)).unwrap()),
    }
}

fn value(dice: &mut Dice) -> Option<Bson> {
    match dice.below(9) {
        0 => None,
        1 => Some(Bson::Null),
        2 => Some(Bson::from("warm")),
        3 => Some(Bson::from(vec![1, 2])),
        4 => Some(Bson::from(doc! { "c": 1 })),
        _ => Some(number(dice)),
    }
}
