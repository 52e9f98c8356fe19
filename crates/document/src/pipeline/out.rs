//! `$out`: the results become a collection, in place of what was there.

use super::{Parsed, Parser, Place, Sink, StageDef};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::value::Value;

pub(super) const STAGE: StageDef = StageDef {
    name: "$out",
    help: "Replaces a collection with the results.",
    parse,
    place: Place::Last,
    refused: false,
};

fn parse(spec: &Value<'_>, _parser: &mut Parser<'_>) -> Result<Parsed> {
    let refuse = |code, message: String| Err(Error::new(Code::from_number(code), message));
    let (db, collection) = match spec {
        Value::String(name) => (None, name.as_str().to_owned()),
        Value::Document(target) => {
            let (Some(db), Some(collection), 2) = (target.get("db"), target.get("coll"), target.iter().count()) else {
                let message = "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'";
                return refuse(16994, message.to_owned());
            };
            let text = |name: &str, value: &Value<'_>| match value.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => refuse(13111, format!("wrong type for field ({name}) {} != string", value.type_name()))
                    .map(|_: Parsed| String::new()),
            };
            (Some(text("db", &db)?), text("coll", &collection)?)
        }
        other => {
            let message = format!("$out only supports a string or object argument, but found {}", other.type_name());
            return refuse(16990, message);
        }
    };
    if collection.contains('\0') {
        return refuse(73, "namespaces cannot have embedded null characters".to_owned());
    }
    if collection.is_empty() || db.as_deref() == Some("") {
        let namespace = format!("{}.{collection}", db.unwrap_or_default());
        return refuse(73, format!("Invalid $out target namespace, {namespace}"));
    }
    if let Some(name) = db.as_deref().filter(|name| name.contains('.')) {
        return refuse(73, format!("'.' is an invalid character in the database name: {name}"));
    }
    if collection.starts_with("system.") {
        return refuse(17385, format!("Can't $out to special collection: {collection}"));
    }
    if let Some(name @ ("admin" | "local" | "config")) = db.as_deref() {
        return refuse(31321, format!("Can't $out to internal database: {name}"));
    }
    Ok(Parsed::Sink(Sink::Out { db, collection }))
}

#[cfg(test)]
mod tests {
    use crate::pipeline::Sink;
    use crate::pipeline::testing::{check_error, parse};
    use bson::{Bson, bson};

    #[test]
    fn targets_are_parsed() {
        let check = |spec: Bson, expected: (Option<&str>, &str)| match parse(bson!([{ "$out": spec }])).unwrap().sink {
            Some(Sink::Out { db, collection }) => assert_eq!((db.as_deref(), &*collection), expected),
            other => panic!("{other:?}"),
        };
        check(bson!("o"), (None, "o"));
        check(bson!({ "db": "x", "coll": "o" }), (Some("x"), "o"));
    }

    #[test]
    fn errors_are_mongodbs() {
        let check = |spec: Bson, code, message: &str| check_error(bson!([{ "$out": spec }]), code, message);
        check(bson!(1), 16990, "$out only supports a string or object argument, but found int");
        check(bson!({}), 16994, "If an object is passed to $out it must have exactly 2 fields: 'db' and 'coll'");
        check(bson!({ "db": 1, "coll": "x" }), 13111, "wrong type for field (db) int != string");
        check(bson!("system.o"), 17385, "Can't $out to special collection: system.o");
        check(bson!({ "db": "admin", "coll": "x" }), 31321, "Can't $out to internal database: admin");
        check_error(
            bson!([{ "$out": "o" }, { "$limit": 1 }]),
            40601,
            "$out can only be the final stage in the pipeline",
        );
    }
}
