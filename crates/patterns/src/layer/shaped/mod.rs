//! Collections that are stored in another form than clients see: their writes, translated, and what clients cannot ask of them.

pub(super) mod refused;
pub(crate) mod write;
