//! `$trim`, `$ltrim`, `$rtrim`: strings without the characters at their ends.

use super::form::{Arguments, custom, fail};
use super::text::string_of;
use super::{Expr, ExprDef, Form, Names, Operator, Scope};
use crate::error::Result;
use crate::value::{Value, show};

pub(super) const LTRIM: ExprDef = ExprDef {
    name: "$ltrim",
    help: "A string without blanks, or the given characters, at its beginning.",
    form: Form::Special(|argument, names| parse("$ltrim", true, false, argument, names)),
};
pub(super) const RTRIM: ExprDef = ExprDef {
    name: "$rtrim",
    help: "A string without blanks, or the given characters, at its end.",
    form: Form::Special(|argument, names| parse("$rtrim", false, true, argument, names)),
};
pub(super) const TRIM: ExprDef = ExprDef {
    name: "$trim",
    help: "A string without blanks, or the given characters, at both ends.",
    form: Form::Special(|argument, names| parse("$trim", true, true, argument, names)),
};

/// What counts as blank: ASCII blanks, NUL, and Unicode's spaces up to the hair space.
const BLANKS: &str = "\0 \t\n\u{b}\u{c}\r\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}";

#[derive(Debug)]
struct Trim {
    name: &'static str,
    start: bool,
    end: bool,
    input: Expr,
    characters: Option<Expr>,
}

fn parse(name: &'static str, start: bool, end: bool, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let no_object = (50696, "only supports an object as an argument, found ");
    let arguments = Arguments::named(name, argument, no_object, &["input", "chars"], 50694)?;
    let input = arguments.required_expr("input", 50695, format_args!("{name} requires an 'input' field"), names)?;
    let characters = arguments.expr("chars", names)?;
    Ok(custom(Trim { name, start, end, input, characters }, names))
}

impl Operator for Trim {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let input = self.input.eval(scope)?;
        if input.is_nullish() {
            return Ok(Value::Null);
        }
        let found =
            |value: &Value<'_>| format!("got {} (of type {}) instead.", show::computed(value), value.type_name());
        let Some(text) = string_of(&input) else {
            return fail(50699, format!("{} requires its input to be a string, {}", self.name, found(&input)));
        };
        let characters = match &self.characters {
            None => Value::from(BLANKS),
            Some(characters) => characters.eval(scope)?,
        };
        if characters.is_nullish() {
            return Ok(Value::Null);
        }
        let Some(characters) = string_of(&characters) else {
            return fail(50700, format!("{} requires 'chars' to be a string, {}", self.name, found(&characters)));
        };
        let is_cut = |character: char| characters.contains(character);
        let text = if self.start { text.trim_start_matches(is_cut) } else { text };
        let text = if self.end { text.trim_end_matches(is_cut) } else { text };
        Ok(text.to_owned().into())
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        self.characters.iter().for_each(visit);
    }
}
