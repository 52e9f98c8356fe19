//! Hex digits that logical documents have in lower case and clients may write in either: what clients compare with them is
//! brought to lower case first. A shape says where its documents have digits ([`HexPaths`]); this knows filters, expressions and
//! stages.

mod expression;
mod filter;
mod rewrite;
mod stages;
mod sub_pipelines;

use crate::rule::read::HexPaths;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;

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
    /// Of a collection; `in_any_case` if some of its documents are still stored as clients wrote them.
    pub(crate) fn new(hex: HexPaths, in_any_case: bool) -> Digits {
        let HexPaths { fields, of_id } = hex;
        let paths = fields.into_iter().chain(of_id.iter().map(|field| format!("_id.{field}"))).collect();
        Digits { paths, of_id, both: in_any_case, ..Digits::none() }
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

    /// Whether no stage can concern digits.
    fn is_idle(&self) -> bool {
        self.paths.is_empty() && self.variables.is_empty() && self.others.is_empty()
    }

    fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|own| own == path)
    }
}

/// A text in lower case; `None` if it is so already, or no text.
pub(super) fn lowered(value: &Value<'_>) -> Option<Value<'static>> {
    let Value::String(digits) = value else { return None };
    let is_upper = digits.as_str().bytes().any(|letter| letter.is_ascii_uppercase());
    is_upper.then(|| Value::string(digits.as_str().to_ascii_lowercase()))
}

/// A document whose fields of these names are in lower case; `None` if they are so already.
pub(super) fn lowered_fields(doc: &Doc<'_>, is_hex: &dyn Fn(&str) -> bool) -> Option<Doc<'static>> {
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
    let mut changed = false;
    for (name, value) in doc.iter() {
        let lowered = if is_hex(name.as_str()) { lowered(&value) } else { None };
        changed |= lowered.is_some();
        writer.append(name.as_str(), &lowered.unwrap_or(value));
    }
    changed.then(|| writer.finish())
}
