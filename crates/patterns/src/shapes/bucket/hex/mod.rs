//! Series that are declared `as: hex`: digits for clients, bytes in the store. Clients may write digits of either case;
//! logical documents have lower case, so what clients compare with them is brought to lower case first: [`Digits`].

mod expression;
mod filter;
mod stages;
mod sub_pipelines;

use crate::rule::Stack;
use crate::shapes::bucket::{Body, Bucket, ReadingId};
use document::value::hex;
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// What is stored for a value of a field that is declared `as: hex`: null stays null.
pub(super) fn stored(field: &str, value: &Value<'_>) -> Result<Value<'static>> {
    let bytes = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(digits) => hex::to_bytes(digits.as_str()),
        _ => None,
    };
    match bytes {
        Some(bytes) => Ok(binary(bytes)),
        None => Err(document::Error::bad_value(format!(
            "'{field}' is stored as bytes: it must be a string of an even number of hex digits, not {}",
            document::value::show::element(value)
        ))),
    }
}

pub(super) fn binary(bytes: Vec<u8>) -> Value<'static> {
    Value::Binary { subtype: 0, bytes: bytes.into() }
}

/// Where the documents that a filter or a stage sees have hex digits.
#[derive(Clone, Debug)]
pub(crate) struct Digits {
    /// Dotted paths.
    paths: Vec<String>,
    /// The fields of a derived `_id` that are hex digits; none where the `_id` is the client's own.
    of_id: Vec<String>,
    /// Some documents are still stored as clients wrote them, in any case: a value then stands for both cases.
    both: bool,
    /// Variables that stand for digits, and those that stand for a constant.
    variables: Vec<String>,
    constants: Vec<(String, Value<'static>)>,
    /// The other collections of the database that have hex digits, by name: stages may read them.
    others: Arc<[(String, Digits)]>,
}

impl Digits {
    /// `None` if no series of the collection is declared `as: hex`.
    pub(crate) fn of(shaped: &Stack) -> Option<Digits> {
        let bucket = shaped.bucket()?;
        let fields: Vec<String> = bucket.hex_fields().map(str::to_owned).collect();
        if fields.is_empty() {
            return None;
        }
        let of_id = if bucket.derives_id() { fields.clone() } else { Vec::new() };
        let paths = fields.into_iter().chain(of_id.iter().map(|field| format!("_id.{field}"))).collect();
        let both = shaped.places.iter().any(|place| place.shape.is_plain());
        Some(Digits { paths, of_id, both, ..Digits::none() })
    }

    /// Of a collection that has no hex digits.
    pub(crate) fn none() -> Digits {
        Digits {
            paths: Vec::new(),
            of_id: Vec::new(),
            both: false,
            variables: Vec::new(),
            constants: Vec::new(),
            others: Arc::new([]),
        }
    }

    /// The same where stages may read these collections.
    pub(crate) fn beside(self, others: impl IntoIterator<Item = (String, Digits)>) -> Digits {
        Digits { others: others.into_iter().collect(), ..self }
    }

    /// The same where these variables of a command are known.
    pub(crate) fn knowing(mut self, constants: impl IntoIterator<Item = (String, Value<'static>)>) -> Digits {
        self.constants.extend(constants);
        self
    }

    /// The same where a value must stay one value.
    pub(crate) fn in_one_case(self) -> Digits {
        Digits { both: false, ..self }
    }

    /// Whether the documents themselves have digits.
    pub(crate) fn has_own(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether nothing that a stage says can concern digits.
    fn is_idle(&self) -> bool {
        self.paths.is_empty() && self.variables.is_empty() && self.others.is_empty()
    }

    fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|own| own == path)
    }
}

impl Bucket {
    fn hex_fields(&self) -> impl Iterator<Item = &str> {
        self.by.iter().filter(|series| series.hex).map(|series| &*series.field)
    }

    /// Whether the logical `_id` is made of series and time.
    pub(crate) fn derives_id(&self) -> bool {
        match &self.body {
            Body::Slots(_) => true,
            Body::Readings(readings) => readings.reading_id == ReadingId::Time,
        }
    }

    /// A logical document with its hex digits as they are given back; `None` if they are so already.
    pub(crate) fn in_lower_case(&self, doc: &Doc<'_>) -> Option<Doc<'static>> {
        let is_hex = |name: &str| self.hex_fields().any(|field| field == name);
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
        let mut changed = false;
        for (name, value) in doc.iter() {
            let lowered = match &value {
                Value::Document(id) if name.as_str() == "_id" && self.derives_id() => {
                    lowered_fields(id, &is_hex).map(Value::Document)
                }
                value if is_hex(name.as_str()) => lowered(value),
                _ => None,
            };
            changed |= lowered.is_some();
            writer.append(name.as_str(), &lowered.unwrap_or(value));
        }
        changed.then(|| writer.finish())
    }
}

/// A text in lower case; `None` if it is so already, or no text.
fn lowered(value: &Value<'_>) -> Option<Value<'static>> {
    let Value::String(digits) = value else { return None };
    let is_upper = digits.as_str().bytes().any(|letter| letter.is_ascii_uppercase());
    is_upper.then(|| Value::string(digits.as_str().to_ascii_lowercase()))
}

/// A document whose fields of these names are in lower case; `None` if they are so already.
fn lowered_fields(doc: &Doc<'_>, is_hex: &dyn Fn(&str) -> bool) -> Option<Doc<'static>> {
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
    let mut changed = false;
    for (name, value) in doc.iter() {
        let lowered = if is_hex(name.as_str()) { lowered(&value) } else { None };
        changed |= lowered.is_some();
        writer.append(name.as_str(), &lowered.unwrap_or(value));
    }
    changed.then(|| writer.finish())
}
