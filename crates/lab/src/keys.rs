//! By what a document belongs to a unit of the sample: the values of one field or several, whatever type their numbers have.

use document::value::Path;
use document::{Doc, DocWriter, Value};
use patterns::rule::KeyPath;
use patterns::rule::key::linked;

/// The fields that tell documents of different units apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    paths: Vec<KeyPath>,
}

impl Key {
    pub fn id() -> Key {
        Key::of_path(&Path::new("_id"))
    }

    pub fn of_path(path: &Path) -> Key {
        Key { paths: vec![KeyPath::new(path.clone())] }
    }

    pub fn of_fields<'f>(fields: impl Iterator<Item = &'f str>) -> Key {
        Key { paths: fields.map(|field| KeyPath::new(Path::new(field))).collect() }
    }

    /// The fields as they are written.
    pub fn dotted(&self) -> Vec<String> {
        self.paths.iter().map(|key| key.path.dotted()).collect()
    }

    pub fn is_id(&self) -> bool {
        self.dotted() == ["_id"]
    }

    /// What `$group` takes for it; what is missing is null.
    pub fn grouping(&self) -> bson::Bson {
        let one = |path: &str| bson::bson!({ "$ifNull": [format!("${path}"), null] });
        match self.dotted().as_slice() {
            [only] => one(only),
            several => {
                let fields = several.iter().enumerate().map(|(at, path)| (format!("f{at}"), one(path)));
                bson::Bson::Document(fields.collect())
            }
        }
    }

    /// The document's own, in a form that is the same for equal numbers of all types.
    pub fn of(&self, doc: &Doc<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for path in &self.paths {
            let value = linked(doc, path).values.into_iter().next().unwrap_or(Value::Null);
            add(&value, &mut bytes);
        }
        bytes
    }

    /// The same with text in lower case, as hex digits come back from a store (`as: hex`); `None` if it is so already.
    pub fn lowered(&self, doc: &Doc<'_>) -> Option<Vec<u8>> {
        let (mut bytes, mut differs) = (Vec::new(), false);
        for path in &self.paths {
            let value = linked(doc, path).values.into_iter().next().unwrap_or(Value::Null);
            match value.as_str().filter(|text| text.contains(|letter: char| letter.is_ascii_uppercase())) {
                Some(text) => {
                    differs = true;
                    add(&Value::from(&*text.to_ascii_lowercase()), &mut bytes);
                }
                None => add(&value, &mut bytes),
            }
        }
        differs.then_some(bytes)
    }

    /// The same of what `$group` gave for it.
    pub fn of_group(&self, group: &Value<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        match (group, self.paths.as_slice()) {
            (Value::Document(fields), [_, _, ..]) => fields.iter().for_each(|(_, value)| add(&value, &mut bytes)),
            (value, _) => add(value, &mut bytes),
        }
        bytes
    }

    /// The value of its first field in what `$group` gave.
    pub fn first(&self, group: &Value<'_>) -> Value<'static> {
        match (group, self.paths.as_slice()) {
            (Value::Document(fields), [_, _, ..]) => {
                fields.iter().next().map_or(Value::Null, |(_, value)| value.into_owned())
            }
            (value, _) => value.clone().into_owned(),
        }
    }
}

/// One value in the form of [`Key::of`].
pub fn canonical(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    add(value, &mut bytes);
    bytes
}

fn add(value: &Value<'_>, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    match value {
        Value::Missing | Value::Null | Value::Undefined => bytes.push(0),
        Value::Int32(number) => integer(i64::from(*number), bytes),
        Value::Int64(number) => integer(*number, bytes),
        Value::Double(number) => double(*number, bytes),
        Value::Decimal(number) => double(number.to_f64(), bytes),
        other => {
            let mut doc = DocWriter::new();
            doc.append("", other);
            bytes.push(2);
            bytes.extend_from_slice(doc.finish().as_bytes());
        }
    }
    let length = u32::try_from(bytes.len() - start).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
}

fn integer(number: i64, bytes: &mut Vec<u8>) {
    bytes.push(1);
    bytes.extend_from_slice(&number.to_le_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "whole numbers that doubles hold exactly")]
fn double(number: f64, bytes: &mut Vec<u8>) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        integer(number as i64, bytes);
    } else {
        bytes.push(3);
        bytes.extend_from_slice(&number.to_bits().to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    #[test]
    fn equal_numbers_are_one_key_and_missing_is_null() {
        let of = |doc: bson::Document| Key::of_path(&Path::new("a.b")).of(&Doc::from(doc));
        assert_eq!(of(doc! { "a": { "b": 7_i32 } }), of(doc! { "a": { "b": 7.0 } }));
        assert_eq!(of(doc! { "a": { "b": 7_i64 } }), of(doc! { "a": { "b": 7.0 } }));
        assert_ne!(of(doc! { "a": { "b": 7.5 } }), of(doc! { "a": { "b": 7.0 } }));
        assert_eq!(of(doc! {}), of(doc! { "a": { "b": Bson::Null } }));
    }

    #[test]
    fn hex_digits_of_either_case_are_one_key() {
        let (key, doc) = (Key::of_path(&Path::new("k")), Doc::from(doc! { "k": "00A1" }));
        assert_eq!(key.lowered(&doc), Some(key.of(&Doc::from(doc! { "k": "00a1" }))));
        assert_eq!(
            (key.lowered(&Doc::from(doc! { "k": "00a1" })), key.lowered(&Doc::from(doc! { "k": 7 }))),
            (None, None)
        );
    }

    #[test]
    fn a_group_has_the_key_of_its_documents() {
        let key = Key::of_fields(["s", "t"].into_iter());
        let group = Value::from(Bson::Document(doc! { "f0": 1, "f1": "x" }));
        assert_eq!(key.of_group(&group), key.of(&Doc::from(doc! { "t": "x", "s": 1.0 })));
        assert!(matches!(key.first(&group), Value::Int32(1)));
    }
}
