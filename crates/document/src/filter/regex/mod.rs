//! `$regex`, `$options` and regular expression values.
//!
//! Patterns are PCRE in UTF mode, classes ASCII only (`\w` is no `é`), as in MongoDB. A pattern that is plain text, or plain
//! text after `^`, never reaches PCRE. A match that goes on too long is an error, not a silent "no".

mod dialect;
mod find;
mod invalid;
mod literal;

pub use find::{Finder, RegexMatch};

use super::parse::{FilterOperator, FilterParser};
use super::{FilterDef, FilterPlace, LeafTest, Test};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::{DocWriter, Text};
use crate::value::Value;
use literal::Literal;
use pcre2::bytes::RegexBuilder;
use std::sync::{Arc, OnceLock};

pub(super) const REGEX: FilterDef = FilterDef {
    name: "$regex",
    help: "Matches strings in which a regular expression is found.",
    parse: FilterPlace::Field(parse_regex),
};

pub(super) const OPTIONS: FilterDef = FilterDef {
    name: "$options",
    help: "The options of a $regex beside it: i, m, s, x, u.",
    parse: FilterPlace::Field(|operator, _| match operator.siblings.contains("$regex") {
        true => Ok(None),
        false => Err(Error::bad_value("$options needs a $regex")),
    }),
};

fn parse_regex(operator: &FilterOperator<'_>, _: &mut FilterParser<'_>) -> Result<Option<Test>> {
    // `$regex` and `$options` are read together, in the order they stand; so a repeated one replaces the former.
    let mut pattern = None;
    let mut options: Option<Text<'_>> = None;
    let both = |code| Err(Error::new(Code::Location(code), "options set in both $regex and $options"));
    for (name, value) in operator.siblings.iter() {
        match (name.as_str(), value) {
            ("$regex", Value::String(text)) => pattern = Some(text),
            ("$regex", Value::Regex { pattern: text, options: own }) => {
                pattern = Some(text);
                if !own.as_bytes().is_empty() {
                    if options.is_some_and(|options| !options.as_bytes().is_empty()) {
                        return both(51074);
                    }
                    options = Some(own);
                }
            }
            ("$regex", _) => return Err(Error::bad_value("$regex has to be a string")),
            ("$options", Value::String(text)) => {
                if options.is_some_and(|options| !options.as_bytes().is_empty()) {
                    return both(51075);
                }
                options = Some(text);
            }
            ("$options", _) => return Err(Error::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    let options = options.as_ref().map(Text::as_str).unwrap_or_default();
    let regex = Regex::compile(pattern.as_ref().map(Text::as_str).unwrap_or_default(), options)?;
    Ok(Some(Test::Leaf(Arc::new(regex))))
}

/// A regular expression standing as a value: `{ a: /^x/ }`.
pub(super) fn from_value(pattern: &Text<'_>, options: &Text<'_>) -> Result<Arc<dyn LeafTest>> {
    Ok(Arc::new(Regex::compile(pattern.as_str(), options.as_str())?))
}

/// A compiled regular expression.
#[derive(Debug)]
pub struct Regex {
    pattern: String,
    options: String,
    engine: Engine,
    prefix: Option<(String, bool)>,
}

#[derive(Debug)]
enum Engine {
    /// No pattern, but text to look for; after `^` only at the beginning.
    Literal(Literal),
    Compiled {
        fast: pcre2::bytes::Regex,
        /// Without the just-in-time compiler and the limit of its stack; made when first needed.
        patient: OnceLock<pcre2::bytes::Regex>,
    },
}

/// The longest pattern PCRE takes in MongoDB's build is counted in compiled bytes; plain text takes two per byte.
const MAX_PATTERN: usize = 32_761;
/// How many steps one match may take: a bad pattern then fails within milliseconds.
const MATCH_LIMIT: &str = "(*LIMIT_MATCH=1000000)";
const JIT_STACK: usize = 1 << 20;
/// PCRE2_ERROR_JIT_STACKLIMIT.
const STACK_LIMIT: i32 = -46;

impl Regex {
    pub fn compile(pattern: &str, options: &str) -> Result<Regex> {
        check(pattern, options)?;
        let engine = match Literal::of(pattern, options) {
            Some(literal) => Engine::Literal(literal),
            None => Engine::Compiled { fast: build(pattern, options, true)?, patient: OnceLock::new() },
        };
        let prefix = literal::prefix(pattern, options);
        Ok(Regex { pattern: pattern.to_owned(), options: options.to_owned(), engine, prefix })
    }

    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    pub fn is_match(&self, text: &[u8]) -> Result<bool> {
        match &self.engine {
            Engine::Literal(literal) => Ok(literal.is_in(text)),
            Engine::Compiled { fast, patient } => match fast.is_match(text) {
                Err(error) if error.code() == STACK_LIMIT => {
                    let patient = match patient.get() {
                        Some(patient) => patient,
                        None => {
                            let made = build(&self.pattern, &self.options, false)?;
                            patient.get_or_init(|| made)
                        }
                    };
                    patient.is_match(text).map_err(|error| runaway(&error))
                }
                result => result.map_err(|error| runaway(&error)),
            },
        }
    }
}

/// What can be said before PCRE looks at it.
fn check(pattern: &str, options: &str) -> Result<()> {
    if pattern.contains('\0') {
        return Err(Error::bad_value("Regular expression cannot contain an embedded null byte"));
    }
    if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
        return Err(Error::new(Code::Location(51108), format!(" invalid flag in regex options: {unknown}")));
    }
    if pattern.len() > MAX_PATTERN {
        return Err(invalid::error("regular expression is too large"));
    }
    Ok(())
}

fn build(pattern: &str, options: &str, jit: bool) -> Result<pcre2::bytes::Regex> {
    let build = |pattern: &str, jit| {
        builder(options, jit).build(pattern).map_err(|error| invalid::error(&invalid::reason(&error)))
    };
    let pattern = dialect::translate(pattern);
    // MongoDB 6.0 compiles each pattern in parentheses too; where a comment or a quotation swallows the closing one, the
    // pattern is refused.
    if options.contains('x') || pattern.contains("\\Q") {
        build(&format!("(?:{pattern})"), false)?;
    }
    build(&format!("{MATCH_LIMIT}{pattern}"), jit)
}

fn builder(options: &str, jit: bool) -> RegexBuilder {
    let mut builder = RegexBuilder::new();
    builder
        .utf(true)
        .caseless(options.contains('i'))
        .multi_line(options.contains('m'))
        .dotall(options.contains('s'))
        .extended(options.contains('x'));
    if jit {
        builder.jit_if_available(true).max_jit_stack_size(Some(JIT_STACK));
    }
    builder
}

fn runaway(error: &pcre2::Error) -> Error {
    Error::new(
        Code::Location(51156),
        format!("Error occurred while executing the regular expression. Result code: {}", error.code()),
    )
    .with_hint("the pattern backtracks too much on this text; make its repetitions less ambiguous")
}

impl LeafTest for Regex {
    fn matches(&self, value: &Value<'_>) -> Result<bool> {
        match value {
            Value::String(text) | Value::Symbol(text) => self.is_match(text.as_bytes()),
            Value::Regex { pattern, options } => {
                Ok(pattern.as_bytes() == self.pattern.as_bytes() && options.as_bytes() == self.options.as_bytes())
            }
            _ => Ok(false),
        }
    }

    fn prefix(&self) -> Option<(&str, bool)> {
        self.prefix.as_ref().map(|(prefix, whole)| (prefix.as_str(), *whole))
    }

    fn rank(&self) -> u8 {
        10
    }

    fn write(&self, query: &mut DocWriter) {
        query.append("$regex", &Value::from(self.pattern.as_str()));
        if !self.options.is_empty() {
            query.append("$options", &Value::from(self.options.as_str()));
        }
    }
}
