//! The backend against a MongoDB that plays a script: what a real server shows only when something fails.
//!
//! A test writes down the commands that the server is to receive and what it does with each ([`step`]), hands the script to a
//! server on loopback ([`mongo`]), calls the backend and asks whether the script was played to its end.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod bundles;
mod commits;
mod cursors;
mod deadlines;
mod fences;
mod mongo;
mod relay;
mod retries;
mod rights;
mod step;
mod topology;
mod transactions;
mod words;
mod writes;
