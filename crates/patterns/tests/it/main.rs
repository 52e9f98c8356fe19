//! The layer on the embedded store: every write path, each rule of SEMANTICS part A and B that it keeps.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

extern crate pleach_patterns as patterns;

mod buckets;
mod bulk;
mod copies;
mod explain;
mod harness;
mod hot;
mod inquiries;
mod keys;
mod life;
mod owned;
mod reading;
mod retries;
mod tallies;
mod transactions;
mod whole;
