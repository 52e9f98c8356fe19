//! Writing documents and arrays straight into bytes.

use super::{Array, Blob, Doc, kind};
use crate::value::Value;
use smallvec::{SmallVec, smallvec};

/// Writes a document element by element. Sub-documents and arrays are opened and closed in place, never copied again.
pub struct DocWriter {
    buffer: Vec<u8>,
    /// Where each open container's length goes.
    open: SmallVec<[usize; 6]>,
}

impl Default for DocWriter {
    fn default() -> Self {
        Self::with_capacity(128)
    }
}

impl DocWriter {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_capacity(bytes: usize) -> Self {
        let mut buffer = Vec::with_capacity(bytes.max(16));
        buffer.extend_from_slice(&[0; 4]);
        DocWriter { buffer, open: smallvec![0] }
    }

    /// Writes behind what `buffer` already holds (a message header); [`DocWriter::into_buffer`] gives it back.
    pub fn onto(mut buffer: Vec<u8>) -> Self {
        let at = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        DocWriter { buffer, open: smallvec![at] }
    }

    /// Closes what is open and gives the buffer back, whatever it held before included.
    pub fn into_buffer(mut self) -> Vec<u8> {
        while !self.open.is_empty() {
            self.close();
        }
        self.buffer
    }

    /// Bytes written so far: close to the finished size.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.len() <= 4
    }

    /// What is written so far, as it is: lengths of open containers are not filled in.
    pub(crate) fn written(&self) -> &[u8] {
        &self.buffer
    }

    /// Takes back everything behind the first `length` bytes, containers opened there included.
    pub(crate) fn rewind(&mut self, length: usize) {
        self.buffer.truncate(length);
        while self.open.len() > 1 && self.open.last().is_some_and(|at| *at >= length) {
            self.open.pop();
        }
    }

    /// Appends a field. A missing value appends nothing.
    pub fn append(&mut self, name: &str, value: &Value<'_>) -> &mut Self {
        if let Some(kind) = value.kind() {
            self.header(kind, name);
            self.payload(value);
        }
        self
    }

    /// Appends a field; for a missing value its place, if `places` are left, for a later stage to fill.
    pub(crate) fn append_or_place(&mut self, name: &str, value: &Value<'_>, places: bool) -> &mut Self {
        match value {
            Value::Missing if places => self.append_raw(name, kind::PLACE, &[]),
            value => self.append(name, value),
        }
    }

    /// Appends a field whose value bytes are already BSON of type `kind` (see [`super::Fields::next_raw`]).
    pub fn append_raw(&mut self, name: &str, kind: u8, bytes: &[u8]) -> &mut Self {
        self.header(kind, name);
        self.buffer.extend_from_slice(bytes);
        self
    }

    /// Appends an array element: as [`DocWriter::append_raw`], named by its index.
    pub fn append_raw_at(&mut self, index: usize, kind: u8, bytes: &[u8]) -> &mut Self {
        with_index(index, |name| {
            self.append_raw(name, kind, bytes);
        });
        self
    }

    /// Appends an array element: as [`DocWriter::append`], named by its index.
    pub fn append_at(&mut self, index: usize, value: &Value<'_>) -> &mut Self {
        with_index(index, |name| {
            self.append(name, value);
        });
        self
    }

    /// Opens a document as an array element.
    pub fn start_document_at(&mut self, index: usize) -> &mut Self {
        with_index(index, |name| {
            self.start_document(name);
        });
        self
    }

    /// Appends whole elements copied from another document (see [`super::Fields::position`]).
    pub fn append_elements(&mut self, bytes: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(bytes);
        self
    }

    pub fn start_document(&mut self, name: &str) -> &mut Self {
        self.start(kind::DOCUMENT, name)
    }

    pub fn start_array(&mut self, name: &str) -> &mut Self {
        self.start(kind::ARRAY, name)
    }

    /// Closes the innermost open sub-document or array.
    pub fn end(&mut self) -> &mut Self {
        if self.open.len() > 1 {
            self.close();
        }
        self
    }

    pub fn finish(mut self) -> Doc<'static> {
        while !self.open.is_empty() {
            self.close();
        }
        Doc(Blob::from(self.buffer))
    }

    fn start(&mut self, kind: u8, name: &str) -> &mut Self {
        self.header(kind, name);
        self.open.push(self.buffer.len());
        self.buffer.extend_from_slice(&[0; 4]);
        self
    }

    fn close(&mut self) {
        self.buffer.push(0);
        if let Some(at) = self.open.pop() {
            let length = i32::try_from(self.buffer.len() - at).unwrap_or(i32::MAX);
            if let Some(slot) = self.buffer.get_mut(at..at + 4) {
                slot.copy_from_slice(&length.to_le_bytes());
            }
        }
    }

    fn header(&mut self, kind: u8, name: &str) {
        self.buffer.push(kind);
        self.buffer.extend_from_slice(name.as_bytes());
        self.buffer.push(0);
    }

    fn text(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(&i32::try_from(text.len() + 1).unwrap_or(i32::MAX).to_le_bytes());
        self.buffer.extend_from_slice(text);
        self.buffer.push(0);
    }

    fn payload(&mut self, value: &Value<'_>) {
        match value {
            Value::Missing | Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey => {}
            Value::Double(number) => self.buffer.extend_from_slice(&number.to_le_bytes()),
            Value::String(text) | Value::Code(text) | Value::Symbol(text) => self.text(text.as_bytes()),
            Value::Document(doc) => self.buffer.extend_from_slice(doc.as_bytes()),
            Value::Array(array) => self.buffer.extend_from_slice(array.as_bytes()),
            Value::Binary { subtype, bytes } => {
                let bytes = bytes.as_slice();
                self.buffer.extend_from_slice(&i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_le_bytes());
                self.buffer.push(*subtype);
                self.buffer.extend_from_slice(bytes);
            }
            Value::ObjectId(id) => self.buffer.extend_from_slice(id),
            Value::Bool(truth) => self.buffer.push(u8::from(*truth)),
            Value::DateTime(millis) => self.buffer.extend_from_slice(&millis.to_le_bytes()),
            Value::Regex { pattern, options } => {
                for part in [pattern, options] {
                    self.buffer.extend_from_slice(part.as_bytes());
                    self.buffer.push(0);
                }
            }
            Value::DbPointer { namespace, id } => {
                self.text(namespace.as_bytes());
                self.buffer.extend_from_slice(id);
            }
            Value::CodeWithScope { code, scope } => {
                let length = 4 + 4 + code.as_bytes().len() + 1 + scope.as_bytes().len();
                self.buffer.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_le_bytes());
                self.text(code.as_bytes());
                self.buffer.extend_from_slice(scope.as_bytes());
            }
            Value::Int32(number) => self.buffer.extend_from_slice(&number.to_le_bytes()),
            Value::Timestamp(bits) => self.buffer.extend_from_slice(&bits.to_le_bytes()),
            Value::Int64(number) => self.buffer.extend_from_slice(&number.to_le_bytes()),
            Value::Decimal(decimal) => self.buffer.extend_from_slice(&decimal.bytes()),
        }
    }
}

/// Writes an array; the element names are counted up.
#[derive(Default)]
pub struct ArrayWriter {
    writer: DocWriter,
    count: usize,
}

impl ArrayWriter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an element. As in MongoDB's arrays, a missing value becomes null.
    pub fn push(&mut self, value: &Value<'_>) -> &mut Self {
        let value = if matches!(value, Value::Missing) { &Value::Null } else { value };
        with_index(self.count, |name| {
            self.writer.append(name, value);
        });
        self.count += 1;
        self
    }

    pub fn push_raw(&mut self, kind: u8, bytes: &[u8]) -> &mut Self {
        with_index(self.count, |name| {
            self.writer.append_raw(name, kind, bytes);
        });
        self.count += 1;
        self
    }

    /// How many elements have been pushed.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes written so far.
    pub fn len(&self) -> usize {
        self.writer.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn finish(self) -> Array<'static> {
        Array(self.writer.finish().0)
    }
}

/// Calls `use_name` with the decimal digits of `index`, without allocating.
pub(crate) fn with_index<R>(index: usize, use_name: impl FnOnce(&str) -> R) -> R {
    let mut digits = [0u8; 20];
    let (mut rest, mut start) = (index, digits.len());
    for slot in digits.iter_mut().rev() {
        *slot = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        start -= 1;
        if rest == 0 {
            break;
        }
    }
    use_name(digits.get(start..).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("0"))
}

impl<'a> FromIterator<Value<'a>> for Array<'static> {
    fn from_iter<I: IntoIterator<Item = Value<'a>>>(values: I) -> Self {
        let mut writer = ArrayWriter::new();
        for value in values {
            writer.push(&value);
        }
        writer.finish()
    }
}
