//! One file per verb of the command line.

pub(crate) mod check;
pub(crate) mod patterns;
pub(crate) mod serve;
