//! `pleach lab`: candidate layouts measured on a sample of the user's own data, before anything is changed.
//!
//! [`plan`] says what belongs together; [`sample`] takes units of it, stratified by size, and loads them into scratch stores
//! ([`store`]), in which each candidate is built by the verb `apply`; [`measure`] says what it takes, [`estimate`] what the whole
//! would take and how sure that is; [`rounds`] how fast it is with a [`mix`], [`bottleneck`] what it waits for. Whoever uses it opens the stores and takes them away.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people: 53 bits are more than enough"
)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")
)]

pub mod bottleneck;
pub mod estimate;
pub mod keys;
pub mod ledger;
pub mod line;
pub mod measure;
pub mod meter;
pub mod mix;
pub mod outcome;
pub mod page;
pub mod plan;
pub mod quantile;
pub mod random;
pub mod rounds;
pub mod sample;
pub mod source;
pub mod store;
pub mod strata;
pub mod traffic;
