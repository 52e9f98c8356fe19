//! Collections that are brought into buckets, into other buckets and back.

mod busy;
mod later;
mod moved;
mod restored;
mod slots;
mod stacked;
mod station;
mod stopped;
mod timeseries;
