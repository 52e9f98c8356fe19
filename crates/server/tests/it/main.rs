//! The server over real sockets, on a backend that is a few vectors in memory.

mod bad_input;
mod client;
mod commands;
mod cursors;
mod memory;
mod sessions;
