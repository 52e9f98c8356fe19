//! The error of a sum that has no room for its digits, in our own words.

pub use crate::rule::numbers::{CHILDREN, COUNTERS, Numbers, StateForm, count, exact_sum};
use document::{Code, Error};

const BEFORE_RULE: &str = "the sum of rule ";
const AFTER_RULE: &str = " would need more than 34 digits";

/// A derived write's error in our own words: in a pipeline a sum without room can only end as a failed conversion.
pub fn translated(error: Error) -> Error {
    let rule = || {
        let (_, rest) = error.message().split_once(BEFORE_RULE)?;
        rest.split_once(AFTER_RULE).map(|(rule, _)| rule)
    };
    match (error.code() == Code::ConversionFailure).then(rule).flatten() {
        Some(rule) => too_many_digits(rule),
        None => error,
    }
}

/// The error of a sum that leaves 34 digits: the write that would do it changes nothing.
pub fn too_many_digits(rule: &str) -> Error {
    Error::bad_value(format!("{BEFORE_RULE}{rule}{AFTER_RULE}")).with_hint(
        "Pleach keeps sums exactly, in 34 decimal digits; values that differ by more orders of magnitude cannot be added",
    )
}
