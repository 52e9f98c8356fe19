//! `$unwind`: one output document per array element.
//!
//! Streams; holds one input document at a time. Missing, null and empty arrays follow `preserveNullAndEmptyArrays`.

use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream, nested};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::{Doc, Items};
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$unwind",
    help: "Gives one document for each element of an array.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let refuse = |code, message: String| Err(Error::new(Code::Location(code), message));
    let (mut path, mut index, mut keep_empty) = (None, None, false);
    match spec {
        Value::String(text) => path = Some(text.as_str().to_owned()),
        Value::Document(options) => {
            for (name, value) in options.iter() {
                let kind = value.type_name();
                match (name.as_str(), &value) {
                    ("path", Value::String(text)) => path = Some(text.as_str().to_owned()),
                    ("path", _) => {
                        return refuse(28808, format!("expected a string as the path for $unwind stage, got {kind}"));
                    }
                    ("preserveNullAndEmptyArrays", Value::Bool(truth)) => keep_empty = *truth,
                    ("preserveNullAndEmptyArrays", _) => {
                        let message = "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage";
                        return refuse(28809, format!("{message}, got {kind}"));
                    }
                    ("includeArrayIndex", Value::String(text)) if !text.as_bytes().is_empty() => {
                        let text = text.as_str();
                        if text.starts_with('$') {
                            let message = "includeArrayIndex option to $unwind stage should not be prefixed with a '$'";
                            return refuse(28822, format!("{message}: {text}"));
                        }
                        index = Some(text.to_owned());
                    }
                    ("includeArrayIndex", _) => {
                        let message = "expected a non-empty string for the includeArrayIndex  option to $unwind stage";
                        return refuse(28810, format!("{message}, got {kind}"));
                    }
                    (other, _) => return refuse(28811, format!("unrecognized option to $unwind stage: {other}")),
                }
            }
        }
        other => {
            let message = "expected either a string or an object as specification for $unwind stage";
            return refuse(15981, format!("{message}, got {}", other.type_name()));
        }
    }
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return refuse(28812, "no path specified to $unwind stage".to_owned());
    };
    let Some(field) = path.strip_prefix('$') else {
        return refuse(28818, format!("path option to $unwind stage should be prefixed with a '$': {path}"));
    };
    Parsed::one(Unwind {
        path: Path::field_path(field)?,
        index: index.map(|index| Path::field_path(&index)).transpose()?,
        keep_empty,
        places: parser.names.leaves_place(field.rsplit('.').next().unwrap_or(field)),
    })
}

#[derive(Debug)]
pub(super) struct Unwind {
    path: Path,
    index: Option<Path>,
    keep_empty: bool,
    /// Whether an empty array that is taken away leaves its place.
    places: bool,
}

impl Stage for Unwind {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, _run: &Run) -> Result<Rows> {
        Ok(Box::new(Unwinding { stage: self, input, current: None }))
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = after?;
        needed.push(self.path.clone());
        Some(needed)
    }

    fn keeps(&self, path: &Path) -> bool {
        let unwound = self.path.is_prefix_of(path) || path.is_prefix_of(&self.path);
        !unwound && self.index.as_ref().is_none_or(|index| nested::leaves(index, path))
    }
}

struct Unwinding {
    stage: Arc<Unwind>,
    input: Rows,
    current: Option<Current>,
}

/// The document being unwound.
struct Current {
    doc: Doc<'static>,
    items: Items<'static>,
    next: i64,
}

impl Stream for Unwinding {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(item) = current.items.next() {
                    let index = current.next;
                    current.next += 1;
                    return Ok(Some(self.stage.output(&current.doc, &item, Value::Int64(index))));
                }
                self.current = None;
            }
            let Some(doc) = self.input.next()? else { return Ok(None) };
            match nested::get(&doc, &self.stage.path.parts) {
                Value::Array(array) if !array.is_empty() => {
                    self.current = Some(Current { items: array.iter(), doc, next: 0 });
                }
                Value::Array(_) if self.stage.keep_empty => {
                    return Ok(Some(self.stage.output(&doc, &Value::Missing, Value::Null)));
                }
                Value::Array(_) => {}
                value if value.is_nullish() && !self.stage.keep_empty => {}
                _ => return Ok(Some(self.stage.unchanged(doc))),
            }
        }
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

impl Unwind {
    fn output(&self, doc: &Doc<'_>, item: &Value<'_>, index: Value<'static>) -> Doc<'static> {
        let output = nested::with_or_place(doc, &self.path.parts, item, self.places);
        match &self.index {
            Some(path) => nested::with(&output, &path.parts, &index),
            None => output,
        }
    }

    /// What is no array is let through as it is.
    fn unchanged(&self, doc: Doc<'static>) -> Doc<'static> {
        match &self.index {
            Some(path) => nested::with(&doc, &path.parts, &Value::Null),
            None => doc,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::{check, check_error, documents};
    use bson::{Bson, bson};

    fn input() -> Vec<bson::Document> {
        documents(
            bson!([{ "_id": 1, "a": [1, 2], "z": 0 }, { "_id": 2, "a": [] }, { "_id": 3, "a": null }, { "_id": 4, "a": 5 }, { "_id": 5 }]),
        )
    }

    #[test]
    fn arrays_are_unwound() {
        check(
            input(),
            bson!([{ "$unwind": "$a" }]),
            bson!([{ "_id": 1, "a": 1, "z": 0 }, { "_id": 1, "a": 2, "z": 0 }, { "_id": 4, "a": 5 }]),
        );
        check(
            input(),
            bson!([{ "$unwind": { "path": "$a", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i" } }]),
            bson!([
                { "_id": 1, "a": 1, "z": 0, "i": Bson::Int64(0) }, { "_id": 1, "a": 2, "z": 0, "i": Bson::Int64(1) },
                { "_id": 2, "i": null }, { "_id": 3, "a": null, "i": null }, { "_id": 4, "a": 5, "i": null }, { "_id": 5, "i": null },
            ]),
        );
        check(
            documents(bson!([{ "a": { "b": [1, 2], "c": 0 } }, { "a": [{ "b": [1] }] }])),
            bson!([{ "$unwind": "$a.b" }]),
            bson!([{ "a": { "b": 1, "c": 0 } }, { "a": { "b": 2, "c": 0 } }]),
        );
    }

    #[test]
    fn errors_are_mongodbs() {
        let check = |spec: Bson, code, message: &str| check_error(bson!([{ "$unwind": spec }]), code, message);
        check(bson!(1), 15981, "expected either a string or an object as specification for $unwind stage, got int");
        check(bson!("a"), 28818, "path option to $unwind stage should be prefixed with a '$': a");
        check(bson!("$"), 40352, "FieldPath cannot be constructed with empty string");
        check(bson!(""), 28812, "no path specified to $unwind stage");
        check(bson!({ "includeArrayIndex": "i" }), 28812, "no path specified to $unwind stage");
        check(bson!({ "path": "$a", "x": 1 }), 28811, "unrecognized option to $unwind stage: x");
        check(
            bson!({ "path": "$a", "includeArrayIndex": "$i" }),
            28822,
            "includeArrayIndex option to $unwind stage should not be prefixed with a '$': $i",
        );
    }
}
