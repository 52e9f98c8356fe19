//! What is wrong with a stored bucket, and the bucket as it should be: series and period as the `_id` says, counts and figures
//! as the readings say, slots that exist, once each.

use crate::rule::Flaw;
use crate::shapes::bucket::add_native::replaced;
use crate::shapes::bucket::build::add_up;
use crate::shapes::bucket::{Body, Bucket, Grain, Layout, ReadingId, Readings, Slot, Slots, slot_start};
use document::value::order;
use document::{Array, Doc, DocWriter, Value};

impl Bucket {
    /// What is not as it should be. The order of fields is no flaw.
    pub fn flaws(&self, stored: &Doc<'_>) -> Vec<Flaw> {
        self.examine(stored).flaws
    }

    /// The document with all mendable flaws mended; `None` if it is empty and should not be there.
    pub fn canonical(&self, stored: &Doc<'_>) -> Option<Doc<'static>> {
        let found = self.examine(stored);
        if found.empty {
            return None;
        }
        let fields: Vec<(&str, Value<'_>)> =
            found.mended.iter().map(|(name, value)| (&**name, value.borrow())).collect();
        Some(replaced(&stored.borrow(), &fields))
    }

    fn examine(&self, stored: &Doc<'_>) -> Examined {
        let stored = stored.borrow();
        let mut found = Examined::default();
        let Some((key, _)) = self.key_of_id(&stored.get("_id").unwrap_or(Value::Missing)) else {
            found.broken("_id", stored.get("_id"), Value::Missing);
            return found;
        };
        if self.every.start(key.start) != key.start {
            let start = Value::DateTime(self.every.start(key.start));
            found.broken(&format!("_id.{}", self.every.name()), Some(Value::DateTime(key.start)), start);
            return found;
        }
        if !self.packed {
            for (series, value) in self.by.iter().zip(&key.series) {
                found.compare(&series.field, &stored, value.clone().unwrap_or(Value::Missing));
            }
            found.compare(self.every.name(), &stored, Value::DateTime(key.start));
        }
        match &self.body {
            Body::Readings(readings) => self.examine_readings(readings, &stored, key.start, &mut found),
            Body::Slots(slots) => self.examine_slots(slots, &stored, key.start, &mut found),
        }
        found
    }

    fn examine_readings(&self, readings: &Readings, stored: &Doc<'_>, start: i64, found: &mut Examined) {
        let array = match stored.get("readings") {
            Some(Value::Array(array)) => array,
            other => return found.broken("readings", other, Value::Array(Array::empty())),
        };
        let mut elements = Vec::new();
        let mut offsets = Vec::new();
        for (at, element) in array.iter().enumerate() {
            let Value::Document(element) = element else {
                found.broken(&format!("readings.{at}"), Some(element), Value::Missing);
                continue;
            };
            let offset = element.get(&readings.unit.name);
            let units = offset.as_ref().and_then(Value::as_i64_exact);
            let time = units.and_then(|units| readings.unit.size.after(start, units));
            let field = || format!("readings.{at}.{}", readings.unit.name);
            if time.is_none_or(|time| self.every.start(time) != start) {
                found.broken(&field(), offset, Value::Missing);
            } else if readings.reading_id == ReadingId::Time && offsets.contains(&units) {
                // One reading per series and time: which of them, nobody knows.
                found.broken(&field(), offset, Value::Missing);
            }
            let own = |name: &&str| **name != *readings.unit.name && element.contains(name);
            for name in self.by.iter().map(|series| &*series.field).chain([&*self.time]).filter(own) {
                found.broken(&format!("readings.{at}.{name}"), element.get(name), Value::Missing);
            }
            offsets.push(units);
            elements.push(element);
        }
        found.empty = array.is_empty();
        if found.empty {
            found.flaw("readings", Some(Value::Array(array)), Value::Missing, true);
            return;
        }
        if elements.len() > usize::try_from(readings.at_most).unwrap_or(usize::MAX) {
            let most = i64::from(readings.at_most);
            found.broken("readings", stored.get("count"), Value::Int64(most));
        }
        let count = i32::try_from(array.count()).unwrap_or(i32::MAX);
        found.compare("count", stored, Value::Int32(count));
        if !readings.stats.is_empty() {
            let mut figures = DocWriter::new();
            readings.write_stats(&mut figures, &elements);
            found.compare_stats(stored, &figures.finish());
        }
    }

    fn examine_slots(&self, slots: &Slots, stored: &Doc<'_>, start: i64, found: &mut Examined) {
        let (items, empty) = match (stored.get("items"), slots.layout) {
            (Some(Value::Document(items)), Layout::FieldNames) => (items.iter(), items.is_empty()),
            (Some(Value::Array(items)), Layout::Array) => (items.raw_iter(), items.is_empty()),
            (other, Layout::FieldNames) => return found.broken("items", other, Value::Document(Doc::empty())),
            (other, Layout::Array) => return found.broken("items", other, Value::Array(Array::empty())),
        };
        found.empty = empty;
        if empty {
            return found.flaw("items", stored.get("items"), Value::Missing, true);
        }
        let mut names: Vec<Value<'_>> = Vec::new();
        let mut twice = false;
        for (name, slot) in items {
            let field = format!("items.{name}");
            let Value::Document(slot) = slot else {
                found.broken(&field, Some(slot), Value::Missing);
                continue;
            };
            let own = match slots.layout {
                Layout::FieldNames => Value::String(name.clone()),
                Layout::Array => slot.get(self.slot_field(slots)).unwrap_or(Value::Missing),
            };
            if !self.is_slot(slots, start, &own) {
                found.broken(&field, Some(Value::Document(slot.clone())), Value::Missing);
            }
            twice |= names.iter().any(|name| order::equal(name, &own));
            names.push(own);
            for (short, value) in slot.iter() {
                let names_slot = slots.layout == Layout::Array && short.as_str() == self.slot_field(slots);
                let sum = value.is_number() && slots.sums.iter().any(|(_, own)| **own == *short.as_str());
                if !names_slot && !sum {
                    found.broken(&format!("{field}.{short}"), Some(value), Value::Missing);
                }
            }
        }
        if let Slot::Field { at_most, .. } = &slots.slot
            && names.len() > usize::try_from(*at_most).unwrap_or(usize::MAX)
        {
            let count = i64::try_from(names.len()).unwrap_or(i64::MAX);
            found.broken("items", Some(Value::Int64(count)), Value::Int64(i64::from(*at_most)));
        }
        let entries = if twice { self.entries(stored).ok() } else { None };
        if let Some(entries) = entries {
            let mut mended = DocWriter::new();
            self.write_slots(&mut mended, slots, &add_up(slots, &entries));
            let mended = mended.finish().get("items").unwrap_or(Value::Missing);
            found.flaw("items", stored.get("items"), mended.clone(), true);
            found.mended.push(("items".to_owned(), mended));
        }
    }

    /// Whether a bucket that begins at `start` has a slot that is told by this value.
    fn is_slot(&self, slots: &Slots, start: i64, told: &Value<'_>) -> bool {
        match (&slots.slot, told) {
            (Slot::Field { field, keys, .. }, Value::String(name)) => keys.check(field, name.as_str()).is_ok(),
            (Slot::Time(grain), Value::String(name)) if slots.layout == Layout::FieldNames => {
                slot_start(self.every, *grain, start, name.as_str()).is_some()
            }
            (Slot::Time(grain), Value::DateTime(at)) if slots.layout == Layout::Array => {
                Grain::start(*grain, *at) == *at && self.every.start(*at) == start
            }
            _ => false,
        }
    }
}

#[derive(Default)]
struct Examined {
    flaws: Vec<Flaw>,
    /// The top-level fields as they should be, where they are not.
    mended: Vec<(String, Value<'static>)>,
    empty: bool,
}

impl Examined {
    fn flaw(&mut self, field: &str, stored: Option<Value<'_>>, expected: Value<'static>, mendable: bool) {
        let stored = stored.unwrap_or(Value::Missing).into_owned();
        self.flaws.push(Flaw { field: field.to_owned(), stored, expected, mendable });
    }

    fn broken(&mut self, field: &str, stored: Option<Value<'_>>, expected: Value<'static>) {
        self.flaw(field, stored, expected, false);
    }

    /// The top-level field must have this value.
    fn compare(&mut self, field: &str, stored: &Doc<'_>, expected: Value<'static>) {
        let own = stored.get(field).unwrap_or(Value::Missing);
        if own.is_missing() != expected.is_missing() || !order::equal(&own, &expected) {
            self.mended.push((field.to_owned(), expected.clone()));
            self.flaw(field, Some(own), expected, true);
        }
    }

    /// Each figure for itself; whatever else is in `stats` stays.
    fn compare_stats(&mut self, stored: &Doc<'_>, figures: &Doc<'static>) {
        let own = match stored.get("stats") {
            Some(Value::Document(stats)) => stats,
            _ => Doc::empty(),
        };
        let mut mended = Vec::new();
        for (name, expected) in figures.iter() {
            let value = own.get(name.as_str()).unwrap_or(Value::Missing);
            if value.is_missing() || !order::equal(&value, &expected) {
                self.flaw(&format!("stats.{name}"), Some(value), expected.clone(), true);
                mended.push((name, expected));
            }
        }
        if !mended.is_empty() {
            let fields: Vec<(&str, Value<'_>)> =
                mended.iter().map(|(name, value)| (name.as_str(), value.borrow())).collect();
            self.mended.push(("stats".to_owned(), Value::Document(replaced(&own, &fields))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::{Period, random, samples};
    use bson::{Bson, bson, doc};

    fn readable(doc: &Doc<'_>) -> bson::Document {
        bson::Document::try_from(doc).unwrap()
    }

    fn date(text: &str) -> bson::DateTime {
        bson::DateTime::parse_rfc3339_str(format!("{text}Z")).unwrap()
    }

    fn built(bucket: &Bucket, readings: &[bson::Document]) -> bson::Document {
        let encoded: Vec<_> = readings.iter().map(|doc| bucket.encode(&Doc::from(doc)).unwrap()).collect();
        let entries: Vec<_> = encoded.iter().map(|one| one.entry.clone()).collect();
        readable(&bucket.build(&encoded[0].key, 0, &entries).unwrap())
    }

    #[test]
    fn what_is_built_has_no_flaw() {
        for bucket in samples::all() {
            for seed in 0..3 {
                let stored = Doc::from(built(&bucket, &random::readings(&bucket, seed, 7)));
                assert_eq!(bucket.flaws(&stored), [], "{bucket:?}");
                assert_eq!(bucket.canonical(&stored), Some(stored), "{bucket:?}");
            }
        }
    }

    /// What is put into the document, which flaws that makes (`!`: cannot be mended), and whether mending undoes it.
    fn check(bucket: &Bucket, whole: &bson::Document, path: &str, value: Option<Bson>, flaws: &[&str]) {
        let mut broken = whole.clone();
        let (parents, last) = path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
        let place = parents
            .into_iter()
            .flat_map(|parents| parents.split('.'))
            .fold(&mut broken, |doc, name| doc.get_document_mut(name).unwrap());
        match value {
            Some(value) => place.insert(last, value),
            None => place.remove(last),
        };
        let broken = Doc::from(&broken);
        let found: Vec<String> = bucket
            .flaws(&broken)
            .iter()
            .map(|flaw| format!("{}{}", if flaw.mendable { "" } else { "!" }, flaw.field))
            .collect();
        assert_eq!(found, flaws, "{path}");
        if flaws.iter().all(|flaw| !flaw.starts_with('!')) {
            let mended = bucket.canonical(&broken).unwrap();
            assert_eq!(bucket.flaws(&mended), [], "{path}");
            let sorted = |doc: &bson::Document| {
                let mut fields: Vec<_> = doc.clone().into_iter().collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                fields
            };
            assert_eq!(sorted(&readable(&mended)), sorted(whole), "{path}");
        }
    }

    #[test]
    fn flaws_of_readings() {
        let bucket = samples::with_stats(samples::sensors());
        let reading = |minute: u32, temp: i32| {
            doc! { "_id": temp, "sensorId": "A", "ts": date(&format!("2024-05-01T10:{minute:02}:00")), "temp": temp, "humid": 1 }
        };
        let whole = built(&bucket, &[reading(5, 20), reading(1, 22)]);
        let hour = date("2024-05-01T10:00:00");
        let cases: [(&str, Option<Bson>, &[&str]); 14] = [
            ("count", Some(bson!(3)), &["count"]),
            ("count", None, &["count"]),
            ("sensorId", Some(bson!("B")), &["sensorId"]),
            ("sensorId", None, &["sensorId"]),
            ("hour", Some(bson!(date("2024-05-01T11:00:00"))), &["hour"]),
            ("stats.maxTemp", Some(bson!(99)), &["stats.maxTemp"]),
            ("stats.lastTemp", None, &["stats.lastTemp"]),
            ("_id", Some(bson!(5)), &["!_id"]),
            ("_id.n", None, &["!_id"]),
            ("_id.hour", Some(bson!(date("2024-05-01T10:30:00"))), &["!_id.hour"]),
            ("readings", None, &["!readings"]),
            ("readings", Some(bson!(5)), &["!readings"]),
            (
                "readings",
                Some(bson!([{ "m": 60, "temp": 1, "humid": 1 }])),
                &[
                    "!readings.0.m",
                    "count",
                    "stats.avgTemp",
                    "stats.countTemp",
                    "stats.lastTemp",
                    "stats.maxTemp",
                    "stats.minTemp",
                    "stats.sumTemp",
                ],
            ),
            (
                "stats",
                None,
                &[
                    "stats.avgTemp",
                    "stats.countTemp",
                    "stats.lastTemp",
                    "stats.maxTemp",
                    "stats.minTemp",
                    "stats.sumTemp",
                    "stats.maxHumid",
                ],
            ),
        ];
        for (path, value, flaws) in cases {
            check(&bucket, &whole, path, value, flaws);
        }
        let mut empty = whole.clone();
        empty.insert("readings", bson!([]));
        assert_eq!(bucket.flaws(&Doc::from(&empty)).len(), 1);
        assert_eq!(bucket.canonical(&Doc::from(&empty)), None);
        let mut noted = whole.clone();
        noted.insert("note", 1);
        noted.insert("count", 7);
        let mended = readable(&bucket.canonical(&Doc::from(&noted)).unwrap());
        assert_eq!(
            (mended.get("note"), mended.get("count")),
            (Some(&bson!(1)), Some(&bson!(2))),
            "what is not ours stays"
        );
        let by_time = samples::with_id(samples::sensors(), ReadingId::Time);
        let twice = doc! {
            "_id": { "sensorId": "A", "hour": hour, "n": 0 }, "sensorId": "A", "hour": hour, "count": 2,
            "readings": [{ "m": 1 }, { "m": 1 }],
        };
        assert_eq!(by_time.flaws(&Doc::from(&twice))[0].field, "readings.1.m");
        let mut over = twice;
        over.insert("readings", (0..61).map(|_| bson!({ "m": 1 })).collect::<Vec<_>>());
        over.insert("count", 61);
        let flaws = samples::sensors().flaws(&Doc::from(&over));
        assert_eq!((flaws.len(), &*flaws[0].field, flaws[0].mendable), (1, "readings", false));
    }

    #[test]
    fn flaws_of_slots() {
        let event = |day: &str| doc! { "key": "AB", "date": date(&format!("2023-0{day}T00:00:00")), "approved": 1 };
        let bucket = samples::events(false);
        let whole = built(&bucket, &[event("1-05"), event("2-28")]);
        check(&bucket, &whole, "items.0229", Some(bson!({ "a": 1 })), &["!items.0229"]);
        check(&bucket, &whole, "items.0401", Some(bson!({ "a": 1 })), &["!items.0401"]);
        check(&bucket, &whole, "items.0105", Some(bson!(5)), &["!items.0105"]);
        check(&bucket, &whole, "items.0105.a", Some(bson!("5")), &["!items.0105.a"]);
        check(&bucket, &whole, "items.0105.zz", Some(bson!(5)), &["!items.0105.zz"]);
        check(&bucket, &whole, "key", None, &["key"]);
        check(&bucket, &whole, "items", Some(bson!([])), &["!items"]);
        let array = samples::slots(Period::Quarter, Slot::Time(Grain::Day), Layout::Array, true);
        let day = date("2023-01-05T00:00:00");
        let mut twice = built(&array, &[event("1-05"), event("2-28")]);
        twice.insert("items", bson!([{ "date": day, "a": 1 }, { "date": day, "a": 2, "n": 1 }]));
        assert_eq!(array.flaws(&Doc::from(&twice)).len(), 1);
        let mended = readable(&array.canonical(&Doc::from(&twice)).unwrap());
        assert_eq!(mended.get("items"), Some(&bson!([{ "date": day, "a": 3, "n": 1 }])));
        twice.insert("items", bson!([{ "date": date("2023-01-05T01:00:00"), "a": 1 }]));
        assert_eq!(array.flaws(&Doc::from(&twice))[0].field, "items.0");
        let countries = samples::slots(Period::Day, samples::countries(), Layout::FieldNames, false);
        let whole = built(&countries, &[doc! { "key": "AB", "date": day, "country": "DE", "approved": 1 }]);
        check(&countries, &whole, "items.Germany", Some(bson!({})), &["!items.Germany"]);
        let many: bson::Document = (0..251)
            .map(|n| {
                let letter = |n: u8| char::from(b'A' + n);
                (format!("{}{}", letter(n / 26), letter(n % 26)), bson!({}))
            })
            .collect();
        check(&countries, &whole, "items", Some(Bson::Document(many)), &["!items"]);
    }
}
