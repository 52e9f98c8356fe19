//! Round trips, a table of malformed messages, and random bytes.

use crate::encode::{append_sequence, begin_msg, begin_reply, finish, query};
use crate::message::{flags, parse};
use crate::{Header, Message, OpCode, WireError};
use proptest::prelude::*;

const EMPTY: &[u8] = &[5, 0, 0, 0, 0];
/// `{ a: true }`
const ONE: &[u8] = &[9, 0, 0, 0, 8, b'a', 0, 1, 0];

fn read(bytes: &[u8]) -> Result<Message<'_>, WireError> {
    let header = Header::peek(bytes).expect("a whole header")?;
    parse(&header, bytes)
}

fn message(op_code: i32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [16 + i32::try_from(payload.len()).unwrap(), 7, 0, op_code] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// An OP_MSG of these flags and sections.
fn msg(flag_bits: u32, sections: &[&[u8]]) -> Vec<u8> {
    message(2013, &[&flag_bits.to_le_bytes(), sections.concat().as_slice()].concat())
}

fn sequence(stated_length: i32, rest: &[u8]) -> Vec<u8> {
    [&[1], stated_length.to_le_bytes().as_slice(), rest].concat()
}

#[test]
fn what_is_written_is_read_back() {
    for flag_bits in [0, flags::CHECKSUM_PRESENT, flags::MORE_TO_COME, flags::EXHAUST_ALLOWED] {
        let mut buffer = b"before".to_vec();
        let start = begin_msg(&mut buffer, 5, 6, flag_bits);
        buffer.extend_from_slice(ONE);
        append_sequence(&mut buffer, "documents", [ONE, EMPTY]);
        append_sequence(&mut buffer, "more", []);
        finish(&mut buffer, start);
        let bytes = &buffer[start..];
        let header = Header::peek(bytes).unwrap().unwrap();
        assert_eq!(header, Header { length: bytes.len(), request_id: 5, response_to: 6, op_code: OpCode::Msg });
        let Message::Msg(msg) = read(bytes).unwrap() else { panic!("not a message") };
        assert_eq!((msg.flags, msg.body, msg.sequences.len()), (flag_bits, ONE, 2));
        assert_eq!(msg.more_to_come(), flag_bits == flags::MORE_TO_COME);
        assert_eq!(msg.sequences[0].name, "documents");
        assert_eq!(msg.sequences[0].iter().collect::<Vec<_>>(), [ONE, EMPTY]);
        assert_eq!(msg.sequences[1].iter().count(), 0);
    }
}

#[test]
fn the_legacy_handshake_is_read_back() {
    let mut buffer = Vec::new();
    query(&mut buffer, 3, "admin.$cmd", ONE);
    let Message::Query(query) = read(&buffer).unwrap() else { panic!("not a query") };
    assert_eq!((query.namespace, query.to_return, query.query), ("admin.$cmd", -1, ONE));

    let mut buffer = Vec::new();
    let start = begin_reply(&mut buffer, 4, 3);
    buffer.extend_from_slice(ONE);
    finish(&mut buffer, start);
    let Message::Reply(reply) = read(&buffer).unwrap() else { panic!("not a reply") };
    assert_eq!(reply.document, ONE);
}

#[test]
fn lengths_are_checked_before_they_are_used() {
    for stated in [i32::MIN, -1, 0, 15, 48_000_001, i32::MAX] {
        let mut bytes = msg(0, &[&[0], EMPTY]);
        bytes[..4].copy_from_slice(&stated.to_le_bytes());
        assert_eq!(Header::peek(&bytes).unwrap(), Err(WireError::Length(stated)));
    }
    assert_eq!(Header::peek(&[0; 15]), None);
    for length in [16_i32, 48_000_000] {
        let mut bytes = msg(0, &[]);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        assert!(Header::peek(&bytes).unwrap().is_ok());
    }
}

#[test]
fn malformed_messages_give_the_error_that_mongod_gives() {
    let body: &[u8] = &[&[0], ONE].concat();
    let documents = sequence(14 + 9, &[b"documents\0", ONE].concat());
    let checksummed = {
        let mut bytes = msg(flags::CHECKSUM_PRESENT, &[body, &[0; 4]]);
        let covered = bytes.len() - 4;
        let sum = crc32c::crc32c(&bytes[..covered]);
        bytes[covered..].copy_from_slice(&sum.to_le_bytes());
        bytes
    };
    assert!(read(&checksummed).is_ok());
    let mut wrong_sum = checksummed.clone();
    *wrong_sum.last_mut().unwrap() ^= 1;
    let mut wrong_byte = checksummed;
    wrong_byte[4] ^= 1;

    let rows: &[(&str, Vec<u8>, WireError, Option<i32>)] = &[
        ("op code", message(99, &[]), WireError::OpCode(99), None),
        ("legacy insert", message(2002, &[0; 8]), WireError::OpCode(2002), None),
        ("compressed", message(2012, &[0; 16]), WireError::Compressed, None),
        ("no flags", message(2013, &[0; 3]), WireError::Torn, None),
        ("unknown flag", msg(8, &[body]), WireError::Flags(8), None),
        ("checksum", wrong_sum, WireError::Checksum, None),
        ("byte under the checksum", wrong_byte, WireError::Checksum, None),
        ("no room for a checksum", msg(1, &[&[0; 3]]), WireError::Torn, None),
        ("no sections", msg(0, &[]), WireError::NoBody, Some(40587)),
        ("only a sequence", msg(0, &[&documents]), WireError::NoBody, Some(40587)),
        ("two bodies", msg(0, &[body, body]), WireError::TwoBodies, Some(40430)),
        ("unknown section", msg(0, &[body, &[7]]), WireError::Section(7), Some(40432)),
        (
            "the same sequence twice",
            msg(0, &[body, &documents, &documents]),
            WireError::DuplicateSequence("documents".into()),
            Some(40431),
        ),
        ("sequence past the end", msg(0, &[body, &sequence(99, b"a\0")]), WireError::TornSequence, Some(15)),
        ("negative sequence", msg(0, &[body, &sequence(-1, b"a\0")]), WireError::TornSequence, Some(15)),
        ("short sequence", msg(0, &[body, &sequence(3, b"")]), WireError::TornSequence, Some(15)),
        ("sequence without a name", msg(0, &[body, &sequence(6, b"ab")]), WireError::TornSequence, Some(15)),
        ("sequence name not UTF-8", msg(0, &[body, &sequence(6, b"\xFF\0")]), WireError::TornSequence, Some(15)),
        ("torn sequence document", msg(0, &[body, &sequence(10, b"a\0\x05\0\0\0")]), WireError::Document, Some(22)),
        ("body shorter than it says", msg(0, &[&[0, 9, 0, 0, 0, 8]]), WireError::Document, Some(22)),
        ("body of length 4", msg(0, &[&[0, 4, 0, 0, 0]]), WireError::Document, Some(22)),
        ("body of negative length", msg(0, &[&[0, 0xFF, 0xFF, 0xFF, 0xFF, 0]]), WireError::Document, Some(22)),
        ("torn query", message(2004, b"\0\0\0\0admin.$cmd"), WireError::Torn, None),
        ("torn reply", message(1, &[0; 10]), WireError::Torn, None),
    ];
    for (name, bytes, error, code) in rows {
        assert_eq!(read(bytes), Err(error.clone()), "{name}");
        assert_eq!(error.code(), *code, "{name}");
    }
}

#[test]
fn documents_over_the_limit_are_refused_by_their_stated_length() {
    let length = crate::limits::MAX_WIRE_DOCUMENT + 1;
    let mut document = vec![0; length];
    document[..4].copy_from_slice(&i32::try_from(length).unwrap().to_le_bytes());
    assert_eq!(read(&msg(0, &[&[0], &document])), Err(WireError::LargeDocument(length)));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(op_code in prop::sample::select(vec![1, 2004, 2005, 2012, 2013]), payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = message(op_code, &payload);
        if let Ok(Message::Msg(msg)) = read(&bytes) {
            for sequence in &msg.sequences {
                sequence.iter().count();
            }
        }
    }

    /// A valid message with some bytes changed or cut off: read or refused, never a panic.
    #[test]
    fn damaged_messages_never_panic(at in 0_usize..80, byte in any::<u8>(), cut in 0_usize..80) {
        let mut bytes = msg(0, &[&[0], ONE, &sequence(14 + 14, &[b"documents\0", ONE, EMPTY].concat())]);
        let index = at % bytes.len();
        bytes[index] = byte;
        bytes.truncate(bytes.len().saturating_sub(cut).max(16));
        if let Some(Ok(header)) = Header::peek(&bytes) {
            let _ = parse(&header, &bytes);
        }
    }
}
