//! `distinct` from an index: from one value to the next, without reading documents.

use crate::catalog::{Collection, Index};
use crate::store::keys::{EntryParts, PREFIX, document, document_key_of, index_prefix};
use crate::transaction::snapshot::ReadSnapshot;
use document::value::distinct::{Values, each_value};
use document::value::key::{self, TypeReader};
use document::value::path::Part;
use document::{Code, Env, Error, Result, Value};
use std::sync::Arc;

/// So many entries of one value are read over before the next value is looked up.
const ENTRIES_BEFORE_SEEK: usize = 8;
const BETWEEN_CHECKS: usize = 256;

/// The index whose first key is the path: its entries are the values.
pub(crate) fn index_for(collection: &Collection, parts: &[Part]) -> Option<Arc<Index>> {
    let by_position = parts.iter().any(|part| part.index.is_some());
    collection
        .secondary()
        .iter()
        .filter(|index| index.ready && !index.hidden && index.partial.is_none() && index.text.is_none() && !by_position)
        .find(|index| index.keys.first().is_some_and(|key| key.path.parts == parts))
        .cloned()
}

/// Adds all values that the index has; gives the number of entries looked at.
pub(super) fn scan(
    snapshot: &ReadSnapshot,
    collection: &Collection,
    index: &Index,
    parts: &[Part],
    env: &Env,
    values: &mut Values,
) -> Result<u64> {
    let space = collection.space()?;
    let torn = || Error::new(Code::InternalError, "an index entry cannot be read");
    let descending = index.keys.first().is_some_and(|key| key.descending);
    let (mut from, to) = (index_prefix(index.id).to_vec(), index_prefix(index.id + 1));
    let mut examined = 0;
    'seek: loop {
        let (mut current, mut repeated): (Vec<u8>, usize) = (Vec::new(), 0);
        for (read, entry) in snapshot.range(space, &from, &to, false).enumerate() {
            if read % BETWEEN_CHECKS == BETWEEN_CHECKS - 1 {
                (env.interrupt)()?;
            }
            let (key, value) = entry?;
            examined += 1;
            let entry = EntryParts::parse(&key, &value).ok_or_else(torn)?;
            let length = if entry.inexact { 0 } else { key::length(entry.fields, descending).ok_or_else(torn)? };
            let first = entry.fields.get(..length).unwrap_or_default();
            if length > 0 && first == current {
                repeated += 1;
                if repeated < ENTRIES_BEFORE_SEEK {
                    continue;
                }
                // 0xFF is above all that may follow a value.
                from = [key.get(..PREFIX + length).unwrap_or_default(), &[0xFF]].concat();
                continue 'seek;
            }
            let found = match length {
                0 => None,
                _ => key::decode(entry.fields, descending, &mut TypeReader::new(entry.types)).map(|(value, _)| value),
            };
            match found {
                // Cut: only the document tells.
                None => {
                    let Some(stored) = snapshot.get(space, &document_key_of(entry.id))? else { continue };
                    let doc = document(stored)?;
                    each_value(&Value::Document(doc.borrow()), parts, &mut |value| values.add(value))?;
                }
                // As in MongoDB the entry is the value: a missing field is null, an empty array undefined.
                Some(value) => {
                    each_value(&value, &[], &mut |value| values.add(value))?;
                    (current, repeated) = (first.to_vec(), 0);
                }
            }
        }
        return Ok(examined);
    }
}
