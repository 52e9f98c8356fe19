//! The engine through its backend interface.

mod answers;
mod catalog;
mod disk_space;
mod harness;
mod model;
mod opening;
mod reads;
mod store;
mod text;
mod transactions;
mod writes;
