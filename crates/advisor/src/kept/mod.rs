//! What applications keep by hand: whether values equal what they are made of, and how many do not.
//!
//! [`row`] makes documents comparable, [`children`] reads the children of parents within bounds, [`copies`], [`numbers`] and [`windows`]
//! compare, and send nothing. What differs is looked at again before it is called wrong ([`verdict`]): it may have changed in between.

pub mod children;
pub mod copies;
pub mod numbers;
pub mod references;
pub mod row;
pub mod verdict;
pub mod windows;
