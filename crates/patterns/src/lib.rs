//! The product: declarations in, plans out, data kept true.
//!
//! The life of a declaration: [`declare`] parses and checks it; its kinds lower each block to [`rule::Rule`]s, which are data:
//! mostly a field ([`rule::Field`]) of documents that a link finds ([`rule::Link`]: *where host.local = source.foreign and the
//! filter holds*). [`fields`], [`shapes`] and [`constraints`] say what a rule means and send nothing. [`active`] is a snapshot of the rules in
//! force. [`layer`] wraps a backend: a write to a namespace that a rule reads or writes becomes a plan of steps, which
//! [`execute`] runs in one transaction. [`life`] brings rules on and off, audits and repairs. [`front`] is what clients meet.

pub mod active;
pub mod constraints;
pub mod declare;
pub mod execute;
pub mod extend;
pub mod fields;
pub mod front;
pub mod languages;
pub mod layer;
pub mod life;
pub mod mql;
pub mod print;
pub mod propose;
pub mod rule;
pub mod shapes;

pub use declare::kinds;
pub use execute::{gate, plan};
pub use front::ClientFront;
pub use layer::Patterned;
