//! What only the projection of `find` has: `$slice` on the array itself, and the positional `$`.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::filter::Details;
use crate::raw::{Array, Blob, Doc, DocWriter, kind, with_index};
use crate::value::path::Part;
use crate::value::{Path, Value};

/// `{ path: { $slice: [ skip, limit ] } }`, compiled.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) path: Path,
    pub(super) cut: Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    First(usize),
    Last(usize),
    /// From the beginning, or if negative from the end.
    Window {
        skip: i64,
        limit: usize,
    },
}

impl Cut {
    /// `find`'s own syntax: a number or `[ skip, limit ]`. The error is why it is not that.
    pub(super) fn parse(argument: &Value<'_>) -> std::result::Result<Cut, Error> {
        let refuse = |code, message: &str| Err(Error::new(Code::Location(code), message));
        match argument {
            Value::Array(pair) => {
                let (Some(skip), Some(limit), None) = (pair.get(0), pair.get(1), pair.get(2)) else {
                    return refuse(31272, "$slice array argument should be of form [skip, limit]");
                };
                if !skip.is_number() || !limit.is_number() {
                    return refuse(31256, "First argument to $slice must be a number");
                }
                match clamped(&limit) {
                    limit if limit <= 0 => refuse(31257, "$slice limit must be positive"),
                    limit => Ok(Cut::Window { skip: clamped(&skip), limit: magnitude(limit) }),
                }
            }
            number if number.is_number() => Ok(match clamped(number) {
                count if count < 0 => Cut::Last(magnitude(count)),
                count => Cut::First(magnitude(count)),
            }),
            _ => refuse(31273, "$slice only supports numbers and [skip, limit] arrays"),
        }
    }

    fn range(self, items: &Array<'_>) -> std::ops::Range<usize> {
        match self {
            Cut::First(count) => 0..count,
            Cut::Last(count) => items.count().saturating_sub(count)..usize::MAX,
            Cut::Window { skip, limit } => {
                let start = match skip < 0 {
                    true => items.count().saturating_sub(magnitude(skip)),
                    false => magnitude(skip),
                };
                start..start.saturating_add(limit)
            }
        }
    }
}

/// As a 32-bit number, cut to its range; NaN is 0.
fn clamped(value: &Value<'_>) -> i64 {
    let number = match value {
        Value::Int32(number) => f64::from(*number),
        #[expect(clippy::cast_precision_loss, reason = "clamped far below the loss of precision")]
        Value::Int64(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_string().parse().unwrap_or_default(),
        _ => 0.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "clamped; NaN becomes 0")]
    let clamped = number.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i64;
    clamped
}

fn magnitude(number: i64) -> usize {
    usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)
}

impl Slice {
    pub(super) fn apply(&self, doc: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
        self.document(doc, &self.path.parts, &mut writer);
        writer.finish()
    }

    fn document(&self, doc: &Doc<'_>, parts: &[Part], writer: &mut DocWriter) {
        let Some((first, rest)) = parts.split_first() else { return };
        let mut fields = doc.iter();
        while let Some((name, kind, value)) = fields.next_raw() {
            match name.as_bytes() == first.name.as_bytes() {
                true => self.value(name.as_str(), kind, &value, rest, writer),
                false => {
                    writer.append_raw(name.as_str(), kind, value.as_slice());
                }
            }
        }
    }

    fn value(&self, name: &str, kind: u8, value: &Blob<'_>, rest: &[Part], writer: &mut DocWriter) {
        match (kind, rest.is_empty()) {
            (kind::ARRAY, true) => {
                let items = Array::trusted(value.as_slice());
                let range = self.cut.range(&items);
                writer.start_array(name);
                for (count, item) in items.iter().skip(range.start).take(range.len()).enumerate() {
                    with_index(count, |name| {
                        writer.append(name, &item);
                    });
                }
                writer.end();
            }
            (kind::DOCUMENT, false) => {
                writer.start_document(name);
                self.document(&Doc::trusted(value.as_slice()), rest, writer);
                writer.end();
            }
            (kind::ARRAY, false) => {
                writer.start_array(name);
                let items = Array::trusted(value.as_slice());
                let mut items = items.raw_iter();
                while let Some((name, kind, item)) = items.next_raw() {
                    match kind {
                        kind::DOCUMENT => self.value(name.as_str(), kind, &item, rest, writer),
                        // Arrays directly inside arrays are not entered.
                        _ => {
                            writer.append_raw(name.as_str(), kind, item.as_slice());
                        }
                    }
                }
                writer.end();
            }
            _ => {
                writer.append_raw(name, kind, value.as_slice());
            }
        }
    }
}

/// The document with the first array on the path cut down to the element that the filter matched; `None` if there is no
/// array on it.
pub(super) fn reduce(doc: &Doc<'_>, parts: &[Part], details: &Details) -> Result<Option<Doc<'static>>> {
    if !meets_array(doc, parts) {
        return Ok(None);
    }
    let index = details.array_index.ok_or_else(|| {
        Error::new(Code::Location(51246), "positional operator '.$' couldn't find a matching element in the array")
    })?;
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
    copy_reduced(doc, parts, index, &mut writer)?;
    Ok(Some(writer.finish()))
}

fn meets_array(doc: &Doc<'_>, parts: &[Part]) -> bool {
    let Some((first, rest)) = parts.split_first() else { return false };
    match doc.get(&first.name) {
        Some(Value::Array(_)) => true,
        Some(Value::Document(inner)) => meets_array(&inner, rest),
        _ => false,
    }
}

fn copy_reduced(doc: &Doc<'_>, parts: &[Part], index: usize, writer: &mut DocWriter) -> Result<()> {
    let Some((first, rest)) = parts.split_first() else { return Ok(()) };
    let mut fields = doc.iter();
    while let Some((name, kind, value)) = fields.next_raw() {
        let (text, bytes) = (name.as_str(), value.as_slice());
        match kind {
            kind::ARRAY if text == &*first.name => {
                let item = Array::trusted(bytes).get(index);
                // What the rest of the path would drop does not count as found.
                let item = item.filter(|item| rest.is_empty() || matches!(item, Value::Document(_) | Value::Array(_)));
                let item =
                    item.ok_or_else(|| Error::new(Code::Location(51247), "positional operator '.$' element mismatch"))?;
                writer.start_array(text).append("0", &item).end();
            }
            kind::DOCUMENT if text == &*first.name => {
                writer.start_document(text);
                copy_reduced(&Doc::trusted(bytes), rest, index, writer)?;
                writer.end();
            }
            _ => {
                writer.append_raw(text, kind, bytes);
            }
        }
    }
    Ok(())
}
