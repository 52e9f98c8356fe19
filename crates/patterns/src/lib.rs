//! The product: declarations in, plans out, data kept true.
//!
//! The life of a declaration: [`declare`] parses and checks it; [`kinds`] lower each block to [`rule::Rule`]s, which are
//! data: mostly links ([`rule::Link`]: *where host.local = source.foreign, filter, fold, and keep the result in a field of
//! the host*). [`layer`] wraps a backend: a write to a namespace that a rule reads or writes becomes a plan of steps
//! ([`plan`]), which [`run`] executes in one transaction. [`life`] brings rules on and off, audits and repairs.

pub mod declare;
pub mod gate;
pub mod kinds;
pub mod layer;
mod lease;
pub mod life;
pub mod link;
pub mod mql;
pub mod plan;
pub mod print;
mod retry;
pub mod rule;
pub mod rules;
mod run;
pub mod shape;

pub use layer::Patterned;
