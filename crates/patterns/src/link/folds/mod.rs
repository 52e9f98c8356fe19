//! The folds: how linked source documents become the host's value, one file each, with what they share beside.

pub mod amount;
pub mod exact;
pub mod host_update;
pub mod one;
pub mod tally;
#[cfg(test)]
mod tally_tests;
