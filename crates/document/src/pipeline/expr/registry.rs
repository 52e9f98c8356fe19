//! The list of all expression operators.

use super::{
    ExprDef, arithmetic, array, boolean, comparison, condition, mathematics, misc, object, refused, set, summary,
    trigonometry, variable,
};

/// All expression operators, sorted by name.
pub const EXPRESSIONS: &[&ExprDef] = &[
    &mathematics::ABS,
    &trigonometry::ACOS,
    &trigonometry::ACOSH,
    &arithmetic::ADD,
    &set::ALL_ELEMENTS_TRUE,
    &boolean::AND,
    &set::ANY_ELEMENT_TRUE,
    &array::access::ARRAY_ELEM_AT,
    &array::pairs::ARRAY_TO_OBJECT,
    &trigonometry::ASIN,
    &trigonometry::ASINH,
    &trigonometry::ATAN,
    &trigonometry::ATAN2,
    &trigonometry::ATANH,
    &summary::AVG,
    &misc::BINARY_SIZE,
    &object::BSON_SIZE,
    &mathematics::CEIL,
    &comparison::CMP,
    &array::build::CONCAT_ARRAYS,
    &condition::COND,
    &variable::CONST,
    &trigonometry::COS,
    &trigonometry::COSH,
    &trigonometry::DEGREES_TO_RADIANS,
    &arithmetic::DIVIDE,
    &comparison::EQ,
    &mathematics::EXP,
    &array::iterate::FILTER,
    &array::access::FIRST,
    &summary::FIRST_N,
    &mathematics::FLOOR,
    &refused::FUNCTION,
    &object::GET_FIELD,
    &comparison::GT,
    &comparison::GTE,
    &condition::IF_NULL,
    &array::access::IN,
    &array::access::INDEX_OF_ARRAY,
    &array::access::IS_ARRAY,
    &array::access::LAST,
    &summary::LAST_N,
    &variable::LET,
    &variable::LITERAL,
    &mathematics::LN,
    &mathematics::LOG,
    &mathematics::LOG10,
    &comparison::LT,
    &comparison::LTE,
    &array::iterate::MAP,
    &summary::MAX,
    &summary::MAX_N,
    &summary::MERGE_OBJECTS,
    &misc::META,
    &summary::MIN,
    &summary::MIN_N,
    &arithmetic::MOD,
    &arithmetic::MULTIPLY,
    &comparison::NE,
    &boolean::NOT,
    &array::pairs::OBJECT_TO_ARRAY,
    &boolean::OR,
    &mathematics::POW,
    &trigonometry::RADIANS_TO_DEGREES,
    &misc::RAND,
    &array::build::RANGE,
    &array::iterate::REDUCE,
    &array::build::REVERSE_ARRAY,
    &mathematics::ROUND,
    &set::SET_DIFFERENCE,
    &set::SET_EQUALS,
    &object::SET_FIELD,
    &set::SET_INTERSECTION,
    &set::SET_IS_SUBSET,
    &set::SET_UNION,
    &trigonometry::SIN,
    &trigonometry::SINH,
    &array::access::SIZE,
    &array::build::SLICE,
    &array::sort::SORT_ARRAY,
    &mathematics::SQRT,
    &summary::STD_DEV_POP,
    &summary::STD_DEV_SAMP,
    &arithmetic::SUBTRACT,
    &summary::SUM,
    &condition::SWITCH,
    &trigonometry::TAN,
    &trigonometry::TANH,
    &refused::TO_HASHED_INDEX_KEY,
    &mathematics::TRUNC,
    &misc::TS_INCREMENT,
    &misc::TS_SECOND,
    &object::UNSET_FIELD,
    &array::pairs::ZIP,
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
