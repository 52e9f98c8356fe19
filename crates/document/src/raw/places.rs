//! Taking out the places of removed fields, when a document leaves its pipeline.

use super::{Doc, DocWriter, Element, kind};

/// The document without places, on every level; `None` if it has none.
pub(crate) fn without_places(doc: &Doc<'_>) -> Option<Doc<'static>> {
    if !has_places(doc.as_bytes()) {
        return None;
    }
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
    copy(doc.as_bytes(), &mut writer);
    Some(writer.finish())
}

fn has_places(bytes: &[u8]) -> bool {
    let mut position = 4;
    while let Some(element) = Element::slot_at(bytes, position) {
        let nested = || has_places(bytes.get(element.start..element.end).unwrap_or_default());
        match element.kind {
            kind::PLACE => return true,
            kind::DOCUMENT | kind::ARRAY if nested() => return true,
            _ => position = element.end,
        }
    }
    false
}

/// Arrays too: their elements are named like fields, and are never places themselves.
fn copy(bytes: &[u8], writer: &mut DocWriter) {
    let mut fields = Doc::trusted(bytes).iter();
    while let Some((name, of_kind, value)) = fields.next_raw() {
        let (name, value) = (name.as_str(), value.as_slice());
        match of_kind {
            kind::DOCUMENT => {
                writer.start_document(name);
            }
            kind::ARRAY => {
                writer.start_array(name);
            }
            _ => {
                writer.append_raw(name, of_kind, value);
                continue;
            }
        }
        copy(value, writer);
        writer.end();
    }
}
