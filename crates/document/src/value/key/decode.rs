//! From encoded bytes back to values, and over them.

use super::number::Magnitude;
use super::tag;
use super::types::{self, TypeReader};
use crate::raw::{ArrayWriter, Blob, Doc, DocWriter, Text};
use crate::value::Value;

/// The value at the start of `bytes` and how many bytes it took; `None` if the bytes are no encoding.
/// `descending` says that they are inverted.
pub fn decode(bytes: &[u8], descending: bool, types: &mut TypeReader<'_>) -> Option<(Value<'static>, usize)> {
    let mut reader = Reader { bytes, position: 0, mask: if descending { 0xFF } else { 0 } };
    let value = reader.value(types)?;
    Some((value, reader.position))
}

/// The double at the start of `bytes`, which were encoded from one.
pub fn decode_double(bytes: &[u8]) -> Option<f64> {
    match decode(bytes, false, &mut TypeReader::new(&[types::DOUBLE]))? {
        (Value::Double(number), _) => Some(number),
        _ => None,
    }
}

/// How many bytes the first value of `bytes` takes.
pub fn length(bytes: &[u8], descending: bool) -> Option<usize> {
    let mut reader = Reader { bytes, position: 0, mask: if descending { 0xFF } else { 0 } };
    reader.skip()?;
    Some(reader.position)
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    mask: u8,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.position)? ^ self.mask;
        self.position += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).map(|byte| byte ^ self.mask)
    }

    fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        let end = self.position.checked_add(count)?;
        let taken = self.bytes.get(self.position..end)?;
        self.position = end;
        Some(taken.iter().map(|byte| byte ^ self.mask).collect())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn advance(&mut self, count: usize) -> Option<()> {
        let end = self.position.checked_add(count).filter(|end| *end <= self.bytes.len())?;
        self.position = end;
        Some(())
    }

    fn length(&mut self) -> Option<usize> {
        match self.next()? {
            0xFF => usize::try_from(u32::from_be_bytes(self.array()?)).ok(),
            short => Some(usize::from(short)),
        }
    }

    fn text(&mut self) -> Option<Text<'static>> {
        let mut text = Vec::new();
        loop {
            match self.next()? {
                0 if self.peek() == Some(0xFF) => {
                    self.position += 1;
                    text.push(0);
                }
                0 => return String::from_utf8(text).ok().map(Text::from),
                byte => text.push(byte),
            }
        }
    }

    fn skip_text(&mut self) -> Option<()> {
        loop {
            let rest = self.bytes.get(self.position..)?;
            self.position += memchr::memchr(self.mask, rest)? + 1;
            if self.peek() != Some(0xFF) {
                return Some(());
            }
            self.position += 1;
        }
    }

    /// A field's name: no NUL inside, so nothing is escaped and 0xFF may follow.
    fn name(&mut self) -> Option<String> {
        let rest = self.bytes.get(self.position..)?;
        let length = memchr::memchr(self.mask, rest)?;
        let name = self.take(length)?;
        self.position += 1;
        String::from_utf8(name).ok()
    }

    fn fields(&mut self, types: &mut TypeReader<'_>) -> Option<Doc<'static>> {
        let mut writer = DocWriter::new();
        while self.next()? != tag::END {
            let name = self.name()?;
            writer.append(&name, &self.value(types)?);
        }
        Some(writer.finish())
    }

    fn skip_fields(&mut self) -> Option<()> {
        while self.next()? != tag::END {
            self.name()?;
            self.skip()?;
        }
        Some(())
    }

    fn value(&mut self, types: &mut TypeReader<'_>) -> Option<Value<'static>> {
        Some(match self.next()? {
            tag::MIN_KEY => Value::MinKey,
            tag::UNDEFINED => Value::Undefined,
            tag::NULL => Value::Null,
            tag::NAN => match types.next() {
                types::DECIMAL => Value::Decimal(types.decimal()),
                types::DOUBLE_BITS => Value::Double(f64::from_bits(u64::from_be_bytes(types.take()))),
                _ => Value::Double(f64::NAN),
            },
            tag::ZERO => match types.next() {
                types::INT64 => Value::Int64(0),
                types::DOUBLE => Value::Double(0.0),
                types::NEGATIVE_ZERO => Value::Double(-0.0),
                types::DECIMAL => Value::Decimal(types.decimal()),
                _ => Value::Int32(0),
            },
            sign @ (tag::NEGATIVE | tag::POSITIVE) => {
                let negative = sign == tag::NEGATIVE;
                let flip = if negative { 0xFF } else { 0 };
                let magnitude = Magnitude::read(|| self.next().map(|byte| byte ^ flip))?;
                match types.next() {
                    types::DOUBLE => Value::Double(magnitude.to_double(negative)),
                    types::DECIMAL => Value::Decimal(types.decimal()),
                    types::INT64 => Value::Int64(magnitude.to_long(negative)),
                    _ => match i32::try_from(magnitude.to_long(negative)) {
                        Ok(number) => Value::Int32(number),
                        Err(_) => Value::Int64(magnitude.to_long(negative)),
                    },
                }
            }
            tag::STRING => {
                let text = self.text()?;
                if types.is_symbol() { Value::Symbol(text) } else { Value::String(text) }
            }
            tag::DOCUMENT => Value::Document(self.fields(types)?),
            tag::ARRAY => {
                let mut writer = ArrayWriter::new();
                while self.peek()? != tag::END {
                    writer.push(&self.value(types)?);
                }
                self.position += 1;
                Value::Array(writer.finish())
            }
            tag::BINARY => {
                let length = self.length()?;
                Value::Binary { subtype: self.next()?, bytes: Blob::from(self.take(length)?) }
            }
            tag::OBJECT_ID => Value::ObjectId(self.array()?),
            tag::BOOL => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::DATE_TIME => Value::DateTime(i64::from_be_bytes(self.array()?) ^ i64::MIN),
            tag::TIMESTAMP => Value::Timestamp(u64::from_be_bytes(self.array()?)),
            tag::REGEX => Value::Regex { pattern: self.text()?, options: self.text()? },
            tag::DB_POINTER => {
                let length = self.length()?;
                let namespace = String::from_utf8(self.take(length)?).ok()?;
                Value::DbPointer { namespace: Text::from(namespace), id: self.array()? }
            }
            tag::CODE => Value::Code(self.text()?),
            tag::CODE_WITH_SCOPE => Value::CodeWithScope { code: self.text()?, scope: self.fields(types)? },
            tag::MAX_KEY => Value::MaxKey,
            _ => return None,
        })
    }

    fn skip(&mut self) -> Option<()> {
        match self.next()? {
            sign @ (tag::NEGATIVE | tag::POSITIVE) => {
                let flip = if sign == tag::NEGATIVE { 0xFF } else { 0 };
                Magnitude::read(|| self.next().map(|byte| byte ^ flip))?;
            }
            tag::STRING | tag::CODE => self.skip_text()?,
            tag::REGEX => {
                self.skip_text()?;
                self.skip_text()?;
            }
            tag::DOCUMENT => self.skip_fields()?,
            tag::ARRAY => {
                while self.peek()? != tag::END {
                    self.skip()?;
                }
                self.position += 1;
            }
            tag::BINARY => {
                let length = self.length()?;
                self.advance(length.checked_add(1)?)?;
            }
            tag::OBJECT_ID => self.advance(12)?,
            tag::DATE_TIME | tag::TIMESTAMP => self.advance(8)?,
            tag::DB_POINTER => {
                let length = self.length()?;
                self.advance(length.checked_add(12)?)?;
            }
            tag::CODE_WITH_SCOPE => {
                self.skip_text()?;
                self.skip_fields()?;
            }
            tag::MIN_KEY | tag::UNDEFINED | tag::NULL | tag::NAN | tag::ZERO | tag::BOOL | tag::TRUE | tag::MAX_KEY => {
            }
            _ => return None,
        }
        Some(())
    }
}
