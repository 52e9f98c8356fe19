//! Sets of BSON types by number and alias: `$type`, and `bsonType` of a schema.

use crate::error::{Error, Result};
use crate::raw::kind;
use crate::value::{Value, show};

/// Aliases and type bytes, in the order of the bytes; `number` is apart.
const ALIASES: &[(&str, u8)] = &[
    ("double", kind::DOUBLE),
    ("string", kind::STRING),
    ("object", kind::DOCUMENT),
    ("array", kind::ARRAY),
    ("binData", kind::BINARY),
    ("undefined", kind::UNDEFINED),
    ("objectId", kind::OBJECT_ID),
    ("bool", kind::BOOL),
    ("date", kind::DATE_TIME),
    ("null", kind::NULL),
    ("regex", kind::REGEX),
    ("dbPointer", kind::DB_POINTER),
    ("javascript", kind::CODE),
    ("symbol", kind::SYMBOL),
    ("javascriptWithScope", kind::CODE_WITH_SCOPE),
    ("int", kind::INT32),
    ("timestamp", kind::TIMESTAMP),
    ("long", kind::INT64),
    ("decimal", kind::DECIMAL),
    ("maxKey", kind::MAX_KEY),
    ("minKey", kind::MIN_KEY),
];

const NUMBERS: u32 = 1 << kind::DOUBLE | 1 << kind::INT32 | 1 << kind::INT64 | 1 << kind::DECIMAL;

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet(u32);

impl TypeSet {
    /// Returns false if the value has no type, that is, is missing.
    pub fn contains(self, value: &Value<'_>) -> bool {
        value.kind().is_some_and(|kind| self.0 & bit(kind) != 0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The types of an alias; `None` if it is none.
    pub fn of_alias(alias: &str) -> Option<TypeSet> {
        if alias == "number" {
            return Some(TypeSet(NUMBERS));
        }
        ALIASES.iter().find(|(name, _)| *name == alias).map(|(_, kind)| TypeSet(bit(*kind)))
    }

    pub fn and(self, other: TypeSet) -> TypeSet {
        TypeSet(self.0 | other.0)
    }

    pub fn meets(self, other: TypeSet) -> bool {
        self.0 & other.0 != 0
    }

    /// A number, an alias, or an array of them.
    pub fn parse(argument: &Value<'_>) -> Result<TypeSet> {
        match argument {
            Value::Array(items) => items.iter().try_fold(TypeSet::default(), |set, item| Ok(set.and(one(&item)?))),
            single => one(single),
        }
    }
}

/// MinKey's byte is 0xFF and MaxKey's 0x7F: they take the last two bits.
fn bit(kind: u8) -> u32 {
    match kind {
        kind::MIN_KEY => 1 << 31,
        kind::MAX_KEY => 1 << 30,
        kind => 1u32.checked_shl(u32::from(kind)).unwrap_or_default(),
    }
}

fn one(value: &Value<'_>) -> Result<TypeSet> {
    if let Value::String(alias) = value {
        let alias = alias.as_str();
        return TypeSet::of_alias(alias).ok_or_else(|| match alias {
            "missing" => Error::bad_value(
                "'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.",
            ),
            _ => Error::bad_value(format!("Unknown type name alias: {alias}")),
        });
    }
    if !value.is_number() {
        return Err(Error::type_mismatch("type must be represented as a number or a string"));
    }
    let number = super::number::to_double(value);
    let invalid =
        |end: &str| Err(Error::bad_value(format!("Invalid numerical type code: {}{end}", show::general(number, 6))));
    if number == 0.0 {
        return invalid(". Instead use {$exists:false}.");
    }
    if number == -1.0 {
        return Ok(TypeSet(bit(kind::MIN_KEY)));
    }
    match ALIASES.iter().find(|(_, kind)| *kind != kind::MIN_KEY && f64::from(*kind) == number) {
        Some((_, kind)) => Ok(TypeSet(bit(*kind))),
        None => invalid(""),
    }
}
