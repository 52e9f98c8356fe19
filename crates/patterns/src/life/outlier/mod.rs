//! Outlier arrays over time: [`convert`] divides the arrays that are there, [`arrange`] makes one host and its overflow right,
//! [`audit`] and [`repair`] compare and mend, [`way_back`] brings all items back, [`health`] is what `status` says.
//!
//! A document says by itself how its array is stored: without the flag the whole array is embedded. So documents are converted one by
//! one, in any order, while clients write, and there is no position that writers must know.

pub(crate) mod arrange;
pub(crate) mod audit;
pub(crate) mod convert;
pub(crate) mod health;
pub(crate) mod repair;
pub(crate) mod way_back;
