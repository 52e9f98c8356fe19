//! The command as it was sent: its verb, its fields, its declaration.

use crate::declare;
use crate::declare::{Checked, Declaration, DeclarationText, Part};
use crate::life::verbs::{VERBS, Verb};
use document::value::order;
use document::{Array, Doc, Error, Result, Value};

/// How many differences an audit names unless it is asked for more.
const EXAMPLES: usize = 100;

/// A field's name as MongoDB's own commands would spell it.
fn camel_case(field: &str) -> Option<&'static str> {
    match field {
        "create_missing" => Some("createMissing"),
        "keep_buckets" => Some("keepBuckets"),
        "with_data" => Some("withData"),
        _ => None,
    }
}

/// The command as it was sent.
pub(crate) struct Request<'a> {
    pub(super) verb: &'static Verb,
    pub(super) body: &'a Doc<'a>,
    /// The database it was sent to; `None` for `admin`, which stands for all.
    pub(super) db: Option<String>,
}

impl<'a> Request<'a> {
    pub(super) fn read(db: &str, body: &'a Doc<'a>) -> Result<Request<'a>> {
        let verb = body.get("pleach");
        let Some(name) = verb.as_ref().and_then(|verb| verb.as_str()) else {
            return Err(Error::type_mismatch(format!("pleach takes the name of a verb: {}", verbs())));
        };
        let Some(verb) = VERBS.iter().copied().find(|verb| verb.name == name) else {
            return Err(
                Error::bad_value(format!("pleach does not know '{name}'")).with_hint(format!("it knows {}", verbs()))
            );
        };
        for (field, _) in body.iter().skip(1) {
            let field = field.as_str();
            // Any verb takes a declaration: it says at least which database is meant.
            let is_known = |known: &&str| *known == field || camel_case(known).is_some_and(|other| other == field);
            if !verb.fields.iter().any(is_known) && field != "declaration" && !is_generic(field) {
                let error = Error::bad_value(format!("pleach {name} takes no field '{field}'"));
                return Err(match verb.fields {
                    [] => error,
                    fields => error.with_hint(format!("it takes {}", fields.join(", "))),
                });
            }
        }
        let asked = Request { verb, body, db: (db != "admin").then(|| db.to_owned()) };
        match asked.has("declaration") && !verb.fields.contains(&"declaration") {
            true => Ok(Request { db: Some(asked.declaration()?.database.to_string()), ..asked }),
            false => Ok(asked),
        }
    }

    /// The error of a verb that needs the field.
    pub(super) fn lacks(&self, field: &str) -> Error {
        Error::failed_to_parse(format!("pleach {} needs '{field}'", self.verb.name))
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.body.contains(field)
    }

    pub(super) fn checked(&self) -> Result<Checked> {
        match self.body.get("declaration") {
            Some(Value::Document(declaration)) => Ok(declare::from_bson(&declaration, self.db.as_deref())),
            // A file's text, so that findings name lines.
            Some(Value::String(text)) => Ok(declare::from_yaml("declaration", text.as_str())),
            Some(Value::Array(parts)) => self.together(&parts),
            Some(other) => Err(Error::type_mismatch(format!(
                "'declaration' must be a document, YAML text or an array of them, not {}",
                other.type_name()
            ))),
            None => Err(self.lacks("declaration")),
        }
    }

    /// Several parts of one declaration, such as the files of two teams.
    fn together(&self, parts: &Array<'_>) -> Result<Checked> {
        let parts: Vec<(String, Value<'_>)> =
            parts.iter().enumerate().map(|(at, part)| (format!("declaration {}", at + 1), part)).collect();
        let mut list = Vec::new();
        for (file, part) in &parts {
            let content = match part {
                Value::Document(doc) => DeclarationText::Bson(doc),
                Value::String(text) => DeclarationText::Yaml(text.as_str()),
                other => {
                    let kind = other.type_name();
                    return Err(Error::type_mismatch(format!("{file} must be a document or YAML text, not {kind}")));
                }
            };
            list.push(Part { file, content });
        }
        let groups = declare::from_parts(&list, self.db.as_deref());
        let databases: Vec<&str> =
            groups.iter().filter_map(|group| Some(&*group.checked.declaration.as_ref()?.database)).collect();
        match (groups.len(), databases.len()) {
            (0, _) => Err(Error::bad_value("'declaration' is an empty array")),
            (all, sound) if all > 1 && all == sound => {
                Err(Error::bad_value(format!("the declarations are for several databases ({})", databases.join(", ")))
                    .with_hint("send one command for each"))
            }
            // One that cannot be read says why.
            _ => Ok(groups
                .into_iter()
                .map(|group| group.checked)
                .reduce(|mut all, one| {
                    all.declaration = all.declaration.and(one.declaration);
                    all.findings.extend(one.findings);
                    all
                })
                .unwrap_or(Checked { declaration: None, findings: Vec::new() })),
        }
    }

    pub(super) fn declaration(&self) -> Result<Declaration> {
        let declaration = self.checked()?.into_result()?;
        match &self.db {
            Some(db) if **db != *declaration.database => Err(Error::bad_value(format!(
                "the declaration is for database {}, and the command was sent to {db}",
                declaration.database
            ))),
            _ => Ok(declaration),
        }
    }

    pub(super) fn flag(&self, field: &str, otherwise: bool) -> Result<bool> {
        match self.body.get(field).or_else(|| camel_case(field).and_then(|field| self.body.get(field))) {
            None => Ok(otherwise),
            Some(value @ (Value::Bool(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_))) => {
                Ok(value.is_truthy())
            }
            Some(other) => Err(Error::type_mismatch(format!("'{field}' must be a boolean, not {}", other.type_name()))),
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<Option<String>> {
        match self.body.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().to_owned())),
            Some(other) => Err(Error::type_mismatch(format!("'{field}' must be a string, not {}", other.type_name()))),
        }
    }

    pub(super) fn examples(&self) -> Result<usize> {
        match self.body.get("examples") {
            None => Ok(EXAMPLES),
            Some(value) if !value.is_number() => {
                Err(Error::type_mismatch(format!("'examples' must be a number, not {}", value.type_name())))
            }
            Some(value) => {
                let number = crate::life::catalog::long(Some(value.borrow()));
                if !order::equal(&value, &Value::Int64(number)) {
                    return Err(Error::bad_value("'examples' must be a whole number"));
                }
                // What fits into one answer.
                usize::try_from(number)
                    .map(|number| number.min(10_000))
                    .map_err(|_| Error::bad_value("'examples' must not be negative"))
            }
        }
    }
}

fn verbs() -> String {
    VERBS.iter().map(|verb| verb.name).collect::<Vec<_>>().join(", ")
}

/// What drivers and shells put into every command.
fn is_generic(field: &str) -> bool {
    field.starts_with('$')
        || matches!(
            field,
            "lsid"
                | "txnNumber"
                | "comment"
                | "maxTimeMS"
                | "readConcern"
                | "writeConcern"
                | "apiVersion"
                | "apiStrict"
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn examples_are_a_whole_number() {
        let examples = |value: bson::Bson| {
            let body = Doc::from(doc! { "pleach": "audit", "examples": value });
            Request::read("shop", &body).unwrap().examples().map_err(|error| error.code().number())
        };
        for (value, expected) in [
            (bson::Bson::from(7), Ok(7)),
            (7.0.into(), Ok(7)),
            (1_000_000_i64.into(), Ok(10_000)),
            ("x".into(), Err(14)),
            (bson::Bson::Null, Err(14)),
            (1.5.into(), Err(2)),
            (f64::NAN.into(), Err(2)),
            ((-1).into(), Err(2)),
        ] {
            assert_eq!(examples(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_be() {
        for (body, told) in [
            (doc! { "pleach": 1 }, "takes the name of a verb"),
            (doc! { "pleach": "aply" }, "does not know 'aply'"),
            (doc! { "pleach": "status", "rul": "x" }, "takes no field 'rul'"),
            (doc! { "pleach": "status", "withData": true }, "takes no field 'withData'"),
            (
                doc! { "pleach": "status", "declaration": { "database": "other", "collections": {} } },
                "is for `other`, the command runs on `shop`",
            ),
        ] {
            let body = Doc::from(body);
            let error = Request::read("shop", &body).err().unwrap();
            assert!(error.message().contains(told), "{error}");
        }
        let body = Doc::from(doc! { "pleach": "drop", "rule": "a.b", "withData": true });
        assert!(Request::read("shop", &body).unwrap().flag("with_data", false).unwrap());
        let body = Doc::from(doc! { "pleach": "status", "declaration": { "database": "shop", "collections": {} } });
        assert_eq!(Request::read("admin", &body).unwrap().db.as_deref(), Some("shop"));
        let body = Doc::from(doc! { "pleach": "status", "$db": "shop", "lsid": { "id": 1 } });
        assert!(Request::read("shop", &body).is_ok());
    }
}
