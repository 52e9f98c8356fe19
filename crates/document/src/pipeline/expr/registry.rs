//! The list of all expression operators.

use super::{ExprDef, refused, summary, variable};

/// All expression operators, sorted by name.
pub const EXPRESSIONS: &[&ExprDef] = &[
    &refused::ACCUMULATOR,
    &summary::AVG,
    &summary::FIRST_N,
    &refused::FUNCTION,
    &summary::LAST_N,
    &variable::LET,
    &variable::LITERAL,
    &summary::MAX,
    &summary::MAX_N,
    &summary::MERGE_OBJECTS,
    &refused::META,
    &summary::MIN,
    &summary::MIN_N,
    &summary::STD_DEV_POP,
    &summary::STD_DEV_SAMP,
    &summary::SUM,
    &refused::TO_HASHED_INDEX_KEY,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_sorted_unique_and_documented() {
        for pair in EXPRESSIONS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for def in EXPRESSIONS {
            assert!(def.name.starts_with('$'), "{}", def.name);
            assert!(def.help.ends_with('.') && def.help.len() > 10, "{} has no help", def.name);
        }
    }
}
