//! The server over real sockets, on a backend that is a few vectors in memory.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests are tests")]

mod bad_input;
mod client;
mod commands;
mod cursors;
mod memory;
mod sessions;
