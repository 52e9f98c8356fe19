//! `$merge`: each result is inserted into a collection, or meets the document that is there as the stage says.

use super::expr::{self, check_bindable};
use super::{MergeSpec, Parsed, Parser, Place, Sink, StageDef, WhenMatched, WhenNotMatched};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$merge",
    help: "Writes the results into a collection, merging them with what is there.",
    parse,
    place: Place::Last,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let mut merge = MergeSpec {
        db: None,
        collection: String::new(),
        on: vec!["_id".to_owned()],
        matched: WhenMatched::Merge,
        not_matched: WhenNotMatched::Insert,
    };
    match spec {
        Value::String(name) => merge.collection = name.as_str().to_owned(),
        Value::Document(options) => parse_options(options, &mut merge, parser)?,
        other => {
            let message = format!("$merge requires a string or object argument, but found {}", other.type_name());
            return Err(Error::type_mismatch(message));
        }
    }
    check_target(&merge)?;
    check_modes(&merge)?;
    Ok(Parsed::Sink(Sink::Merge(Arc::new(merge))))
}

fn fail<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::from_number(code), message))
}

fn parse_options(options: &Doc<'_>, merge: &mut MergeSpec, parser: &mut Parser<'_>) -> Result<()> {
    let mut variables = None;
    for (name, value) in options.iter() {
        let kind = value.type_name();
        match (name.as_str(), &value) {
            ("into", value) => parse_into(value, merge)?,
            ("on", value) => merge.on = parse_on(value)?,
            ("let", Value::Document(given)) => variables = Some(given.clone().into_owned()),
            ("let", _) => {
                let message = format!("BSON field '$merge.let' is the wrong type '{kind}', expected type 'object'");
                return Err(Error::type_mismatch(message));
            }
            ("whenMatched", value) => merge.matched = parse_matched(value)?,
            ("whenNotMatched", Value::String(mode)) => merge.not_matched = parse_not_matched(mode.as_str())?,
            ("whenNotMatched", _) => {
                let expected = "expected type 'string'";
                let message = format!("BSON field '$merge.whenNotMatched' is the wrong type '{kind}', {expected}");
                return Err(Error::type_mismatch(message));
            }
            (other, _) => return fail(40415, format!("BSON field '$merge.{other}' is an unknown field.")),
        }
    }
    if !options.contains("into") {
        return fail(40414, "BSON field '$merge.into' is missing but a required field");
    }
    let Some(given) = variables else { return Ok(()) };
    check_variables(&given, parser)?;
    match &mut merge.matched {
        WhenMatched::Pipeline { variables, .. } => {
            *variables = Some(given);
            Ok(())
        }
        other => fail(51199, format!("Cannot use 'let' variables with 'whenMatched: {}' mode", matched_name(other))),
    }
}

fn parse_into(value: &Value<'_>, merge: &mut MergeSpec) -> Result<()> {
    match value {
        Value::String(name) if name.as_bytes().is_empty() => {
            fail(5_786_800, "$merge 'into' field cannot be an empty string")
        }
        Value::String(name) => {
            merge.collection = name.as_str().to_owned();
            Ok(())
        }
        Value::Document(target) => {
            for (name, value) in target.iter() {
                match (name.as_str(), value.as_str()) {
                    ("db", Some(db)) => merge.db = Some(db.to_owned()),
                    ("coll", Some(collection)) => merge.collection = collection.to_owned(),
                    ("db" | "coll", None) if value.is_nullish() => {}
                    ("db" | "coll", None) => {
                        let kind = value.type_name();
                        let message =
                            format!("BSON field 'into.{name}' is the wrong type '{kind}', expected type 'string'");
                        return Err(Error::type_mismatch(message));
                    }
                    (other, _) => return fail(40415, format!("BSON field 'into.{other}' is an unknown field.")),
                }
            }
            match merge.collection.is_empty() {
                true => {
                    fail(5_786_801, "$merge 'into' field must specify a 'coll' that is not empty, null or undefined")
                }
                false => Ok(()),
            }
        }
        other => {
            let kind = other.type_name();
            fail(51178, format!("$merge 'into' field  must be either a string or an object, but found {kind}"))
        }
    }
}

fn parse_on(value: &Value<'_>) -> Result<Vec<String>> {
    let mut on: Vec<String> = Vec::new();
    match value {
        Value::String(path) => on.push(path.as_str().to_owned()),
        Value::Array(paths) if paths.is_empty() => {
            return fail(51187, "If explicitly specifying $merge 'on', must include at least one field");
        }
        Value::Array(paths) => {
            for path in paths.iter() {
                match path.as_str() {
                    Some(path) if on.iter().any(|other| other == path) => {
                        return fail(31465, format!("Found a duplicate field '{path}'"));
                    }
                    Some(path) => on.push(path.to_owned()),
                    None => {
                        let kind = path.type_name();
                        return fail(51134, format!("$merge 'on' array elements must be strings, but found {kind}"));
                    }
                }
            }
        }
        other => {
            let message = "$merge 'on' field  must be either a string or an array of strings";
            return fail(51186, format!("{message}, but found {}", other.type_name()));
        }
    }
    on.iter().try_for_each(|path| Path::field_path(path).map(drop))?;
    Ok(on)
}

fn parse_matched(value: &Value<'_>) -> Result<WhenMatched> {
    match value {
        Value::Array(stages) => {
            if stages.iter().any(|stage| !matches!(stage, Value::Document(_))) {
                return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
            }
            Ok(WhenMatched::Pipeline { stages: stages.clone().into_owned(), variables: None })
        }
        Value::String(mode) => Ok(match mode.as_str() {
            "replace" => WhenMatched::Replace,
            "merge" => WhenMatched::Merge,
            "keepExisting" => WhenMatched::KeepExisting,
            "fail" => WhenMatched::Fail,
            other => {
                let message = format!("Enumeration value '{other}' for field 'whenMatched' is not a valid value.");
                return Err(Error::bad_value(message));
            }
        }),
        other => {
            let message = "$merge 'whenMatched' field  must be either a string or an array";
            fail(51191, format!("{message}, but found {}", other.type_name()))
        }
    }
}

fn parse_not_matched(mode: &str) -> Result<WhenNotMatched> {
    Ok(match mode {
        "insert" => WhenNotMatched::Insert,
        "discard" => WhenNotMatched::Discard,
        "fail" => WhenNotMatched::Fail,
        other => {
            let message =
                format!("Enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value.");
            return Err(Error::bad_value(message));
        }
    })
}

fn check_variables(given: &Doc<'_>, parser: &mut Parser<'_>) -> Result<()> {
    for (name, value) in given.iter() {
        check_bindable(name.as_str())?;
        if name.as_str() == "new" && value.as_str() != Some("$$ROOT") {
            let message = "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
            return fail(51273, message);
        }
        parser.names.leniently(|names| expr::parse(&value, names))?;
    }
    Ok(())
}

fn check_target(merge: &MergeSpec) -> Result<()> {
    let (db, collection) = (merge.db.as_deref(), &merge.collection);
    if collection.contains('\0') {
        return fail(73, "namespaces cannot have embedded null characters");
    }
    if collection.is_empty() || db == Some("") {
        let message = format!("Invalid $merge target namespace: '{}.{collection}'", db.unwrap_or_default());
        return fail(73, message);
    }
    if collection.starts_with("system.") {
        return fail(31319, format!("Cannot $merge to special collection: {collection}"));
    }
    if let Some(name @ ("admin" | "local" | "config")) = db {
        return fail(31320, format!("Cannot $merge to internal database: {name}"));
    }
    Ok(())
}

/// Of the modes, only some go together.
fn check_modes(merge: &MergeSpec) -> Result<()> {
    let allowed = match merge.matched {
        WhenMatched::Replace | WhenMatched::Merge | WhenMatched::Pipeline { .. } => true,
        WhenMatched::KeepExisting | WhenMatched::Fail => merge.not_matched == WhenNotMatched::Insert,
    };
    if allowed {
        return Ok(());
    }
    let not_matched = match merge.not_matched {
        WhenNotMatched::Insert => "insert",
        WhenNotMatched::Discard => "discard",
        WhenNotMatched::Fail => "fail",
    };
    let matched = matched_name(&merge.matched);
    let modes = format!("'whenMatched: {matched}' and 'whenNotMatched: {not_matched}'");
    fail(51181, format!("Combination of $merge modes {modes} is not supported"))
}

fn matched_name(matched: &WhenMatched) -> &'static str {
    match matched {
        WhenMatched::Replace => "replace",
        WhenMatched::KeepExisting => "keepExisting",
        WhenMatched::Merge => "merge",
        WhenMatched::Fail => "fail",
        WhenMatched::Pipeline { .. } => "pipeline",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::testing::{check_error, parse};
    use bson::{Bson, bson};

    fn merge(spec: Bson) -> MergeSpec {
        match parse(bson!([{ "$merge": spec }])).unwrap().sink {
            Some(Sink::Merge(merge)) => MergeSpec::clone(&merge),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn modes_are_parsed() {
        let short = merge(bson!("m"));
        assert_eq!((short.db, short.collection, short.on), (None, "m".to_owned(), vec!["_id".to_owned()]));
        let long = merge(bson!({ "into": { "db": "x", "coll": "m" }, "on": ["a", "b.c"], "whenMatched": "fail" }));
        assert_eq!((long.db.as_deref(), long.on.len()), (Some("x"), 2));
        assert!(matches!(long.matched, WhenMatched::Fail) && long.not_matched == WhenNotMatched::Insert);
        let spec = bson!({ "into": "m", "whenMatched": [{ "$set": { "a": "$$q" } }], "let": { "q": "$a" }, "whenNotMatched": "discard" });
        let stages = merge(spec);
        assert!(matches!(stages.matched, WhenMatched::Pipeline { variables: Some(_), .. }));
    }

    #[test]
    fn errors_are_mongodbs() {
        let check = |spec: Bson, code, message: &str| check_error(bson!([{ "$merge": spec }]), code, message);
        check(bson!(1), 14, "$merge requires a string or object argument, but found int");
        check(bson!({}), 40414, "BSON field '$merge.into' is missing but a required field");
        check(bson!({ "into": 1 }), 51178, "$merge 'into' field  must be either a string or an object, but found int");
        check(bson!({ "into": "" }), 5_786_800, "$merge 'into' field cannot be an empty string");
        check(
            bson!({ "into": "m", "on": [] }),
            51187,
            "If explicitly specifying $merge 'on', must include at least one field",
        );
        check(bson!({ "into": "m", "on": ["a", "a"] }), 31465, "Found a duplicate field 'a'");
        check(
            bson!({ "into": "m", "whenMatched": "x" }),
            2,
            "Enumeration value 'x' for field 'whenMatched' is not a valid value.",
        );
        check(
            bson!({ "into": "m", "whenNotMatched": "x" }),
            2,
            "Enumeration value 'x' for field '$merge.whenNotMatched' is not a valid value.",
        );
        check(
            bson!({ "into": "m", "let": { "q": "$a" } }),
            51199,
            "Cannot use 'let' variables with 'whenMatched: merge' mode",
        );
        check(
            bson!({ "into": "m", "whenMatched": "keepExisting", "whenNotMatched": "discard" }),
            51181,
            "Combination of $merge modes 'whenMatched: keepExisting' and 'whenNotMatched: discard' is not supported",
        );
        check(bson!("system.m"), 31319, "Cannot $merge to special collection: system.m");
    }
}
