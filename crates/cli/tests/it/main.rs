//! The integration tests of the binary, one file per subject.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod check;
mod generated;
mod rules;
mod schema;
mod serve;
mod tidy;
