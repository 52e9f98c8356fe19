//! What is counted about commands: their shapes, and what it took to answer them.
//!
//! A shape is a command without its values: which collection, which paths are filtered and sorted by, which stages with which targets.
//! Servers count by [`fingerprint`], which allocates nothing; [`describe`] says the same shape as a document, once for each.

mod describe;
mod examined;
mod fingerprint;
mod walk;

pub use describe::describe;
pub use examined::{Examined, PlanSummary};
pub use fingerprint::fingerprint;
pub use walk::{Command, Statement};

#[cfg(test)]
mod tests;
