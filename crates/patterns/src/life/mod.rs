//! The life of a rule: catalog, states, seeding, outbox, audit, repair, drop, status.

pub mod names;
pub mod states;

pub use states::State;
