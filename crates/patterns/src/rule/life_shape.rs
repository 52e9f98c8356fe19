//! What the life of a rule needs to know of a form: what is wrong with what is stored, what a move into it does to documents, how
//! it is told and written by hand. Pure: it says what is to be read and written, and does neither.

use crate::languages::Language;
use crate::rule::shape::Shape;
use crate::rule::{LinkKey, Lookup, ShapeCode};
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Doc, Result, Value};

/// Audit, repair, moves, `plan` and `drop` ask this of a shape.
pub trait LifeShape {
    /// What stored documents are called: `buckets`.
    fn noun(&self) -> &'static str;

    /// What the rule keeps, in a few words: `buckets in sensor_hours`.
    fn describe(&self) -> String;

    /// Whether documents that an earlier declaration has stored are right by this one too.
    fn takes_over(&self, _earlier: &dyn Shape) -> bool {
        false
    }

    /// What is wrong with a stored document. The order of its fields is no flaw.
    fn flaws(&self, stored: &Doc<'_>) -> Vec<Flaw>;

    /// The document with all mendable flaws mended; `None` if it holds nothing and should not be there.
    fn mend(&self, stored: &Doc<'_>) -> Option<Doc<'static>>;

    /// How many logical documents a stored one holds, as an expression.
    fn logical_count(&self) -> Value<'static>;

    /// The fields that every logical document has.
    fn required(&self) -> Vec<Path> {
        Vec::new()
    }

    /// Why a field cannot look up the logical documents of a key without reading all that is stored; `None` if it can.
    fn unserved(&self, _by: &LinkKey, _lookup: &Lookup) -> Option<Unserved> {
        None
    }

    /// The stages that store logical documents in this form, for people; the last one writes them. They come from `from`.
    fn conversion(&self, from: &dyn Shape, into: &Namespace) -> Vec<Value<'static>>;

    /// What a person would write by hand; `None` if there is no code.
    fn code(&self, _logical: &Namespace, _language: Language) -> Option<ShapeCode> {
        None
    }

    /// Reads logical documents and gives rows for [`LifeShape::losses`]; `None` if each is the same after a move.
    fn assess(&self) -> Result<Option<Pipeline>> {
        Ok(None)
    }

    /// What the rows of [`LifeShape::assess`] say.
    fn losses(&self, _rows: &[Doc<'static>]) -> Losses {
        Losses::default()
    }

    /// Whether logical documents may be others after a move into this form, so that fields that are kept from them are made anew.
    fn changes_documents(&self) -> bool {
        false
    }

    /// Whether several documents may become one.
    fn adds_up(&self) -> bool {
        false
    }

    /// What clients would see of these documents in the place of `logical`, as one; `None` if they do not belong there.
    fn seen_together(&self, documents: &[Doc<'static>], _logical: &Doc<'static>) -> Option<Doc<'static>> {
        match documents {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}

/// A way to look up documents for which nothing is in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Unserved {
    /// The key of the field's block that is to be changed.
    pub key: &'static str,
    /// How documents are found: `buckets are found by sensorId`.
    pub reason: String,
    pub hint: String,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// A dotted path of the stored document.
    pub field: String,
    /// Missing where there is nothing.
    pub stored: Value<'static>,
    pub expected: Value<'static>,
    /// Whether the document itself says what is right.
    pub mendable: bool,
}

/// What a move into a form does to the documents that exist.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    /// What the form may change, with zero where it changes nothing.
    pub changed: Vec<ChangedField>,
    /// How many documents have no place in the form.
    pub misfits: u64,
    /// The `_id` of one of these, and why.
    pub misfit: Option<(Value<'static>, String)>,
}

/// A field that some documents do not keep as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedField {
    /// What reports call it: `ids_lost`.
    pub name: &'static str,
    pub field: String,
    pub documents: u64,
    /// What happens to the field, and what declares it: `cut to the minute, for …`.
    pub what: String,
}
