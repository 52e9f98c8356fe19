//! Reading the messages behind a header: OP_MSG, and of the legacy ones OP_QUERY and OP_REPLY.

use crate::error::WireError;
use crate::header::{Header, OpCode};
use crate::limits::MAX_WIRE_DOCUMENT;

/// The flag bits of OP_MSG. The lower 16 are required: an unknown one is an error.
pub mod flags {
    pub const CHECKSUM_PRESENT: u32 = 1;
    pub const MORE_TO_COME: u32 = 1 << 1;
    pub const EXHAUST_ALLOWED: u32 = 1 << 16;
    pub(crate) const REQUIRED: u32 = 0xFFFF;
}

/// A message, pointing into the bytes it was read from.
#[derive(Debug, PartialEq)]
pub enum Message<'a> {
    Msg(Msg<'a>),
    Query(Query<'a>),
    Reply(Reply<'a>),
    GetMore,
}

/// OP_MSG: one body and any number of document sequences.
#[derive(Debug, PartialEq)]
pub struct Msg<'a> {
    pub flags: u32,
    /// The bytes of one document; only its length has been checked.
    pub body: &'a [u8],
    pub sequences: Vec<Sequence<'a>>,
}

impl Msg<'_> {
    /// The sender does not want an answer (a request), or more answers follow (a reply).
    pub fn more_to_come(&self) -> bool {
        self.flags & flags::MORE_TO_COME != 0
    }
}

/// Documents that belong in the body as an array field, sent apart.
#[derive(Debug, PartialEq)]
pub struct Sequence<'a> {
    pub name: &'a str,
    documents: &'a [u8],
}

impl<'a> Sequence<'a> {
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.documents;
        // The lengths were checked when the message was parsed, so a document is always found.
        std::iter::from_fn(move || {
            let (document, after) = split_document(rest).ok()?;
            rest = after;
            Some(document)
        })
    }
}

/// OP_QUERY: a command in a document, on `<database>.$cmd`.
#[derive(Debug, PartialEq)]
pub struct Query<'a> {
    pub flags: u32,
    pub namespace: &'a str,
    pub to_skip: i32,
    pub to_return: i32,
    pub query: &'a [u8],
}

/// OP_REPLY: the answer to OP_QUERY. Only the first document is looked at.
#[derive(Debug, PartialEq)]
pub struct Reply<'a> {
    pub flags: u32,
    pub document: &'a [u8],
}

/// Reads a whole message: `bytes` holds the header and `header.length` bytes in all.
pub fn parse<'a>(header: &Header, bytes: &'a [u8]) -> Result<Message<'a>, WireError> {
    if bytes.len() != header.length {
        return Err(WireError::Torn);
    }
    let payload = bytes.get(Header::SIZE..).ok_or(WireError::Torn)?;
    match header.op_code {
        OpCode::Msg => parse_msg(bytes, payload).map(Message::Msg),
        OpCode::Query => parse_query(payload).map(Message::Query),
        OpCode::Reply => parse_reply(payload).map(Message::Reply),
        OpCode::GetMore => Ok(Message::GetMore),
        OpCode::Compressed => Err(WireError::Compressed),
    }
}

/// What decides who answers a request: its flags and its body, nothing else checked. `None` if the message is torn or of
/// another kind.
pub fn peek<'a>(header: &Header, bytes: &'a [u8]) -> Option<(u32, &'a [u8])> {
    if header.op_code != OpCode::Msg || bytes.len() != header.length {
        return None;
    }
    let (flags, mut rest) = split_u32(bytes.get(Header::SIZE..)?)?;
    loop {
        let (kind, section) = rest.split_first()?;
        match kind {
            0 => return Some((flags, split_document(section).ok()?.0)),
            1 => {
                let length = usize::try_from(split_u32(section)?.0).ok()?;
                rest = section.get(length..)?;
            }
            _ => return None,
        }
    }
}

/// The name and the documents of the first document sequence of an OP_MSG, its bytes not validated. Returns `None` if it has none.
pub fn peek_sequence<'a>(header: &Header, bytes: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
    if header.op_code != OpCode::Msg || bytes.len() != header.length {
        return None;
    }
    let mut rest = split_u32(bytes.get(Header::SIZE..)?)?.1;
    loop {
        let (kind, section) = rest.split_first()?;
        match kind {
            0 => rest = split_document(section).ok()?.1,
            1 => {
                let length = usize::try_from(split_u32(section)?.0).ok()?;
                let content = section.get(4..length)?;
                let end = content.iter().position(|byte| *byte == 0)?;
                let (name, documents) = content.split_at_checked(end)?;
                return Some((std::str::from_utf8(name).ok()?, documents.get(1..)?));
            }
            _ => return None,
        }
    }
}

fn parse_msg<'a>(whole: &'a [u8], payload: &'a [u8]) -> Result<Msg<'a>, WireError> {
    let (flags, mut rest) = split_u32(payload).ok_or(WireError::Torn)?;
    let known = flags::CHECKSUM_PRESENT | flags::MORE_TO_COME;
    if flags & flags::REQUIRED & !known != 0 {
        return Err(WireError::Flags(flags));
    }
    if flags & flags::CHECKSUM_PRESENT != 0 {
        let (covered, stated) = whole.split_last_chunk::<4>().ok_or(WireError::Torn)?;
        let sections = rest.len().checked_sub(4).ok_or(WireError::Torn)?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*stated) {
            return Err(WireError::Checksum);
        }
        rest = rest.get(..sections).ok_or(WireError::Torn)?;
    }
    let mut body = None;
    let mut sequences: Vec<Sequence<'a>> = Vec::new();
    while let Some((kind, section)) = rest.split_first() {
        match kind {
            0 if body.is_some() => return Err(WireError::TwoBodies),
            0 => {
                let (document, after) = split_document(section)?;
                body = Some(document);
                rest = after;
            }
            1 => {
                let (sequence, after) = split_sequence(section)?;
                if sequences.iter().any(|other| other.name == sequence.name) {
                    return Err(WireError::DuplicateSequence(sequence.name.to_owned()));
                }
                sequences.push(sequence);
                rest = after;
            }
            unknown => return Err(WireError::Section(*unknown)),
        }
    }
    Ok(Msg { flags, body: body.ok_or(WireError::NoBody)?, sequences })
}

fn split_sequence(section: &[u8]) -> Result<(Sequence<'_>, &[u8]), WireError> {
    let stated = split_u32(section).ok_or(WireError::TornSequence)?.0;
    let length = usize::try_from(stated).map_err(|_| WireError::TornSequence)?;
    let (sequence, after) = section.split_at_checked(length).ok_or(WireError::TornSequence)?;
    let (name, documents) = split_text(sequence.get(4..).ok_or(WireError::TornSequence)?)?;
    let mut rest = documents;
    while !rest.is_empty() {
        rest = split_document(rest)?.1;
    }
    Ok((Sequence { name, documents }, after))
}

fn parse_query(payload: &[u8]) -> Result<Query<'_>, WireError> {
    let (flags, rest) = split_u32(payload).ok_or(WireError::Torn)?;
    let (namespace, rest) = split_text(rest).map_err(|_| WireError::Torn)?;
    let (to_skip, rest) = split_u32(rest).ok_or(WireError::Torn)?;
    let (to_return, rest) = split_u32(rest).ok_or(WireError::Torn)?;
    let (query, _fields) = split_document(rest)?;
    Ok(Query { flags, namespace, to_skip: to_skip.cast_signed(), to_return: to_return.cast_signed(), query })
}

fn parse_reply(payload: &[u8]) -> Result<Reply<'_>, WireError> {
    let (flags, rest) = split_u32(payload).ok_or(WireError::Torn)?;
    // Cursor id, starting point, number of documents.
    let documents = rest.get(16..).ok_or(WireError::Torn)?;
    Ok(Reply { flags, document: split_document(documents)?.0 })
}

/// The document at the start of `bytes`, and what follows it.
fn split_document(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let stated = split_u32(bytes).ok_or(WireError::Document)?.0;
    let length = usize::try_from(stated).map_err(|_| WireError::Document)?;
    if length < 5 {
        return Err(WireError::Document);
    }
    let parts = bytes.split_at_checked(length).ok_or(WireError::Document)?;
    if length > MAX_WIRE_DOCUMENT {
        return Err(WireError::LargeDocument(length));
    }
    Ok(parts)
}

/// The NUL-terminated text at the start of `bytes`, and what follows it.
fn split_text(bytes: &[u8]) -> Result<(&str, &[u8]), WireError> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or(WireError::TornSequence)?;
    let text = bytes.get(..end).and_then(|text| std::str::from_utf8(text).ok()).ok_or(WireError::TornSequence)?;
    Ok((text, bytes.get(end + 1..).unwrap_or_default()))
}

fn split_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(number, rest)| (u32::from_le_bytes(*number), rest))
}
