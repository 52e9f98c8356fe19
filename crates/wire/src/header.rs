//! The 16 bytes that begin every message: length, request id, the request answered, op code.

use crate::error::WireError;
use crate::limits::MAX_MESSAGE;

/// What kind of message follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCode {
    Reply,
    /// Legacy; only for the handshake.
    Query,
    /// Legacy; answered with an error.
    GetMore,
    Compressed,
    Msg,
}

impl OpCode {
    pub const fn number(self) -> i32 {
        match self {
            OpCode::Reply => 1,
            OpCode::Query => 2004,
            OpCode::GetMore => 2005,
            OpCode::Compressed => 2012,
            OpCode::Msg => 2013,
        }
    }

    pub const fn from_number(number: i32) -> Option<OpCode> {
        Some(match number {
            1 => OpCode::Reply,
            2004 => OpCode::Query,
            2005 => OpCode::GetMore,
            2012 => OpCode::Compressed,
            2013 => OpCode::Msg,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Of the whole message, header included; within the limits.
    pub length: usize,
    pub request_id: i32,
    pub response_to: i32,
    pub op_code: OpCode,
}

impl Header {
    pub const SIZE: usize = 16;

    /// Reads and checks a header: what it returns can be relied on.
    pub fn parse(bytes: &[u8; Header::SIZE]) -> Result<Header, WireError> {
        let [l0, l1, l2, l3, q0, q1, q2, q3, r0, r1, r2, r3, o0, o1, o2, o3] = *bytes;
        let stated = i32::from_le_bytes([l0, l1, l2, l3]);
        let length = usize::try_from(stated)
            .ok()
            .filter(|length| (Header::SIZE..=MAX_MESSAGE).contains(length))
            .ok_or(WireError::Length(stated))?;
        let op_code = i32::from_le_bytes([o0, o1, o2, o3]);
        Ok(Header {
            length,
            request_id: i32::from_le_bytes([q0, q1, q2, q3]),
            response_to: i32::from_le_bytes([r0, r1, r2, r3]),
            op_code: OpCode::from_number(op_code).ok_or(WireError::OpCode(op_code))?,
        })
    }

    /// The header at the start of `buffer`, once that many bytes are there.
    pub fn peek(buffer: &[u8]) -> Option<Result<Header, WireError>> {
        buffer.first_chunk().map(Header::parse)
    }
}
