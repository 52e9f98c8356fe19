//! One file per verb of the command line.

pub(crate) mod serve;
