//! The integration tests of the binary, one file per subject.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod bucket_shape;
mod buckets;
mod case_study;
mod causal;
mod check;
mod expiry;
mod gathered;
mod generated;
mod mongod;
mod planned;
mod readers;
mod reading;
mod reads;
mod rules;
mod schema;
mod serve;
mod serving;
mod several;
mod several_buckets;
mod shop;
mod sinks;
mod tidy;
mod timeseries;
mod upstream;
