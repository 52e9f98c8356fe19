//! Comparison with a real MongoDB: a small client, compat scripts, recorded answers, and what counts as equal.

pub mod client;
pub mod compare;
pub mod fuzz;
pub mod interleave;
pub mod json;
pub mod normal;
pub mod order;
pub mod random;
pub mod real;
pub mod record;
pub mod run;
pub mod script;
pub mod suite;
pub mod values;
