//! `$regexMatch`, `$regexFind`, `$regexFindAll`. A constant pattern is compiled once, when parsing.

use super::form::{Arguments, fail};
use super::{Expr, ExprDef, Form, Names, Operator, Scope};
use crate::error::Result;
use crate::filter::{Finder, Regex, RegexMatch};
use crate::raw::{ArrayWriter, DocWriter};
use crate::value::Value;
use std::sync::Arc;

pub(super) const REGEX_FIND: ExprDef = ExprDef {
    name: "$regexFind",
    help: "The first match of a regular expression in a string, with its place and captures.",
    form: Form::Special(|argument, names| parse("$regexFind", Answer::First, argument, names)),
};
pub(super) const REGEX_FIND_ALL: ExprDef = ExprDef {
    name: "$regexFindAll",
    help: "All matches of a regular expression in a string, with their places and captures.",
    form: Form::Special(|argument, names| parse("$regexFindAll", Answer::All, argument, names)),
};
pub(super) const REGEX_MATCH: ExprDef = ExprDef {
    name: "$regexMatch",
    help: "Whether a string matches a regular expression.",
    form: Form::Special(|argument, names| parse("$regexMatch", Answer::Whether, argument, names)),
};

#[derive(Clone, Copy, Debug)]
enum Answer {
    Whether,
    First,
    All,
}

#[derive(Debug)]
struct Search {
    name: &'static str,
    answer: Answer,
    input: Expr,
    regex: Expr,
    options: Option<Expr>,
    /// The pattern, if it and its options are constant.
    compiled: Option<Option<Arc<Compiled>>>,
}

/// What the answer needs of the pattern: a test, or a search.
#[derive(Debug)]
enum Compiled {
    Test(Regex),
    Search(Finder),
}

fn parse(name: &'static str, answer: Answer, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let no_object = (51103, "expects an object of named arguments but found: ");
    let arguments = Arguments::named(name, argument, no_object, &["input", "regex", "options"], 31024)?;
    let mut required = |argument: &str, code| {
        arguments.required_expr(argument, code, format_args!("{name} requires '{argument}' parameter"), names)
    };
    let (input, regex) = (required("input", 31022)?, required("regex", 31023)?);
    let options = arguments.expr("options", names)?;
    let constant = regex.as_const().is_some() && options.as_ref().is_none_or(|options| options.as_const().is_some());
    let compiled = match constant {
        true => {
            let options = options.as_ref().and_then(Expr::as_const).unwrap_or(&Value::Missing);
            match compile(name, answer, regex.as_const().unwrap_or(&Value::Missing), options) {
                Ok(compiled) => Some(compiled),
                // Else it fails on each document.
                Err(error) => match !names.is_unfolded() && names.fold_error(error) {
                    true => return Ok(Expr::Const(Value::Null)),
                    false => None,
                },
            }
        }
        false => None,
    };
    Ok(Expr::Custom(Arc::new(Search { name, answer, input, regex, options, compiled })))
}

/// Returns `None` for a pattern that is null.
fn compile(name: &str, answer: Answer, regex: &Value<'_>, options: &Value<'_>) -> Result<Option<Arc<Compiled>>> {
    let (pattern, own) = match regex {
        Value::String(pattern) => (Some(pattern), None),
        Value::Regex { pattern, options } => {
            (Some(pattern), Some(options).filter(|options| !options.as_str().is_empty()))
        }
        value if value.is_nullish() => (None, None),
        _ => return fail(51105, format!("{name} needs 'regex' to be of type string or regex")),
    };
    let options = match options {
        Value::String(options) => Some(options),
        value if value.is_nullish() => None,
        _ => return fail(51106, format!("{name} needs 'options' to be of type string")),
    };
    if own.is_some() && options.is_some() {
        return fail(51107, format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields"));
    }
    let Some(pattern) = pattern else {
        // The options must be good all the same.
        return match options.map(|options| Regex::compile("", options.as_str())) {
            Some(Err(error)) => Err(error.context(name)),
            _ => Ok(None),
        };
    };
    if pattern.as_str().contains('\0') {
        return fail(51109, format!("{name}: regular expression cannot contain an embedded null byte"));
    }
    let options = own.or(options).map(|options| options.as_str().to_owned()).unwrap_or_default();
    let compiled = match answer {
        Answer::Whether => Regex::compile(pattern.as_str(), &options).map(Compiled::Test),
        Answer::First | Answer::All => Finder::compile(pattern.as_str(), &options).map(Compiled::Search),
    };
    match compiled {
        Ok(compiled) => Ok(Some(Arc::new(compiled))),
        Err(error) if error.code().number() == 51108 => Err(error.context(name)),
        Err(error) => {
            let reason = error.message().rsplit_once(": ").map_or(error.message(), |(_, reason)| reason);
            fail(51111, format!("Invalid Regex in {name}: {reason}"))
        }
    }
}

impl Operator for Search {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(scope)?;
        let text = match &input {
            Value::String(text) => Some(text.as_str()),
            value if value.is_nullish() => None,
            _ => return fail(51104, format!("{} needs 'input' to be of type string", self.name)),
        };
        let regex = match &self.compiled {
            Some(compiled) => compiled.clone(),
            None => {
                let regex = self.regex.eval(scope)?;
                let options = self.options.as_ref().map_or(Ok(Value::Missing), |options| options.eval(scope))?;
                compile(self.name, self.answer, &regex, &options)?
            }
        };
        let (Some(regex), Some(text)) = (regex, text) else {
            return Ok(match self.answer {
                Answer::Whether => Value::Bool(false),
                Answer::First => Value::Null,
                Answer::All => Value::Array(crate::raw::Array::empty()),
            });
        };
        match (&*regex, self.answer) {
            (Compiled::Test(regex), _) => Ok(Value::Bool(regex.is_match(text.as_bytes())?)),
            (Compiled::Search(finder), Answer::All) => all(finder, text, scope),
            (Compiled::Search(finder), _) => Ok(match finder.find_at(text, 0)? {
                Some(found) => report(&found, text, &mut Place::default()),
                None => Value::Null,
            }),
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.regex);
        self.options.iter().for_each(visit);
    }
}

fn all<'a>(finder: &Finder, text: &str, scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut matches = ArrayWriter::new();
    let (mut at, mut place) = (0, Place::default());
    while let Some(found) = finder.find_at(text, at)? {
        matches.push(&report(&found, text, &mut place));
        scope.check_size(matches.len())?;
        // An empty match moves on by one character, or it would be found for ever.
        at = match found.end > found.start {
            true => found.end,
            false => found.end + text.get(found.end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8),
        };
        if at >= text.len() {
            break;
        }
    }
    Ok(Value::Array(matches.finish()))
}

/// Counts code points up to a byte offset, going on from where it was.
#[derive(Default)]
struct Place {
    byte: usize,
    code_points: usize,
}

impl Place {
    fn at(&mut self, text: &str, byte: usize) -> usize {
        self.code_points += text.get(self.byte..byte).map_or(0, |passed| passed.chars().count());
        self.byte = byte;
        self.code_points
    }
}

fn report<'a>(found: &RegexMatch, text: &str, place: &mut Place) -> Value<'a> {
    let mut report = DocWriter::new();
    report.append("match", &Value::from(text.get(found.start..found.end).unwrap_or_default()));
    report.append("idx", &Value::Int32(i32::try_from(place.at(text, found.start)).unwrap_or(i32::MAX)));
    let mut captures = ArrayWriter::new();
    for group in &found.groups {
        captures.push(&group.map_or(Value::Null, |(start, end)| Value::from(text.get(start..end).unwrap_or_default())));
    }
    report.append("captures", &Value::Array(captures.finish()));
    Value::Document(report.finish())
}
