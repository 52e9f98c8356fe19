//! Arrays of pairs: `$objectToArray`, `$arrayToObject`, and `$zip`.

use crate::error::Result;
use crate::pipeline::expr::form::{Arguments, fail, only};
use crate::pipeline::expr::{Expr, ExprDef, Form, Names, Operator, Scope, parse};
use crate::raw::{Array, ArrayWriter, Doc, DocWriter};
use crate::value::{Value, show};
use indexmap::IndexMap;
use std::sync::Arc;

pub(in crate::pipeline::expr) const ARRAY_TO_OBJECT: ExprDef = ExprDef {
    name: "$arrayToObject",
    help: "An object from an array of key and value pairs.",
    form: Form::Exactly(1, array_to_object),
};

pub(in crate::pipeline::expr) const OBJECT_TO_ARRAY: ExprDef = ExprDef {
    name: "$objectToArray",
    help: "An array of the keys and values of an object, as { k, v }.",
    form: Form::Exactly(1, object_to_array),
};

pub(in crate::pipeline::expr) const ZIP: ExprDef = ExprDef {
    name: "$zip",
    help: "An array of arrays: the first elements of all inputs, the second, and so on.",
    form: Form::Special(parse_zip),
};

fn object_to_array<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::Document(doc) => {
            let mut writer = ArrayWriter::new();
            for (name, value) in doc.borrow().iter() {
                let mut pair = DocWriter::new();
                pair.append("k", &Value::String(name)).append("v", &value);
                writer.push(&Value::Document(pair.finish()));
            }
            Ok(Value::Array(writer.finish()))
        }
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(40390, format!("$objectToArray requires a document input, found: {}", value.type_name())),
    }
}

fn array_to_object<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let array = match only(operands, scope)? {
        Value::Array(array) => array,
        value if value.is_nullish() => return Ok(Value::Null),
        value => {
            return fail(40386, format!("$arrayToObject requires an array input, found: {}", value.type_name()));
        }
    };
    let array = array.borrow();
    let mut fields: IndexMap<String, Value<'_>, foldhash::fast::RandomState> = IndexMap::default();
    let mut arrays = None;
    for pair in array.iter() {
        let (key, value) = match (arrays, &pair) {
            (None | Some(true), Value::Array(pair)) => {
                arrays = Some(true);
                pair_of_array(pair)?
            }
            (None | Some(false), Value::Document(pair)) => {
                arrays = Some(false);
                pair_of_object(pair)?
            }
            (Some(true), other) => return inconsistent(40396, "Array", other),
            (Some(false), other) => return inconsistent(40391, "Object", other),
            (None, other) => {
                return fail(
                    40398,
                    format!("Unrecognised input type format for $arrayToObject: {}", other.type_name()),
                );
            }
        };
        fields.insert(key, value);
    }
    let mut writer = DocWriter::new();
    for (key, value) in &fields {
        writer.append(key, value);
    }
    Ok(Value::Document(writer.finish()))
}

fn inconsistent<T>(code: i32, first: &str, found: &Value<'_>) -> Result<T> {
    fail(
        code,
        format!(
            "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects. {first} \
             was detected, now found: {}",
            found.type_name()
        ),
    )
}

fn pair_of_array<'v>(pair: &Array<'v>) -> Result<(String, Value<'v>)> {
    let mut items = pair.iter();
    let (Some(key), Some(value), None) = (items.next(), items.next(), items.next()) else {
        return fail(
            40397,
            format!("$arrayToObject requires an array of size 2 arrays,found array of size: {}", pair.count()),
        );
    };
    let Some(name) = key.as_str() else {
        return fail(
            40395,
            format!(
                "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key \
                 type: {}",
                key.type_name()
            ),
        );
    };
    Ok((check_key(4_940_400, name)?, value))
}

fn pair_of_object<'v>(doc: &Doc<'v>) -> Result<(String, Value<'v>)> {
    let count = doc.iter().count();
    if count != 2 {
        return fail(
            40392,
            format!("$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{count}"),
        );
    }
    let (Some(key), Some(value)) = (doc.get("k"), doc.get("v")) else {
        return fail(
            40393,
            format!(
                "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {}",
                show::computed(&Value::Document(doc.borrow()))
            ),
        );
    };
    let Some(name) = key.as_str() else {
        return fail(
            40394,
            format!(
                "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type \
                 string. Found type: {}",
                key.type_name()
            ),
        );
    };
    Ok((check_key(4_940_401, name)?, value))
}

fn check_key(code: i32, key: &str) -> Result<String> {
    if key.contains('\0') {
        return fail(code, "Key field cannot contain an embedded null byte");
    }
    Ok(key.to_owned())
}

#[derive(Debug)]
struct Zip {
    inputs: Vec<Expr>,
    defaults: Vec<Expr>,
    longest: bool,
}

fn parse_zip(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(
        argument,
        34460,
        format_args!("$zip only supports an object as an argument, found {}", argument.type_name()),
    )?;
    let mut zip = Zip { inputs: Vec::new(), defaults: Vec::new(), longest: false };
    for (name, value) in arguments.iter() {
        match name.as_str() {
            "inputs" => zip.inputs = parse_list(34461, "inputs", &value, names)?,
            "defaults" => zip.defaults = parse_list(34462, "defaults", &value, names)?,
            "useLongestLength" => match value {
                Value::Bool(longest) => zip.longest = longest,
                // MongoDB names the type of the whole argument here.
                _ => return fail(34463, "useLongestLength must be a bool, found object"),
            },
            other => return fail(34464, format!("$zip found an unknown argument: {other}")),
        }
    }
    if zip.inputs.is_empty() {
        return fail(34465, "$zip requires at least one input array");
    }
    if !zip.longest && !zip.defaults.is_empty() {
        return fail(34466, "cannot specify defaults unless useLongestLength is true");
    }
    if !zip.defaults.is_empty() && zip.defaults.len() != zip.inputs.len() {
        return fail(34467, "defaults and inputs must have the same length");
    }
    Ok(Expr::Custom(Arc::new(zip)))
}

fn parse_list(code: i32, what: &str, value: &Value<'_>, names: &mut Names) -> Result<Vec<Expr>> {
    match value {
        Value::Array(array) => array.iter().map(|item| parse(&item, names)).collect(),
        other => fail(code, format!("{what} must be an array of expressions, found {}", other.type_name())),
    }
}

impl Operator for Zip {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            match input.eval(scope)? {
                Value::Array(array) => inputs.push(array),
                value if value.is_nullish() => return Ok(Value::Null),
                value => {
                    return fail(
                        34468,
                        format!("$zip found a non-array expression in input: {}", show::computed(&value)),
                    );
                }
            }
        }
        let mut defaults = vec![Value::Null; inputs.len()];
        for (place, default) in defaults.iter_mut().zip(&self.defaults) {
            *place = default.eval(scope)?;
        }
        let counts = inputs.iter().map(|array| array.count());
        let length = if self.longest { counts.max() } else { counts.min() }.unwrap_or_default();
        let mut items: Vec<_> = inputs.iter().map(|array| array.borrow().iter()).collect();
        let mut writer = ArrayWriter::new();
        for _ in 0..length {
            scope.step()?;
            let mut row = ArrayWriter::new();
            for (items, default) in items.iter_mut().zip(&defaults) {
                // Where a default is missing, MongoDB leaves the element out.
                match items.next().as_ref().unwrap_or(default) {
                    Value::Missing => {}
                    value => {
                        row.push(value);
                    }
                }
            }
            writer.push(&Value::Array(row.finish()));
            scope.check_size(writer.len())?;
        }
        Ok(Value::Array(writer.finish()))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        self.inputs.iter().chain(&self.defaults).for_each(visit);
    }
}
