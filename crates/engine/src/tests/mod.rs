//! The engine through its backend interface.

mod answers;
mod catalog;
mod harness;
mod model;
mod opening;
mod reads;
mod room;
mod store;
mod transactions;
mod writes;
