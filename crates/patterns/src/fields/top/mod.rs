//! The first so many children by an order, kept in their parent: a window.
//!
//! [`items`] is what a window shows of a child, [`window`] what changed children make of a window that is there.

mod items;
mod window;
#[cfg(test)]
mod window_tests;

pub use items::ItemForm;
