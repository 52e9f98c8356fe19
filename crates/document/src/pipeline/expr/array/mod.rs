//! Array expressions, by what they do: look into an array, build one, go through one, turn one into pairs or an object, sort one.

pub(super) mod access;
pub(super) mod build;
pub(super) mod iterate;
pub(super) mod pairs;
pub(super) mod sort;
