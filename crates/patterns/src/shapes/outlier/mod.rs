//! The outlier array: which items are embedded, what a filter on the array asks of the overflow, and what an update says about the
//! array. Pure: `execute/outlier` reads and writes by it.

pub(crate) mod array_update;
pub(crate) mod filter;
pub(crate) mod guarded;
pub(crate) mod items;
pub(crate) mod registered;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod stored;
