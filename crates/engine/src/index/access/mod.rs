//! Choosing how to find the documents of a query: which index, which part of it, in which direction, and what is left to
//! test.
//!
//! Reading order: [`interval`] and [`bounds`] (what a condition allows a field to be), [`predicate`] (the conditions of a
//! filter), [`candidate`] (what one index can do), [`ranges`] (the bytes to read), [`plan`], [`text`] (searches by `$text`),
//! [`choose`].

pub mod bounds;
pub mod candidate;
pub mod choose;
mod hint;
pub mod implies;
pub mod interval;
pub mod plan;
pub mod predicate;
pub mod ranges;
mod shape;
#[cfg(test)]
mod tests;
pub mod text;

pub use choose::{Chosen, Query, choose};
pub use plan::{Plan, Source};
pub use shape::{PlanCache, Shape};
