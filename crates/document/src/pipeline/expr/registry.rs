//! The list of all expression operators.

use super::{ExprDef, refused, variable};

/// All expression operators, sorted by name.
pub const EXPRESSIONS: &[&ExprDef] = &[
    &refused::ACCUMULATOR,
    &refused::FUNCTION,
    &variable::LET,
    &variable::LITERAL,
    &refused::META,
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
