//! From where on something is a symptom. One place, so that they can be argued about together.

/// Arrays of so many items at the 95th percentile.
pub const ARRAY_P95: u64 = 100;
/// Or of so many in any document.
pub const ARRAY_MAX: u64 = 1_000;
/// The most bytes of a document.
pub const DOCUMENT_BYTES: u64 = 16 << 20;
/// A document that reaches them within so many days is urgent.
pub const DAYS_TO_FULL: f64 = 30.0;
/// The newest documents' arrays are so much shorter than those of the oldest: they grow with age.
pub const GROWTH: f64 = 2.0;

/// The longest array against the 95th percentile.
pub const OUTLIER_LENGTH: f64 = 10.0;
/// The largest document against the average.
pub const OUTLIER_SIZE: f64 = 100.0;
/// So few documents are outliers; more are not.
pub const OUTLIER_SHARE: f64 = 0.01;

/// Readings of one series and day.
pub const READINGS_A_DAY: f64 = 100.0;
/// Readings of one series and quarter that can be added up.
pub const SLOTS_A_QUARTER: f64 = 10.0;
/// The median of a reading.
pub const READING_BYTES: u64 = 1_024;
/// A bucket should be so full at least.
pub const BUCKET_FILL: f64 = 0.2;

/// The fields of two kinds have less than this in common.
pub const KINDS_OVERLAP: f64 = 0.5;

/// The second shape of documents is of so many at least.
pub const SECOND_SHAPE: f64 = 0.01;
/// One path has two types in so many documents.
pub const SECOND_TYPE: f64 = 0.001;

/// What is kept by hand holds in more than this share of the sampled pairs.
pub const BY_HAND: f64 = 0.5;
/// Containment and equality count if they are so much more frequent than by chance.
pub const BEYOND_CHANCE: f64 = 5.0;
/// More wrong values than this share are urgent.
pub const URGENT_WRONG: f64 = 0.1;

/// `$lookup` or second reads in so many of the reads of a collection.
pub const SECOND_READ_SHARE: f64 = 0.2;
/// Or so many an hour of one shape.
pub const SECOND_READS_AN_HOUR: f64 = 100.0;
/// So many of a collection's reads at least were followed by another: fewer are chance.
pub const SECOND_READ_RUNS: u64 = 10;
/// A copy of so many fields is one of few.
pub const FEW_FIELDS: usize = 8;
/// The source may change once in so many reads of the copies.
pub const READS_PER_CHANGE: f64 = 10.0;
/// Copied fields of more bytes, or of more of the host, are no small copy.
pub const COPY_BYTES: u64 = 1_024;
pub const COPY_SHARE: f64 = 0.25;

/// Runs of one aggregation.
pub const AGGREGATION_RUNS: u64 = 100;
/// Rows returned of those examined.
pub const AGGREGATION_RETURNED: f64 = 0.01;

/// Figures are extrapolated to an hour from so many seconds.
pub const OBSERVED_SECONDS: f64 = 600.0;

/// Tenfold is `act`.
pub const ACT: f64 = 10.0;
