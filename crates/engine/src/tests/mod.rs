//! The engine through its backend interface.

mod answers;
mod catalog;
mod harness;
mod model;
mod transactions;
mod writes;
