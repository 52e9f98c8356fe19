//! What can be wrong with the bytes of a message.

use crate::limits::{MAX_MESSAGE, MAX_WIRE_DOCUMENT};

/// A message that cannot be read. [`WireError::code`] tells whether the peer gets an answer or the connection ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("message length {0} is not between 16 and {MAX_MESSAGE}")]
    Length(i32),
    #[error("unknown or unsupported op code {0}")]
    OpCode(i32),
    #[error("the message ends before its fields do")]
    Torn,
    #[error("message has unknown required flags: {0:#x}")]
    Flags(u32),
    #[error("message checksum does not match its bytes")]
    Checksum,
    #[error("OP_COMPRESSED was not negotiated")]
    Compressed,
    #[error("OP_MSG messages must have a body")]
    NoBody,
    #[error("Multiple body sections in message")]
    TwoBodies,
    #[error("Unknown section kind {0}")]
    Section(u8),
    #[error("Duplicate document sequence: {0}")]
    DuplicateSequence(String),
    #[error("a document sequence ends before its fields do")]
    TornSequence,
    #[error("Incorrect BSON length in element with field name '?' in object with unknown _id")]
    Document,
    #[error("BSONObj size: {0} ({0:#X}) is invalid. Size must be between 0 and {MAX_WIRE_DOCUMENT}(16MB)")]
    LargeDocument(usize),
}

impl WireError {
    /// The error code to answer with. Nothing: the stream itself cannot be trusted any more, close it (as mongod does).
    pub fn code(&self) -> Option<i32> {
        match self {
            WireError::Length(_)
            | WireError::OpCode(_)
            | WireError::Torn
            | WireError::Flags(_)
            | WireError::Checksum
            | WireError::Compressed => None,
            WireError::NoBody => Some(40587),
            WireError::TwoBodies => Some(40430),
            WireError::Section(_) => Some(40432),
            WireError::DuplicateSequence(_) => Some(40431),
            WireError::TornSequence => Some(15),
            WireError::Document => Some(22),
            WireError::LargeDocument(_) => Some(10334),
        }
    }
}
