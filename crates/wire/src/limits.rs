//! How large things may be. Every length that a peer states is compared with one of these before it is used.

/// The largest message, header included: `maxMessageSizeBytes`.
pub const MAX_MESSAGE: usize = 48_000_000;

/// The largest document that may be stored: `maxBsonObjectSize`.
pub const MAX_DOCUMENT: usize = 16 * 1024 * 1024;

/// The largest document on the wire: a stored one and room for the command around it.
pub const MAX_WIRE_DOCUMENT: usize = MAX_DOCUMENT + 16 * 1024;

/// How many statements one write command may hold: `maxWriteBatchSize`.
pub const MAX_BATCH: usize = 100_000;
