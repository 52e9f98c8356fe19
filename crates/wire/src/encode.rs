//! Writing messages into a buffer that the caller reuses: header first, its length filled in at the end, one write to the
//! socket.
//!
//! A message is begun ([`begin_msg`], [`begin_reply`]), its document is appended by whoever makes it, and it is finished
//! ([`finish`]).

use crate::header::{Header, OpCode};
use crate::message::flags;

/// Begins an OP_MSG and its body section: the document's bytes come next. Returns where the message starts.
pub fn begin_msg(buffer: &mut Vec<u8>, request_id: i32, response_to: i32, flag_bits: u32) -> usize {
    let start = begin(buffer, request_id, response_to, OpCode::Msg);
    buffer.extend_from_slice(&flag_bits.to_le_bytes());
    buffer.push(0);
    start
}

/// Begins an OP_REPLY with one document, whose bytes come next. Returns where the message starts.
pub fn begin_reply(buffer: &mut Vec<u8>, request_id: i32, response_to: i32) -> usize {
    const AWAIT_CAPABLE: u32 = 8;
    let start = begin(buffer, request_id, response_to, OpCode::Reply);
    buffer.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
    buffer.extend_from_slice(&0_i64.to_le_bytes()); // no cursor
    buffer.extend_from_slice(&0_i32.to_le_bytes()); // from the first document
    buffer.extend_from_slice(&1_i32.to_le_bytes()); // one document
    start
}

/// Appends a document sequence to a begun OP_MSG whose body is complete.
pub fn append_sequence<'a>(buffer: &mut Vec<u8>, name: &str, documents: impl IntoIterator<Item = &'a [u8]>) {
    buffer.push(1);
    let at = buffer.len();
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(name.as_bytes());
    buffer.push(0);
    for document in documents {
        buffer.extend_from_slice(document);
    }
    let length = buffer.len() - at;
    write_length(buffer, at, length);
}

/// A whole OP_QUERY for one command on `<database>.$cmd`.
pub fn query(buffer: &mut Vec<u8>, request_id: i32, namespace: &str, document: &[u8]) {
    let start = begin(buffer, request_id, 0, OpCode::Query);
    buffer.extend_from_slice(&0_u32.to_le_bytes());
    buffer.extend_from_slice(namespace.as_bytes());
    buffer.push(0);
    buffer.extend_from_slice(&0_i32.to_le_bytes());
    buffer.extend_from_slice(&(-1_i32).to_le_bytes());
    buffer.extend_from_slice(document);
    finish(buffer, start);
}

/// Fills in the length of the message that starts at `start` and, if its flags promise one, appends the checksum.
pub fn finish(buffer: &mut Vec<u8>, start: usize) {
    let checksum = is_msg_with_checksum(buffer, start);
    let length = buffer.len() - start + if checksum { 4 } else { 0 };
    write_length(buffer, start, length);
    if checksum {
        let sum = crc32c::crc32c(buffer.get(start..).unwrap_or_default());
        buffer.extend_from_slice(&sum.to_le_bytes());
    }
}

fn is_msg_with_checksum(buffer: &[u8], start: usize) -> bool {
    let word = |at: usize| buffer.get(start + at..)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    word(12) == Some(OpCode::Msg.number().cast_unsigned())
        && word(Header::SIZE).is_some_and(|bits| bits & flags::CHECKSUM_PRESENT != 0)
}

fn begin(buffer: &mut Vec<u8>, request_id: i32, response_to: i32, op_code: OpCode) -> usize {
    let start = buffer.len();
    for number in [0, request_id, response_to, op_code.number()] {
        buffer.extend_from_slice(&number.to_le_bytes());
    }
    start
}

fn write_length(buffer: &mut [u8], at: usize, length: usize) {
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    if let Some(slot) = buffer.get_mut(at..at + 4) {
        slot.copy_from_slice(&length.to_le_bytes());
    }
}
