//! Why a pattern is no regular expression, in the words of the library that MongoDB 6.0 uses (PCRE 8).

use crate::code::Code;
use crate::error::Error;

pub(super) fn error(reason: &str) -> Error {
    Error::new(Code::Location(51091), format!("Regular expression is invalid: {reason}"))
}

/// PCRE2's error numbers are those of PCRE 8 plus 100 for what both can say; its words are new.
pub(super) fn reason(error: &pcre2::Error) -> String {
    match REASONS.iter().find(|(code, _)| *code == error.code()) {
        Some((_, reason)) => (*reason).to_owned(),
        None => error.to_string(),
    }
}

const REASONS: &[(i32, &str)] = &[
    (101, "\\ at end of pattern"),
    (102, "\\c at end of pattern"),
    (103, "unrecognized character follows \\"),
    (104, "numbers out of order in {} quantifier"),
    (105, "number too big in {} quantifier"),
    (106, "missing terminating ] for character class"),
    (107, "invalid escape sequence in character class"),
    (108, "range out of order in character class"),
    (109, "nothing to repeat"),
    (111, "unrecognized character after (? or (?-"),
    (112, "POSIX named classes are supported only within a class"),
    (113, "POSIX collating elements are not supported"),
    (114, "missing )"),
    (115, "reference to non-existent subpattern"),
    (118, "missing ) after comment"),
    (119, "parentheses are too deeply nested"),
    (120, "regular expression is too large"),
    (122, "unmatched parentheses"),
    (124, "malformed number or name after (?("),
    (125, "lookbehind assertion is not fixed length"),
    (127, "conditional group contains more than two branches"),
    (128, "assertion expected after (?( or (?(?C)"),
    (129, "(?R or (?[+-]digits must be followed by )"),
    (130, "unknown POSIX class name"),
    (134, "character value in \\x{} or \\o{} is too large"),
    (136, "\\C not allowed in lookbehind assertion"),
    (137, "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u"),
    (138, "number after (?C is > 255"),
    (139, "closing ) for (?C expected"),
    (141, "unrecognized character after (?P"),
    (142, "syntax error in subpattern name (missing terminator)"),
    (143, "two named subpatterns have the same name"),
    (144, "group name must start with a non-digit"),
    (146, "malformed \\P or \\p sequence"),
    (147, "unknown property name after \\P or \\p"),
    (148, "subpattern name is too long (maximum 32 characters)"),
    (149, "too many named subpatterns (maximum 10000)"),
    (150, "invalid range in character class"),
    (154, "DEFINE group contains more than one branch"),
    (155, "missing opening brace after \\o"),
    (157, "\\g is not followed by a braced, angle-bracketed, or quoted name/number or by a plain number"),
    (158, "(?R or (?[+-]digits must be followed by )"),
    (159, "an argument is not allowed for (*ACCEPT), (*FAIL), or (*COMMIT)"),
    (160, "(*VERB) not recognized or malformed"),
    (161, "number is too big"),
    (162, "subpattern name expected"),
    (164, "non-octal character in \\o{} (closing brace missing?)"),
    (165, "different names for subpatterns of the same number are not allowed"),
    (166, "(*MARK) must have an argument"),
    (167, "non-hex character in \\x{} (closing brace missing?)"),
    (168, "\\c must be followed by an ASCII character"),
    (169, "\\k is not followed by a braced, angle-bracketed, or quoted name"),
    (171, "\\N is not supported in a class"),
    (173, "disallowed Unicode code point (>= 0xd800 && <= 0xdfff)"),
    (176, "name is too long in (*MARK), (*PRUNE), (*SKIP), or (*THEN)"),
    (178, "digits missing in \\x{} or \\o{}"),
    (193, "PCRE does not support \\L, \\l, \\N{name}, \\U, or \\u"),
    (194, "unrecognized character after (? or (?-"),
];
