//! The engine through its backend interface.

mod catalog;
mod harness;
mod writes;
