//! Random documents and random questions.

use super::samples::*;
use bson::{Bson, Document, doc};
use document::op::Namespace;
use patterns::shapes::bucket::{Body, Bucket, ReadingId, Slot};

/// A small generator: the same questions in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    pub(crate) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const HOUR: i64 = 3_600_000;
const KEYS: [&str; 5] = ["AB01", "ab02", "aB02", "FF", "ff"];

/// How clients may write keys, and what is none.
const ASKED: [&str; 8] = ["AB01", "ab01", "aB01", "AB02", "FF", "ff", "nohex", "A"];

/// The same question with its keys as they are given back: what a plain collection of these documents is asked.
pub(crate) fn in_lower_case(question: &Bson) -> Bson {
    match question {
        Bson::String(text) if ASKED.contains(&text.as_str()) => text.to_lowercase().into(),
        Bson::Document(doc) => lower(doc).into(),
        Bson::Array(items) => items.iter().map(in_lower_case).collect::<Vec<_>>().into(),
        Bson::RegularExpression(pattern) => {
            let pattern = pattern.pattern.as_str().to_lowercase();
            let (pattern, options) = (pattern.try_into().unwrap(), "".try_into().unwrap());
            Bson::RegularExpression(bson::Regex { pattern, options })
        }
        other => other.clone(),
    }
}

/// As [`in_lower_case`], of a document.
pub(crate) fn lower(question: &Document) -> Document {
    question.iter().map(|(name, value)| (name.clone(), in_lower_case(value))).collect()
}

/// What a namespace is asked: keys as a client writes them, or as they are in the plain collection.
pub(crate) fn asked_of<'q, T: ?Sized>(ns: &Namespace, written: &'q T, plain: &'q T) -> &'q T {
    if *ns.collection == *PLAIN { plain } else { written }
}

fn about_keys(dice: &mut Dice) -> Document {
    let (key, other) = (dice.pick(&ASKED), dice.pick(&ASKED));
    let pattern = dice.pick(&["^AB", "^ab0", "0[12]$", "F"]).try_into().unwrap();
    let regex = bson::Regex { pattern, options: "".try_into().unwrap() };
    match dice.below(12) {
        0 => doc! { "key": { "$eq": key } },
        1 => doc! { "key": { "$ne": key } },
        2 => doc! { "key": { "$in": [key, other] } },
        3 => doc! { "key": { "$nin": [key, other] } },
        4 => doc! { "key": { "$gte": key } },
        5 => doc! { "key": { "$not": { "$lt": key } } },
        6 => doc! { "$nor": [{ "key": key }, { "key": other }] },
        7 => doc! { "$expr": { "$eq": ["$key", key] } },
        8 => doc! { "$expr": { "$in": ["$key", [key, other]] } },
        9 => doc! { "key": regex },
        10 => doc! { "_id.key": key },
        _ => doc! { "key": { "$not": regex } },
    }
}

fn span(bucket: &Bucket) -> i64 {
    match &bucket.body {
        Body::Readings(_) => 50 * HOUR,
        Body::Slots(_) => 400 * 24 * HOUR,
    }
}

fn moment(bucket: &Bucket, dice: &mut Dice) -> i64 {
    let units = usize::try_from(span(bucket) / 60_000).unwrap();
    START + i64::try_from(dice.below(units)).unwrap() * 60_000
}

fn value(dice: &mut Dice) -> Option<Bson> {
    let number = i32::try_from(dice.below(20)).unwrap() - 5;
    Some(match dice.below(10) {
        0 => return None,
        1 => Bson::Null,
        2 | 3 => (f64::from(number) + 0.25).into(),
        // Of equal values of different types the first that comes is shown: there are none.
        4 => (i64::from(number) + 1_000).into(),
        5 => Bson::Array(vec![number.into(), 7.into()]),
        6 => "text".into(),
        _ => number.into(),
    })
}

fn put(doc: &mut Document, name: &str, value: Option<Bson>) {
    if let Some(value) = value {
        doc.insert(name, value);
    }
}

fn series(dice: &mut Dice) -> Option<Bson> {
    dice.pick(&[Some(1.into()), Some(2.into()), Some("x".into()), Some(Bson::Null), None, Some(doc! {"a": 1}.into())])
}

/// Documents that the bucket can hold; slots come once.
pub(crate) fn documents(bucket: &Bucket, dice: &mut Dice, number: usize) -> Vec<Document> {
    let (mut all, mut seen) = (Vec::new(), std::collections::HashSet::new());
    for id in 0..number {
        let mut doc = Document::new();
        for field in &bucket.by {
            match field.hex {
                true => doc.insert(&*field.field, dice.pick(&KEYS)),
                false => series(dice).and_then(|value| doc.insert(&*field.field, value)),
            };
        }
        let mut when = moment(bucket, dice);
        match &bucket.body {
            Body::Slots(slots) => {
                when -= when.rem_euclid(24 * HOUR);
                if let Slot::Field { field, .. } = &slots.slot {
                    when = bucket.every.start(when);
                    doc.insert(&**field, dice.pick(&["DE", "FR", "IT"]));
                }
                if !seen.insert(format!("{doc:?}{when}").to_lowercase()) {
                    continue;
                }
                for (sum, _) in &slots.sums {
                    let number = i32::try_from(dice.below(9)).unwrap();
                    let choice = dice.below(12);
                    let value: Option<Bson> = match choice {
                        0..5 => None,
                        5 => Some((f64::from(number) + 0.1).into()),
                        6 => Some((i64::from(number) + 1_000).into()),
                        _ => Some(number.into()),
                    };
                    put(&mut doc, sum, value);
                }
            }
            Body::Readings(readings) => {
                if readings.reading_id == ReadingId::Time {
                    if !seen.insert(format!("{doc:?}{when}").to_lowercase()) {
                        continue;
                    }
                } else {
                    doc.insert("_id", i32::try_from(id).unwrap());
                    when += i64::try_from(dice.below(60_000)).unwrap();
                }
                put(&mut doc, "temp", value(dice));
                put(
                    &mut doc,
                    "tags",
                    Some(Bson::Array(
                        (0..dice.below(4))
                            .map(|_| {
                                doc! {"k": dice.pick(&["a", "b"]), "v": i32::try_from(dice.below(5)).unwrap()}.into()
                            })
                            .collect(),
                    )),
                );
                put(&mut doc, "in", Some(doc! {"x": value(dice).unwrap_or(Bson::Null)}.into()));
            }
        }
        doc.insert("ts", at(when));
        all.push(doc);
    }
    all
}

pub(crate) fn a_filter(bucket: &Bucket, dice: &mut Dice) -> Document {
    let mut all = Vec::new();
    for _ in 0..dice.below(4) {
        let (low, high) = (moment(bucket, dice), moment(bucket, dice));
        let (low, high) = (low.min(high), low.max(high));
        let days = |at: i64| at - at.rem_euclid(24 * HOUR);
        let key = dice.pick(&ASKED);
        let series = series(dice).unwrap_or(Bson::Null);
        let first = &*bucket.by[0].field;
        all.push(match dice.below(20) {
            16..20 if bucket.by.iter().any(|series| series.hex) => about_keys(dice),
            0 | 1 => doc! { "ts": { "$gte": at(low), "$lt": at(high) } },
            2 => doc! { "ts": { "$gt": at(days(low)), "$lte": at(days(high)) } },
            3 => doc! { "ts": at(days(low)) },
            4 => doc! { "ts": { "$gte": at(bucket.every.start(low)), "$lt": at(bucket.every.start(high)) } },
            5 | 6 if bucket.by.iter().any(|series| series.hex) => doc! { "key": key },
            5 | 6 => doc! { first: series },
            7 => doc! { "key": { "$in": ["AB01", "FF"] } },
            8 => doc! { first: { "$in": [1, "x", "AB02"] } },
            9 => doc! { first: { "$exists": dice.chance(50) } },
            10 => doc! { "temp": { "$gt": 3 } },
            11 => doc! { "$or": [{ first: "AB01" }, { "ts": { "$lt": at(high) } }] },
            12 => doc! { "tags": { "$elemMatch": { "k": "a", "v": { "$gt": 1 } } } },
            13 => doc! { "$expr": { "$lt": [{ "$hour": "$ts" }, 12] } },
            14 => doc! { first: { "$ne": dice.pick(&[Bson::Int32(1), Bson::Null, "AB01".into()]) } },
            _ => doc! { "approved": { "$gte": 3 } },
        });
    }
    match all.len() {
        0 => doc! {},
        1 => all.remove(0),
        _ => doc! { "$and": all },
    }
}

pub(crate) fn a_projection(dice: &mut Dice, filter: &Document) -> Document {
    match dice.below(9) {
        0 => doc! { "temp": 1 },
        1 => doc! { "_id": 0, "ts": 1, "sensorId": 1 },
        2 => doc! { "tags": { "$slice": 1 } },
        3 => doc! { "tags": { "$elemMatch": { "k": "b" } } },
        4 => doc! { "approved": 1, "twice": { "$multiply": [2, 3] } },
        5 if filter.contains_key("tags") => doc! { "tags.$": 1 },
        6 => doc! { "in.x": 0, "_id": 0 },
        _ => doc! {},
    }
}

pub(crate) fn a_pipeline(bucket: &Bucket, dice: &mut Dice) -> Vec<Document> {
    let mut stages = Vec::new();
    if dice.chance(80) {
        stages.push(doc! { "$match": a_filter(bucket, dice) });
    }
    let first = format!("${}", bucket.by[0].field);
    let last = format!("${}", bucket.by[bucket.by.len() - 1].field);
    let id: Bson = dice.pick(&[
        Bson::Null,
        7.into(),
        first.clone().into(),
        doc! { "one": &first }.into(),
        doc! { "one": &first, "two": &last }.into(),
        doc! { "$dateTrunc": { "date": "$ts", "unit": "month" } }.into(),
    ]);
    match dice.below(8) {
        0 => stages.push(doc! { "$count": "n" }),
        1..5 => {
            let mut group = doc! { "_id": id };
            for at in 0..dice.below(4) {
                let of = dice.pick(&["$temp", "$approved", "$noFunds", "$in", "$t", "$ts"]);
                let operator = dice.pick(&["$sum", "$avg", "$min", "$max", "$sum", "$first"]);
                let accumulator = match (operator, dice.below(5)) {
                    ("$first", _) => doc! { "$sum": 1 },
                    (_, 0) => doc! { "$sum": Bson::Int64(2) },
                    (_, 1) => doc! { "$count": {} },
                    (operator, _) => doc! { operator: of },
                };
                group.insert(format!("f{at}"), accumulator);
            }
            stages.push(doc! { "$group": group });
            if dice.chance(30) {
                let (key, other) = (dice.pick(&ASKED), dice.pick(&ASKED));
                stages.push(doc! { "$match": { "$nor": [{ "_id": key }, { "_id.one": { "$in": [key, other] } }] } });
            }
            if dice.chance(30) {
                stages.push(doc! { "$project": { "f0": 1 } });
            }
        }
        5 => stages.push(doc! { "$project": { "ts": 1, "day": { "$dayOfMonth": "$ts" } } }),
        6 => {
            stages.push(doc! { "$unwind": { "path": "$tags", "preserveNullAndEmptyArrays": true } });
            stages.push(doc! { "$sortByCount": "$tags.k" });
        }
        _ => stages
            .push(doc! { "$lookup": { "from": "plain", "localField": "_id", "foreignField": "_id", "as": "same" } }),
    }
    stages
}
