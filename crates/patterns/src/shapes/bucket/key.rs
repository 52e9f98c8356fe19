//! Which bucket: its series and period, and the stored `_id` that says both, as fields or packed into bytes.

use crate::shapes::bucket::{Body, Bucket, Period, hex};
use document::value::calendar::{DAY, Moment, days_to};
use document::value::{key, show};
use document::{Doc, DocWriter, Error, Result, Value};

/// A series and a period of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// One per field of the series, as stored (`as: hex`: bytes); nothing where the field is missing.
    pub series: Vec<Option<Value<'static>>>,
    /// The period's start, in milliseconds.
    pub start: i64,
}

impl Key {
    /// Bytes that are equal for equal keys (1 = 1.0, as for the stored `_id`), in the order of series and time: what readings
    /// are grouped and sorted by.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48);
        for value in &self.series {
            match value {
                Some(value) => key::encode(value, &mut bytes),
                // Below every value's first byte.
                None => bytes.push(1),
            }
        }
        key::encode(&Value::DateTime(self.start), &mut bytes);
        bytes
    }
}

impl Bucket {
    /// Whether a series and period may have several buckets, counted by `n`.
    pub fn is_numbered(&self) -> bool {
        matches!(self.body, Body::Readings(_))
    }

    /// How many readings a bucket takes.
    pub(crate) fn at_most(&self) -> u32 {
        match &self.body {
            Body::Readings(readings) => readings.at_most,
            Body::Slots(_) => u32::MAX,
        }
    }

    /// The stored `_id`.
    pub fn id(&self, key: &Key, n: i32) -> Value<'static> {
        if self.packed {
            let mut bytes = match key.series.first() {
                Some(Some(Value::Binary { bytes, .. })) => bytes.as_slice().to_vec(),
                _ => Vec::new(),
            };
            bytes.extend_from_slice(&packed_period(self.every, key.start));
            return hex::binary(bytes);
        }
        let mut id = DocWriter::with_capacity(64);
        self.write_key(&mut id, key);
        if self.is_numbered() {
            id.append("n", &Value::Int32(n));
        }
        Value::Document(id.finish())
    }

    /// The series and the period, as they are stored in the `_id` and beside it.
    pub(super) fn write_key(&self, writer: &mut DocWriter, key: &Key) {
        for (series, value) in self.by.iter().zip(&key.series) {
            if let Some(value) = value {
                writer.append(&series.field, value);
            }
        }
        writer.append(self.every.name(), &Value::DateTime(key.start));
    }

    /// Which bucket a stored document is, by its `_id`.
    pub fn key_of(&self, stored: &Doc<'_>) -> Result<(Key, i32)> {
        let id = stored.borrow().get("_id").unwrap_or(Value::Missing).into_owned();
        self.key_of_id(&id).ok_or_else(|| self.broken(stored, "its _id does not tell series and period"))
    }

    pub(super) fn key_of_id(&self, id: &Value<'_>) -> Option<(Key, i32)> {
        match id {
            Value::Binary { bytes, .. } if self.packed => {
                let bytes = bytes.as_slice();
                let (series, digits) = bytes.split_at_checked(bytes.len().checked_sub(packed_length(self.every))?)?;
                let start = period_of_packed(self.every, digits)?;
                Some((Key { series: vec![Some(hex::binary(series.to_vec()))], start }, 0))
            }
            Value::Document(id) if !self.packed => {
                let id = id.borrow();
                let series =
                    self.by.iter().map(|series| id.get(&series.field).map(Value::into_owned)).collect::<Vec<_>>();
                let Some(Value::DateTime(start)) = id.get(self.every.name()) else { return None };
                let n = match self.is_numbered() {
                    true => id.get("n")?.as_number()?.as_i32_exact()?,
                    false => 0,
                };
                Some((Key { series, start }, n))
            }
            _ => None,
        }
    }

    /// A stored document that is not as buckets are.
    pub(super) fn broken(&self, stored: &Doc<'_>, what: &str) -> Error {
        let id = stored.borrow().get("_id").unwrap_or(Value::Null).into_owned();
        Error::bad_value(format!("{} has a broken bucket: {what} (_id {})", self.into, show::element(&id)))
            .with_hint("pleach audit lists such buckets")
    }
}

/// Decimal digits, two to the byte: year, then quarter, or month, day, hour, minute.
pub(super) fn packed_period(every: Period, start: i64) -> Vec<u8> {
    let moment = Moment::of(start);
    let byte = |number: i64| u8::try_from(number / 10 % 10 * 16 + number % 10).unwrap_or_default();
    let mut bytes = vec![byte(moment.year / 100), byte(moment.year % 100)];
    match every {
        Period::Year => {}
        Period::Quarter => bytes.push(byte((moment.month - 1) / 3 + 1)),
        Period::Month => bytes.push(byte(moment.month)),
        Period::Day => bytes.extend([byte(moment.month), byte(moment.day)]),
        Period::Hour => bytes.extend([byte(moment.month), byte(moment.day), byte(moment.hour)]),
        Period::Minute => {
            bytes.extend([byte(moment.month), byte(moment.day), byte(moment.hour), byte(moment.minute)]);
        }
    }
    bytes
}

/// How many bytes of a packed `_id` tell the period.
pub(super) fn packed_length(every: Period) -> usize {
    match every {
        Period::Year => 2,
        Period::Quarter | Period::Month => 3,
        Period::Day => 4,
        Period::Hour => 5,
        Period::Minute => 6,
    }
}

fn period_of_packed(every: Period, bytes: &[u8]) -> Option<i64> {
    let mut numbers = bytes.iter().map(|byte| {
        let (high, low) = (i64::from(byte >> 4), i64::from(byte & 15));
        (high < 10 && low < 10).then_some(high * 10 + low)
    });
    let mut next = || numbers.next()?;
    let year = next()? * 100 + next()?;
    let (mut month, mut day, mut minutes) = (1, 1, 0);
    match every {
        Period::Year => {}
        Period::Quarter => month = (next()? - 1) * 3 + 1,
        Period::Month => month = next()?,
        Period::Day | Period::Hour | Period::Minute => (month, day) = (next()?, next()?),
    }
    if matches!(every, Period::Hour | Period::Minute) {
        minutes = next()? * 60;
    }
    if every == Period::Minute {
        minutes += next()?;
    }
    let start = days_to(year, month, day).checked_mul(DAY)?.checked_add(minutes * 60_000)?;
    // Months and days that do not exist ran on.
    (packed_period(every, start) == bytes).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::samples;

    fn ms(text: &str) -> i64 {
        bson::DateTime::parse_rfc3339_str(format!("{text}Z")).unwrap().timestamp_millis()
    }

    #[test]
    fn packed_periods() {
        let at = ms("2022-06-05T13:47:11");
        let cases: [(Period, &[u8]); 6] = [
            (Period::Year, &[0x20, 0x22]),
            (Period::Quarter, &[0x20, 0x22, 0x02]),
            (Period::Month, &[0x20, 0x22, 0x06]),
            (Period::Day, &[0x20, 0x22, 0x06, 0x05]),
            (Period::Hour, &[0x20, 0x22, 0x06, 0x05, 0x13]),
            (Period::Minute, &[0x20, 0x22, 0x06, 0x05, 0x13, 0x47]),
        ];
        for (every, bytes) in cases {
            assert_eq!(packed_period(every, at), bytes, "{every:?}");
            assert_eq!(packed_length(every), bytes.len(), "{every:?}");
            assert_eq!(period_of_packed(every, bytes), Some(every.start(at)), "{every:?}");
        }
        for bytes in [&[0x20, 0x22, 0x05][..], &[0x20, 0x22, 0x00], &[0x2a, 0x22, 0x01], &[0x20, 0x22], &[]] {
            assert_eq!(period_of_packed(Period::Quarter, bytes), None, "{bytes:x?}");
        }
        assert_eq!(period_of_packed(Period::Day, &[0x20, 0x23, 0x02, 0x29]), None);
    }

    #[test]
    fn ids_tell_series_period_and_number() {
        let start = ms("2022-04-01T00:00:00");
        let packed = samples::events(true);
        let key = Key { series: vec![Some(hex::binary(vec![0xAB; 32]))], start };
        let id = packed.id(&key, 0);
        let Value::Binary { subtype: 0, bytes } = &id else { panic!("{id:?}") };
        assert_eq!(bytes.as_slice().len(), 35);
        assert_eq!(bytes.as_slice()[32..], [0x20, 0x22, 0x02]);
        let stored = crate::mql::document([("_id", id)]);
        assert_eq!(packed.key_of(&stored).unwrap(), (key, 0));

        let plain = samples::sensors();
        for series in [Some(Value::from("A")), Some(Value::Null), None] {
            let key = Key { series: vec![series], start };
            let stored = crate::mql::document([("_id", plain.id(&key, 7))]);
            assert_eq!(plain.key_of(&stored).unwrap(), (key, 7));
        }
        for id in [Value::Int32(1), packed.id(&Key { series: vec![], start }, 0), Value::Document(Doc::empty())] {
            let error = plain.key_of(&crate::mql::document([("_id", id)])).unwrap_err();
            assert!(error.message().contains("broken bucket"), "{error}");
        }
    }

    #[test]
    fn keys_of_equal_numbers_are_one() {
        let key = |value| Key { series: vec![value], start: 5 }.bytes();
        assert_eq!(key(Some(Value::Int32(1))), key(Some(Value::Double(1.0))));
        assert!(key(None) < key(Some(Value::Null)));
        assert!(key(Some(Value::Null)) < key(Some(Value::Int32(1))));
    }
}
