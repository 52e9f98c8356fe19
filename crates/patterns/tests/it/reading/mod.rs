//! Reads of collections that are stored in buckets: the same answers as from a plain collection with the same documents.

mod explained;
mod figures;
mod joined;
mod questions;
mod random;
mod refused;
mod samples;
mod shop;
mod sides;
