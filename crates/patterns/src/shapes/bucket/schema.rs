//! What `apply` gives the stored collection: a validator that holds for every writer.

use crate::mql::{list, object};
use crate::shapes::bucket::{Body, Bucket, Grain, Layout, Slot, Slots, slot_key};
use document::{Doc, DocWriter, Value};

impl Bucket {
    /// `{ $jsonSchema: … }`: the grammar of slots, numbers for sums, and the types of our own fields.
    pub fn validator(&self) -> Doc<'static> {
        let mut properties = DocWriter::new();
        let mut required: Vec<&str> = Vec::new();
        if self.packed {
            properties.append("_id", &of_type("binData"));
        } else {
            properties.append(self.every.name(), &of_type("date"));
            required.push(self.every.name());
        }
        match &self.body {
            Body::Readings(_) => {
                let whole = list([Value::from("int"), Value::from("long")]);
                properties.append("count", &object([("bsonType", whole)])).append("readings", &of_type("array"));
                required.extend(["count", "readings"]);
            }
            Body::Slots(slots) => {
                properties.append("items", &self.items_schema(slots));
                required.push("items");
            }
        }
        let mut schema = DocWriter::new();
        schema.append("bsonType", &Value::from("object"));
        schema.append("required", &list(required.into_iter().map(Value::from)));
        schema.append("properties", &Value::Document(properties.finish()));
        if self.packed {
            schema.append("additionalProperties", &Value::Bool(false));
        }
        crate::mql::document([("$jsonSchema", Value::Document(schema.finish()))])
    }

    fn items_schema(&self, slots: &Slots) -> Value<'static> {
        let (most, pattern) = match &slots.slot {
            Slot::Time(grain) => (self.every.units(*grain), self.key_pattern(*grain)),
            Slot::Field { keys, at_most, .. } => (u64::from(*at_most), keys.pattern().to_owned()),
        };
        let most = Value::Int64(i64::try_from(most).unwrap_or(i64::MAX));
        let sums = slots.sums.iter().map(|(_, short)| (&**short, of_type("number")));
        let slot = |properties: Value<'static>| {
            vec![
                ("bsonType", Value::from("object")),
                ("properties", properties),
                ("additionalProperties", Value::Bool(false)),
            ]
        };
        match slots.layout {
            Layout::FieldNames => object([
                ("bsonType", Value::from("object")),
                ("maxProperties", most),
                ("patternProperties", object([(&*pattern, object(slot(object(sums))))])),
                ("additionalProperties", Value::Bool(false)),
            ]),
            Layout::Array => {
                let name = self.slot_field(slots);
                let told = match &slots.slot {
                    Slot::Time(_) => of_type("date"),
                    Slot::Field { .. } => {
                        object([("bsonType", Value::from("string")), ("pattern", Value::from(pattern))])
                    }
                };
                let mut one = slot(object([(name, told)].into_iter().chain(sums)));
                one.push(("required", list([Value::from(name)])));
                object([("bsonType", Value::from("array")), ("maxItems", most), ("items", object(one))])
            }
        }
    }

    /// The names of slots as a regular expression: days that the longest month lacks are none.
    fn key_pattern(&self, grain: Grain) -> String {
        const MONTH: &str = "(0[1-9]|1[0-2])";
        const DAY: &str = "(0[1-9]|[12][0-9]|3[01])";
        const DAY_OF_MONTH: &str =
            "(02(0[1-9]|[12][0-9])|(0[469]|11)(0[1-9]|[12][0-9]|30)|(0[13578]|1[02])(0[1-9]|[12][0-9]|3[01]))";
        let parts: Vec<Grain> = slot_key::parts(self.every, grain).map(|(part, _)| part).collect();
        let has_both = parts.contains(&Grain::Month) && parts.contains(&Grain::Day);
        let pattern: String = parts
            .iter()
            .map(|part| match part {
                Grain::Month if has_both => DAY_OF_MONTH,
                Grain::Day if has_both => "",
                Grain::Month => MONTH,
                Grain::Day => DAY,
                Grain::Hour => "([01][0-9]|2[0-3])",
                Grain::Minute | Grain::Second => "[0-5][0-9]",
                Grain::Millisecond => "[0-9]{3}",
            })
            .collect();
        format!("^{pattern}$")
    }
}

fn of_type(name: &'static str) -> Value<'static> {
    object([("bsonType", Value::from(name))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::{Period, random, samples};
    use bson::{bson, doc};
    use document::Env;
    use document::filter::Filter;
    use document::pipeline::expr::Names;

    fn valid(bucket: &Bucket, stored: &Doc<'_>) -> bool {
        let filter = Filter::parse(&bucket.validator(), &mut Names::new()).unwrap();
        filter.matches(stored, &Env::fixed()).unwrap()
    }

    #[test]
    fn what_is_built_is_valid() {
        for bucket in samples::all() {
            let readings = random::readings(&bucket, 1, 7);
            let encoded: Vec<_> = readings.iter().map(|doc| bucket.encode(&Doc::from(doc)).unwrap()).collect();
            let entries: Vec<_> = encoded.iter().map(|one| one.entry.clone()).collect();
            assert!(valid(&bucket, &bucket.build(&encoded[0].key, 0, &entries).unwrap()), "{bucket:?}");
        }
    }

    #[test]
    fn only_slots_of_the_calendar_are_valid() {
        let cases: [(Period, Grain, &[&str], &[&str]); 6] = [
            (
                Period::Quarter,
                Grain::Day,
                &["0101", "0229", "1231", "0430"],
                &["0230", "0431", "1301", "0100", "101", "01011", "ab"],
            ),
            (Period::Month, Grain::Day, &["01", "29", "31"], &["00", "32", "1", "001"]),
            (Period::Year, Grain::Month, &["01", "12"], &["00", "13"]),
            (Period::Day, Grain::Hour, &["00", "23"], &["24", "2"]),
            (Period::Day, Grain::Minute, &["0000", "2359"], &["2360", "2400"]),
            (Period::Minute, Grain::Second, &["00", "59"], &["60"]),
        ];
        for (every, grain, good, bad) in cases {
            let bucket = samples::slots(every, Slot::Time(grain), Layout::FieldNames, false);
            let stored = |key: &str| {
                Doc::from(doc! { "_id": 1, every.name(): bson::DateTime::MIN, "items": { key: { "a": 1 } } })
            };
            for key in good {
                assert!(valid(&bucket, &stored(key)), "{every:?} {grain:?} {key}");
            }
            for key in bad {
                assert!(!valid(&bucket, &stored(key)), "{every:?} {grain:?} {key}");
            }
        }
    }

    #[test]
    fn other_things_are_not_valid() {
        let events = samples::events(true);
        let binary = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1] };
        for (items, expected) in [
            (bson!({ "0605": { "a": 1 } }), true),
            (bson!({ "0605": { "a": "1" } }), false),
            (bson!({ "0605": { "zz": 1 } }), false),
            (bson!({ "0605": 1 }), false),
            (bson!([]), false),
        ] {
            let stored = doc! { "_id": binary.clone(), "items": items };
            assert_eq!(valid(&events, &Doc::from(&stored)), expected, "{stored}");
        }
        assert!(!valid(&events, &Doc::from(doc! { "_id": 1, "items": {} })));
        assert!(!valid(&events, &Doc::from(doc! { "_id": binary, "items": {}, "more": 1 })));
        let sensors = samples::sensors();
        let hour = bson::DateTime::MIN;
        assert!(valid(&sensors, &Doc::from(doc! { "_id": 1, "hour": hour, "count": 1_i64, "readings": [] })));
        assert!(!valid(&sensors, &Doc::from(doc! { "_id": 1, "hour": 5, "count": 1, "readings": [] })));
        assert!(!valid(&sensors, &Doc::from(doc! { "_id": 1, "hour": hour, "count": 1.5, "readings": [] })));
        assert!(!valid(&sensors, &Doc::from(doc! { "_id": 1, "hour": hour, "count": 1 })));
    }
}
