//! The score of a found document, on its way through a pipeline.
//!
//! It is a place (see `pipeline/places.rs`) at the front of the document whose name holds the number: no reader of fields sees
//! it, stages that copy fields copy it, and what leaves the pipeline is freed of it as of all places.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::pipeline::{Rows, Stream};
use crate::raw::{Doc, DocWriter, Element, kind, without_places};

/// What the name begins with: no place of a removed field is called so, since a stage that sets such a field cannot be written.
const MARK: &str = "\u{1}textScore ";

/// The path that stands for the score in a sort: no field is called so.
pub const PATH: &str = "\u{1}textScore";

/// The document with this score.
pub fn with_score(doc: &Doc<'_>, score: f64) -> Doc<'static> {
    let bytes = doc.as_bytes();
    let mut writer = DocWriter::with_capacity(bytes.len() + 40);
    writer.append_raw(&format!("{MARK}{:016x}", score.to_bits()), kind::PLACE, &[]);
    writer.append_elements(bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default());
    writer.finish()
}

/// The score that a document carries.
pub fn score(doc: &Doc<'_>) -> Option<f64> {
    let bytes = doc.as_bytes();
    let element = Element::slot_at(bytes, 4).filter(|element| element.kind == kind::PLACE)?;
    let name = std::str::from_utf8(bytes.get(element.name)?).ok()?;
    let bits = u64::from_str_radix(name.strip_prefix(MARK)?, 16).ok()?;
    Some(f64::from_bits(bits))
}

/// The document as it was found.
pub(crate) fn unloaded<'a>(doc: &Doc<'a>) -> Doc<'a> {
    match score(doc).and_then(|_| without_places(doc)) {
        Some(plain) => plain,
        None => doc.clone(),
    }
}

/// What became of `from`, with its score if it has one.
pub(crate) fn carry(from: &Doc<'_>, to: Doc<'static>) -> Doc<'static> {
    match score(from) {
        Some(found) if score(&to).is_none() => with_score(&to, found),
        _ => to,
    }
}

/// The error of reading a score where there is none.
pub fn unavailable() -> Error {
    Error::new(Code::Location(40218), "query requires text score metadata, but it is not available")
}

/// The document without its score.
pub fn without_score(doc: Doc<'static>) -> Doc<'static> {
    without_places(&doc).unwrap_or(doc)
}

/// The documents without what they carry.
pub fn without_scores(rows: Rows) -> Rows {
    Box::new(Unloaded(rows))
}

struct Unloaded(Rows);

impl Stream for Unloaded {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        Ok(self.0.next()?.map(without_score))
    }

    fn pause(&mut self) {
        self.0.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn a_score_is_carried_unseen() {
        let plain = Doc::from(doc! { "a": 1, "b": { "c": 2 } });
        let scored = with_score(&plain, 1.25);
        assert_eq!((score(&scored), score(&plain)), (Some(1.25), None));
        assert_eq!(scored.iter().map(|(name, _)| name.as_str().to_owned()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(without_places(&scored).unwrap(), plain);
        assert_eq!(score(&carry(&scored, Doc::empty())), Some(1.25));
        assert_eq!(score(&with_score(&Doc::empty(), f64::MIN_POSITIVE)), Some(f64::MIN_POSITIVE));
    }
}
