//! Writes to buckets: where new readings go, what is stored instead of a bucket whose readings change, and what is one statement
//! on one bucket.

mod open_buckets;
pub(crate) mod place;
mod rewrite;
mod shape;
mod single_statement;
mod slots;
mod statements;

pub use shape::BucketShape;
