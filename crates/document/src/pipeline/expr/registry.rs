//! The list of all expression operators.

use super::{ExprDef, arithmetic, boolean, comparison, condition, mathematics, refused, summary, variable};

/// All expression operators, sorted by name.
pub const EXPRESSIONS: &[&ExprDef] = &[
    &mathematics::ABS,
    &refused::ACCUMULATOR,
    &arithmetic::ADD,
    &boolean::AND,
    &summary::AVG,
    &mathematics::CEIL,
    &comparison::CMP,
    &condition::COND,
    &variable::CONST,
    &arithmetic::DIVIDE,
    &comparison::EQ,
    &mathematics::EXP,
    &summary::FIRST_N,
    &mathematics::FLOOR,
    &refused::FUNCTION,
    &comparison::GT,
    &comparison::GTE,
    &condition::IF_NULL,
    &summary::LAST_N,
    &variable::LET,
    &variable::LITERAL,
    &mathematics::LN,
    &mathematics::LOG,
    &mathematics::LOG10,
    &comparison::LT,
    &comparison::LTE,
    &summary::MAX,
    &summary::MAX_N,
    &summary::MERGE_OBJECTS,
    &refused::META,
    &summary::MIN,
    &summary::MIN_N,
    &arithmetic::MOD,
    &arithmetic::MULTIPLY,
    &comparison::NE,
    &boolean::NOT,
    &boolean::OR,
    &mathematics::POW,
    &mathematics::ROUND,
    &mathematics::SQRT,
    &summary::STD_DEV_POP,
    &summary::STD_DEV_SAMP,
    &arithmetic::SUBTRACT,
    &summary::SUM,
    &condition::SWITCH,
    &refused::TO_HASHED_INDEX_KEY,
    &mathematics::TRUNC,
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
