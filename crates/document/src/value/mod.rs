//! One BSON value, and what MongoDB means by it: type names, order ([`order`]) and bytes in that order ([`key`]), numbers
//! ([`number`], [`decimal`]), dates ([`calendar`]) and dotted paths ([`path`], [`expand`]), bytes as digits ([`hex`]), and how
//! messages print it ([`show`]).

pub mod calendar;
pub mod decimal;
pub mod decimal_math;
mod decimal_trigonometry;
pub mod distinct;
pub mod expand;
pub mod hex;
pub mod key;
pub mod number;
#[cfg(test)]
mod number_tests;
pub mod order;
pub mod path;
pub mod show;
pub mod sum;

pub use decimal::Decimal128;
pub use number::Number;
pub use path::Path;

use crate::raw::{Array, Blob, Doc, Text, kind};

/// A BSON value that points into the bytes it was read from, or shares its own. `Missing` is no value at all: what an
/// expression gives for an absent field; it is never stored.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Missing,
    MinKey,
    Undefined,
    Null,
    Double(f64),
    Int32(i32),
    Int64(i64),
    Decimal(Decimal128),
    String(Text<'a>),
    Symbol(Text<'a>),
    Document(Doc<'a>),
    Array(Array<'a>),
    Binary {
        subtype: u8,
        bytes: Blob<'a>,
    },
    ObjectId([u8; 12]),
    Bool(bool),
    /// Milliseconds since 1970-01-01 UTC.
    DateTime(i64),
    /// Seconds in the upper half, increment in the lower, as BSON stores it.
    Timestamp(u64),
    Regex {
        pattern: Text<'a>,
        options: Text<'a>,
    },
    DbPointer {
        namespace: Text<'a>,
        id: [u8; 12],
    },
    Code(Text<'a>),
    CodeWithScope {
        code: Text<'a>,
        scope: Doc<'a>,
    },
    MaxKey,
}

impl<'a> Value<'a> {
    /// The BSON type byte; `None` for a missing value.
    pub fn kind(&self) -> Option<u8> {
        Some(match self {
            Value::Missing => return None,
            Value::MinKey => kind::MIN_KEY,
            Value::Undefined => kind::UNDEFINED,
            Value::Null => kind::NULL,
            Value::Double(_) => kind::DOUBLE,
            Value::Int32(_) => kind::INT32,
            Value::Int64(_) => kind::INT64,
            Value::Decimal(_) => kind::DECIMAL,
            Value::String(_) => kind::STRING,
            Value::Symbol(_) => kind::SYMBOL,
            Value::Document(_) => kind::DOCUMENT,
            Value::Array(_) => kind::ARRAY,
            Value::Binary { .. } => kind::BINARY,
            Value::ObjectId(_) => kind::OBJECT_ID,
            Value::Bool(_) => kind::BOOL,
            Value::DateTime(_) => kind::DATE_TIME,
            Value::Timestamp(_) => kind::TIMESTAMP,
            Value::Regex { .. } => kind::REGEX,
            Value::DbPointer { .. } => kind::DB_POINTER,
            Value::Code(_) => kind::CODE,
            Value::CodeWithScope { .. } => kind::CODE_WITH_SCOPE,
            Value::MaxKey => kind::MAX_KEY,
        })
    }

    /// MongoDB's name of the type, as `$type` gives it and error messages print it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Missing => "missing",
            Value::MinKey => "minKey",
            Value::Undefined => "undefined",
            Value::Null => "null",
            Value::Double(_) => "double",
            Value::Int32(_) => "int",
            Value::Int64(_) => "long",
            Value::Decimal(_) => "decimal",
            Value::String(_) => "string",
            Value::Symbol(_) => "symbol",
            Value::Document(_) => "object",
            Value::Array(_) => "array",
            Value::Binary { .. } => "binData",
            Value::ObjectId(_) => "objectId",
            Value::Bool(_) => "bool",
            Value::DateTime(_) => "date",
            Value::Timestamp(_) => "timestamp",
            Value::Regex { .. } => "regex",
            Value::DbPointer { .. } => "dbPointer",
            Value::Code(_) => "javascript",
            Value::CodeWithScope { .. } => "javascriptWithScope",
            Value::MaxKey => "maxKey",
        }
    }

    pub fn string(text: impl Into<String>) -> Value<'static> {
        Value::String(Text::from(text.into()))
    }

    /// The same value borrowed from `self`; costs nothing.
    pub fn borrow(&self) -> Value<'_> {
        self.map(|blob| blob.borrow())
    }

    /// A value that outlives `'a`; copies only what was borrowed.
    pub fn into_owned(self) -> Value<'static> {
        self.map(|blob| blob.clone().into_owned())
    }

    fn map<'b, 'c>(&'b self, storage: impl Fn(&'b Blob<'a>) -> Blob<'c>) -> Value<'c> {
        match self {
            Value::Missing => Value::Missing,
            Value::MinKey => Value::MinKey,
            Value::Undefined => Value::Undefined,
            Value::Null => Value::Null,
            Value::Double(number) => Value::Double(*number),
            Value::Int32(number) => Value::Int32(*number),
            Value::Int64(number) => Value::Int64(*number),
            Value::Decimal(number) => Value::Decimal(*number),
            Value::String(text) => Value::String(Text(storage(&text.0))),
            Value::Symbol(text) => Value::Symbol(Text(storage(&text.0))),
            Value::Document(doc) => Value::Document(Doc(storage(&doc.0))),
            Value::Array(array) => Value::Array(Array(storage(&array.0))),
            Value::Binary { subtype, bytes } => Value::Binary { subtype: *subtype, bytes: storage(bytes) },
            Value::ObjectId(id) => Value::ObjectId(*id),
            Value::Bool(truth) => Value::Bool(*truth),
            Value::DateTime(millis) => Value::DateTime(*millis),
            Value::Timestamp(bits) => Value::Timestamp(*bits),
            Value::Regex { pattern, options } => {
                Value::Regex { pattern: Text(storage(&pattern.0)), options: Text(storage(&options.0)) }
            }
            Value::DbPointer { namespace, id } => Value::DbPointer { namespace: Text(storage(&namespace.0)), id: *id },
            Value::Code(text) => Value::Code(Text(storage(&text.0))),
            Value::CodeWithScope { code, scope } => {
                Value::CodeWithScope { code: Text(storage(&code.0)), scope: Doc(storage(&scope.0)) }
            }
            Value::MaxKey => Value::MaxKey,
        }
    }

    pub fn is_missing(&self) -> bool {
        matches!(self, Value::Missing)
    }

    /// Missing, null or undefined: what most expressions turn into null.
    pub fn is_nullish(&self) -> bool {
        matches!(self, Value::Missing | Value::Null | Value::Undefined)
    }

    pub fn is_number(&self) -> bool {
        matches!(self, Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Truth as MongoDB's expressions and commands take it: false, zero, null, undefined and missing are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Value::Missing | Value::Null | Value::Undefined => false,
            Value::Bool(truth) => *truth,
            Value::Int32(number) => *number != 0,
            Value::Int64(number) => *number != 0,
            Value::Double(number) => *number != 0.0,
            Value::Decimal(number) => !number.is_zero(),
            _ => true,
        }
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}
impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Value::Int32(number)
    }
}
impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int64(number)
    }
}
impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Double(number)
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::String(Text::borrowed(text))
    }
}
impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::String(Text::from(text))
    }
}
impl<'a> From<Doc<'a>> for Value<'a> {
    fn from(doc: Doc<'a>) -> Self {
        Value::Document(doc)
    }
}
impl<'a> From<Array<'a>> for Value<'a> {
    fn from(array: Array<'a>) -> Self {
        Value::Array(array)
    }
}

/// Edges only: tests and extended JSON.
impl From<bson::Bson> for Value<'static> {
    fn from(value: bson::Bson) -> Self {
        let doc = Doc::from(bson::doc! { "": value });
        doc.get("").unwrap_or(Value::Missing)
    }
}

/// Byte equality of values, for tests; MongoDB's own equality is [`order::compare`].
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        let mut left = crate::raw::DocWriter::new();
        let mut right = crate::raw::DocWriter::new();
        left.append("", self);
        right.append("", other);
        left.finish() == right.finish()
    }
}
