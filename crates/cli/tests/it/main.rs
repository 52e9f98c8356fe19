//! The integration tests of the binary, one file per subject.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod adopting;
mod audits;
mod behind;
mod both_doors;
mod bucket_shape;
mod buckets;
mod case_study;
mod causal;
mod check;
mod columns;
mod databases;
mod doors;
mod emptied;
mod errors;
mod expiry;
mod explained;
mod gathered;
mod generated;
mod hex;
mod json;
mod match_indexes;
mod mongod;
mod once;
mod own_collections;
mod planned;
mod readers;
mod reading;
mod reads;
mod restoring;
mod rights;
mod rules;
mod schema;
mod serve;
mod serving;
mod several;
mod several_buckets;
mod shop;
mod sinks;
mod surface;
mod tidy;
mod timeseries;
mod unfollowed;
mod uninstall;
mod upstream;
