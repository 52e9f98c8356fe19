//! Random values of all types: few of each, at the limits, so that they meet.

use bson::{Binary, Bson, DateTime, Document, Regex, Timestamp, oid::ObjectId, spec::BinarySubtype};

use super::generate::Generator;

impl Generator {
    pub(super) fn value(&mut self, depth: usize) -> Bson {
        match self.random.below(if depth > 2 { 15 } else { 20 }) {
            0..5 => self.number(),
            5..8 => self.text(),
            8 | 9 => Bson::Null,
            10 => self.random.one_in(2).into(),
            11 | 12 => self.date(),
            13 | 14 => self.rare(),
            15..18 => self.array(depth + 1),
            _ => self.object(depth + 1),
        }
    }

    pub(super) fn number(&mut self) -> Bson {
        let decimal = |text: &str| text.parse().map_or(Bson::Null, Bson::Decimal128);
        match self.random.below(26) {
            0..6 => i32::try_from(self.random.below(4)).unwrap_or(0).into(),
            6 => (-1).into(),
            7 => Bson::Int64(1),
            8 => Bson::Int64(2),
            9 => 1.0.into(),
            10 => 2.5.into(),
            11 => (-1.5).into(),
            12 => decimal("1"),
            13 => decimal("2.50"),
            14 => decimal("0.1"),
            15 => 0.1.into(),
            16 => i32::MAX.into(),
            17 => i64::MAX.into(),
            18 => Bson::Int64(9_007_199_254_740_993),
            19 => f64::NAN.into(),
            20 => f64::INFINITY.into(),
            21 => (-0.0).into(),
            22 => decimal("NaN"),
            23 => i64::MIN.into(),
            24 => 1e300.into(),
            _ => 100.into(),
        }
    }

    pub(super) fn text(&mut self) -> Bson {
        (*self.random.pick(&["", "a", "b", "ab", "A", "ba", "1", "é", "aXb", "2024-02-29"]).unwrap_or(&"a")).into()
    }

    pub(super) fn date(&mut self) -> Bson {
        // Not -1: before 1970 a real server's date arithmetic is off by a second unless it is a whole one.
        let millis = [0, -1000, 1_709_214_310_123, 1_711_845_000_000, 1_609_716_600_000, 1_000_000_000_000];
        DateTime::from_millis(self.random.pick(&millis).copied().unwrap_or(0)).into()
    }

    pub(super) fn rare(&mut self) -> Bson {
        match self.random.below(7) {
            0 => ObjectId::from_bytes([5; 12]).into(),
            1 => Binary { subtype: BinarySubtype::Generic, bytes: vec![1, 2] }.into(),
            2 => Timestamp { time: 1, increment: 2 }.into(),
            3 => Bson::MinKey,
            4 => Bson::MaxKey,
            5 => match ("a".try_into(), "i".try_into()) {
                (Ok(pattern), Ok(options)) => Regex { pattern, options }.into(),
                _ => Bson::Null,
            },
            _ => Bson::Boolean(true),
        }
    }

    pub(super) fn array(&mut self, depth: usize) -> Bson {
        (0..self.random.below(4)).map(|_| self.value(depth + 1)).collect::<Vec<_>>().into()
    }

    pub(super) fn object(&mut self, depth: usize) -> Bson {
        let mut object = Document::new();
        for name in ["a", "b", "c"] {
            if self.random.one_in(2) {
                object.insert(name, self.value(depth + 1));
            }
        }
        object.into()
    }
}

/// All values in a value, itself included.
pub(super) fn collect(value: &Bson, all: &mut Vec<Bson>) {
    all.push(value.clone());
    match value {
        Bson::Document(document) => document.values().for_each(|value| collect(value, all)),
        Bson::Array(items) => items.iter().for_each(|item| collect(item, all)),
        _ => {}
    }
}
