//! The engine through its backend interface.

mod harness;
mod writes;
