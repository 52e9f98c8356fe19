//! The MongoDB wire protocol: bytes to messages and back, in both directions.
//!
//! Pure functions over byte slices: [`header`] (the first 16 bytes), [`message`] (what follows), [`encode`] (writing into a
//! reusable buffer), [`limits`]. Nothing here allocates by a length that a peer stated, reads a socket or knows a command;
//! BSON is only cut into documents by its lengths, what they hold is checked by whoever reads it.

pub mod encode;
pub mod error;
pub mod header;
pub mod limits;
pub mod message;
pub mod scram;

pub use error::WireError;
pub use header::{Header, OpCode};
pub use message::{Message, Msg, Query, Reply, Sequence};

#[cfg(test)]
mod tests;
