//! Fields by any name, dots and dollars too: `$getField`, `$setField`, `$unsetField`; and `$bsonSize`.

use super::form::{Arguments, fail, only};
use super::{Expr, ExprDef, Form, Names, Operator, Scope, parse};
use crate::error::Result;
use crate::raw::{Doc, DocWriter, without_places};
use crate::value::Value;
use std::sync::Arc;

pub(super) const BSON_SIZE: ExprDef = ExprDef {
    name: "$bsonSize",
    help: "The size of a document in bytes.",
    form: Form::Exactly(1, |operands, scope| match only(operands, scope)? {
        Value::Document(doc) => {
            let size = without_places(&doc).unwrap_or(doc).as_bytes().len();
            Ok(Value::Int32(i32::try_from(size).unwrap_or(i32::MAX)))
        }
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(31393, format!("$bsonSize requires a document input, found: {}", value.type_name())),
    }),
};

pub(super) const GET_FIELD: ExprDef = ExprDef {
    name: "$getField",
    help: "The field of an object by its exact name.",
    form: Form::Special(parse_get_field),
};

pub(super) const SET_FIELD: ExprDef = ExprDef {
    name: "$setField",
    help: "An object with one field added, replaced or removed, by its exact name.",
    form: Form::Special(|argument, names| parse_set_field("$setField", argument, names)),
};

pub(super) const UNSET_FIELD: ExprDef = ExprDef {
    name: "$unsetField",
    help: "An object without one field, by its exact name.",
    form: Form::Special(|argument, names| parse_set_field("$unsetField", argument, names)),
};

#[derive(Debug)]
struct GetField {
    name: Box<str>,
    input: Expr,
}

fn parse_get_field(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    const CODES: [i32; 3] = [5_654_600, 5_654_601, 5_654_602];
    let arguments = match argument {
        Value::Document(doc) if !doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')) => {
            Arguments::of(argument, 0, "")?.only(
                &["field", "input"],
                3_041_701,
                "$getField found an unknown argument: ",
            )?
        }
        field => {
            let name = parse_name("$getField", CODES, field, names)?;
            let input = parse(&Value::from("$$CURRENT"), names)?;
            return Ok(Expr::Custom(Arc::new(GetField { name, input })));
        }
    };
    let field = arguments.required("field", 3_041_702, "$getField requires 'field' to be specified")?;
    let input = arguments.required("input", 3_041_703, "$getField requires 'input' to be specified")?;
    let name = parse_name("$getField", CODES, &field, names)?;
    let input = names.unfolded(|names| parse(&input, names))?;
    Ok(Expr::Custom(Arc::new(GetField { name, input })))
}

/// A name must be written as a constant string; `codes` are for a path, another expression, another type.
fn parse_name(operator: &str, codes: [i32; 3], value: &Value<'_>, names: &mut Names) -> Result<Box<str>> {
    let [path, not_constant, not_string] = codes;
    let refuse_constant = || {
        fail(
            not_constant,
            format!("{operator} requires 'field' to evaluate to a constant, but got a non-constant argument"),
        )
    };
    // Its own errors come first.
    parse(value, names)?;
    let literal = match value {
        Value::String(text) if text.as_str().starts_with('$') => {
            let text = match text.as_str().strip_prefix("$$") {
                Some(variable) => format!("${variable}"),
                None => format!("$CURRENT.{}", text.as_str().trim_start_matches('$')),
            };
            return fail(
                path,
                format!(
                    "'{text}' is a field path reference which is not allowed in this context. Did you mean {{$literal: '{text}'}}?"
                ),
            );
        }
        Value::Document(doc) => match doc.iter().next() {
            Some((name, literal)) if matches!(name.as_str(), "$literal" | "$const") => literal,
            _ => return refuse_constant(),
        },
        Value::Array(_) => return refuse_constant(),
        literal => literal.clone(),
    };
    match literal.as_str() {
        Some(name) if name.contains('\0') => {
            fail(not_string, format!("{operator} requires 'field' without an embedded null byte"))
        }
        Some(name) => Ok(name.into()),
        None => fail(
            not_string,
            format!("{operator} requires 'field' to evaluate to type String, but got {}", literal.type_name()),
        ),
    }
}

impl Operator for GetField {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        Ok(match self.input.eval(scope)? {
            Value::Document(doc) => doc.get(&self.name).unwrap_or(Value::Missing),
            Value::Null | Value::Undefined => Value::Null,
            _ => Value::Missing,
        })
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
    }
}

#[derive(Debug)]
struct SetField {
    name: Box<str>,
    input: Expr,
    value: Expr,
    /// Whether the field, if it goes, leaves its place.
    places: bool,
}

fn parse_set_field(operator: &'static str, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let unset = operator == "$unsetField";
    let known: &[&str] = if unset { &["field", "input"] } else { &["field", "input", "value"] };
    let arguments = Arguments::of(
        argument,
        4_161_100,
        format_args!("{operator} only supports an object as its argument"),
    )?
    .only(known, 4_161_101, &format!("{operator} found an unknown argument: "))?;
    let required =
        |name: &str, code| arguments.required(name, code, &format!("{operator} requires '{name}' to be specified"));
    let field = required("field", 4_161_102)?;
    let value = match unset {
        true => Value::from("$$REMOVE"),
        false => required("value", 4_161_103)?,
    };
    let input = required("input", 4_161_109)?;
    let name = parse_name(operator, [4_161_108, 4_161_106, 4_161_107], &field, names)?;
    let (input, value) = names.unfolded(|names| Ok((parse(&input, names)?, parse(&value, names)?)))?;
    let places = names.leaves_place(&name);
    Ok(Expr::Custom(Arc::new(SetField { name, input, value, places })))
}

impl Operator for SetField {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let doc = match self.input.eval(scope)? {
            Value::Document(doc) => doc,
            value if value.is_nullish() => return Ok(Value::Null),
            _ => return fail(4_161_105, "$setField requires 'input' to evaluate to type Object"),
        };
        let value = self.value.eval(scope)?;
        let result = self.with_field(&doc.borrow(), &value);
        scope.check_size(result.as_bytes().len())?;
        Ok(Value::Document(result))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.value);
    }
}

impl SetField {
    /// The field keeps its place; a missing value removes it.
    fn with_field(&self, doc: &Doc<'_>, value: &Value<'_>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 64);
        let mut fields = doc.iter();
        let mut found = false;
        while let Some((field, kind, bytes)) = fields.next_slot() {
            if field.as_bytes() == self.name.as_bytes() {
                found = true;
                writer.append_or_place(&self.name, value, self.places);
            } else {
                writer.append_raw(field.as_str(), kind, bytes.as_slice());
            }
        }
        if !found {
            writer.append_or_place(&self.name, value, self.places);
        }
        writer.finish()
    }
}
