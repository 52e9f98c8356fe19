//! The integration tests of the binary, one file per subject.

mod generated;
mod serve;
mod tidy;
