//! BSON bytes, read and written without building documents.
//!
//! [`Doc`] and [`Array`] are views over bytes that are either borrowed or shared (reference-counted); walking them
//! yields [`Value`]s that point into the same bytes, so nothing is decoded that is not touched. Bytes that come from
//! outside go through [`validate`] once; after that, reading is infallible (a torn element ends the walk).

mod blob;
mod places;
mod read;
mod validate;
mod write;

pub use blob::{Blob, Text};
pub(crate) use places::without_places;
pub use read::{Array, Doc, Fields, Items};
pub(crate) use read::{Element, decode, read_i32};
pub use validate::{MAX_DEPTH, depth, validate};
pub(crate) use write::with_index;
pub use write::{ArrayWriter, DocWriter};

/// The element type bytes of BSON.
pub mod kind {
    pub const DOUBLE: u8 = 0x01;
    pub const STRING: u8 = 0x02;
    pub const DOCUMENT: u8 = 0x03;
    pub const ARRAY: u8 = 0x04;
    pub const BINARY: u8 = 0x05;
    pub const UNDEFINED: u8 = 0x06;
    pub const OBJECT_ID: u8 = 0x07;
    pub const BOOL: u8 = 0x08;
    pub const DATE_TIME: u8 = 0x09;
    pub const NULL: u8 = 0x0A;
    pub const REGEX: u8 = 0x0B;
    pub const DB_POINTER: u8 = 0x0C;
    pub const CODE: u8 = 0x0D;
    pub const SYMBOL: u8 = 0x0E;
    pub const CODE_WITH_SCOPE: u8 = 0x0F;
    pub const INT32: u8 = 0x10;
    pub const TIMESTAMP: u8 = 0x11;
    pub const INT64: u8 = 0x12;
    pub const DECIMAL: u8 = 0x13;
    pub const MIN_KEY: u8 = 0xFF;
    pub const MAX_KEY: u8 = 0x7F;
    /// Not BSON: a name without a value, where a field was that a later stage may set again. Only inside a pipeline; reading
    /// passes over it, and [`super::validate`] refuses it from outside.
    pub(crate) const PLACE: u8 = 0x7E;
}

#[cfg(test)]
mod tests;
