//! The wire command `{ pleach: "status" | "check" | "plan" | "apply" | "audit" | "repair" | "drop" | "explain", … }`, on the
//! database or on `admin`. The command line sends the same and prints the same answers.

use super::audit::Asked;
use super::records::At;
use super::shape::drop::Leaving;
use super::states::State;
use super::{Life, apply};
use crate::declare::{self, Checked, Declaration, Finding};
use document::backend::Session;
use document::op::Context;
use document::{ArrayWriter, Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// How many differences an audit names unless it is asked for more.
const EXAMPLES: usize = 100;

/// One verb of the command.
pub struct Verb {
    pub name: &'static str,
    pub help: &'static str,
    /// The fields it takes besides its own name.
    pub fields: &'static [&'static str],
}

/// All verbs, sorted by name.
pub const VERBS: &[Verb] = &[
    Verb {
        name: "apply",
        help: "Makes the rules what a declaration says: indexes, seeding, removal; waits for it unless told not to.",
        fields: &["declaration", "remove", "with_data", "wait"],
    },
    Verb {
        name: "audit",
        help: "Compares every derived value with what it should be and gives the differences.",
        fields: &["declaration", "rule", "examples"],
    },
    Verb { name: "check", help: "Says what is wrong with a declaration.", fields: &["declaration"] },
    Verb {
        name: "drop",
        help: "Removes a rule and, if asked, what it kept; readings become plain documents again.",
        fields: &["rule", "with_data", "keep_buckets", "wait"],
    },
    Verb { name: "explain", help: "Says what a command would do, rules included; runs nothing.", fields: &["command"] },
    Verb { name: "plan", help: "Says what applying a declaration would do.", fields: &["declaration"] },
    Verb {
        name: "repair",
        help: "Makes every derived value right that is not.",
        fields: &["declaration", "rule", "examples"],
    },
    Verb { name: "status", help: "Says where each rule is and what waits in the outbox.", fields: &[] },
];

impl Life {
    /// Answers the command.
    pub async fn command(self: &Arc<Self>, context: &Context, db: &str, body: &Doc<'_>) -> Result<Doc<'static>> {
        let asked = Request::read(db, body)?;
        let mut session = Session::default();
        let mut at = At { backend: &*self.backend, session: &mut session, context };
        if matches!(asked.verb, "apply" | "repair" | "drop") {
            self.refuse_raw()?;
        }
        if !matches!(asked.verb, "status" | "check") {
            self.catch_up().await?;
        }
        match asked.verb {
            "status" => self.status(&mut at, asked.db.as_deref()).await,
            "check" => Ok(findings(&asked.checked()?)),
            "plan" => {
                let declaration = asked.declaration()?;
                self.plan(&mut at, &declaration.database, &declaration.rules).await?.show(&mut at).await
            }
            "apply" => {
                let declaration = asked.declaration()?;
                let plan = self.plan(&mut at, &declaration.database, &declaration.rules).await?.show(&mut at).await?;
                let extent = apply::Extent {
                    remove: asked.flag("remove", false)?,
                    with_data: asked.flag("with_data", false)?,
                    additions_only: false,
                };
                self.apply(&declaration, extent).await?;
                if asked.flag("wait", true)? {
                    self.settle(&declaration.database).await?;
                }
                let mut answer = DocWriter::new();
                for (name, value) in plan.iter().filter(|(name, _)| name.as_str() == "steps") {
                    answer.append(name.as_str(), &value);
                }
                let status = self.status(&mut at, Some(&declaration.database)).await?;
                status.iter().for_each(|(name, value)| {
                    answer.append(name.as_str(), &value);
                });
                Ok(answer.finish())
            }
            "audit" => {
                let rules = self.asked(&asked, true)?;
                let report = self.audit(&rules, asked.examples()?).await?;
                if report.drifted() == 0 {
                    self.all_right(&mut at, &rules).await?;
                }
                Ok(report.show())
            }
            "repair" => {
                let rules = self.asked(&asked, false)?;
                let report = self.repair(&rules, asked.examples()?).await?;
                if report.failures.is_empty() {
                    self.all_right(&mut at, &rules).await?;
                }
                Ok(report.show())
            }
            "explain" => match body.get("command") {
                Some(Value::Document(command)) => self.explain(context, db, &command).await,
                _ => Err(missing("explain", "command")),
            },
            "drop" => {
                let rule = asked.text("rule")?.ok_or_else(|| missing("drop", "rule"))?;
                let with_data = asked.flag("with_data", false)?;
                let leaving = Leaving { with_data, keep_buckets: asked.flag("keep_buckets", false)? };
                let db = self.drop_rule(asked.db.as_deref(), &rule, leaving).await?;
                if asked.flag("wait", true)? {
                    self.settle(&db).await?;
                }
                let mut answer = DocWriter::new();
                answer.append("rule", &Value::from(&*rule)).append("database", &Value::from(&*db));
                answer.append("with_data", &Value::Bool(with_data));
                Ok(answer.finish())
            }
            other => Err(Error::new(Code::BadValue, format!("unknown verb {other}"))),
        }
    }

    /// These rules were found right, or made so: if they are all of a database, no audit is due there any more.
    async fn all_right(&self, at: &mut At<'_>, rules: &[Asked]) -> Result<()> {
        let is_among = |entry: &&super::Entry| rules.iter().any(|asked| Arc::ptr_eq(&asked.rule, &entry.rule));
        let (entries, mut databases) = (self.entries(), std::collections::BTreeSet::new());
        databases.extend(rules.iter().map(|asked| asked.rule.host.db.clone()));
        for db in databases {
            let of_it = || entries.iter().filter(|entry| entry.db == db);
            if of_it().count() > 0 && of_it().all(|entry| is_among(&entry)) && self.audit_due(at, &db).await? {
                self.audited(at, &db).await?;
            }
        }
        Ok(())
    }

    /// The rules that an audit or a repair is about: those of the declaration, or those that are kept; one of them if named.
    fn asked(&self, request: &Request<'_>, also_unkept: bool) -> Result<Vec<Asked>> {
        let entries = self.entries();
        let mut list: Vec<Asked> = match request.has("declaration") {
            false => entries
                .iter()
                .filter(|entry| request.db.as_deref().is_none_or(|db| *entry.db == *db))
                .map(|entry| Asked { rule: entry.rule.clone(), state: Some(entry.row.state.clone()) })
                .collect(),
            true => {
                let declaration = request.declaration()?;
                let kept = |name: &str| {
                    entries.iter().find(|entry| entry.db == declaration.database && *entry.rule.name == *name)
                };
                let asked = |rule: &crate::rule::Rule| match kept(&rule.name) {
                    // As it is kept: what the declaration would change is not drift.
                    Some(entry) => Asked { rule: entry.rule.clone(), state: Some(entry.row.state.clone()) },
                    None => Asked { rule: Arc::new(rule.clone()), state: None },
                };
                declaration.rules.iter().map(asked).collect()
            }
        };
        if let Some(name) = request.text("rule")? {
            list.retain(|asked| *asked.rule.name == *name);
            if list.is_empty() {
                return Err(Error::new(Code::BadValue, format!("there is no rule {name}")));
            }
        }
        if !also_unkept && let Some(asked) = list.iter().find(|asked| asked.state.is_none()) {
            let message = format!("rule {} is declared and not applied: nobody would keep it right", asked.rule.name);
            return Err(Error::new(Code::IllegalOperation, message).with_hint("run `pleach apply` first"));
        }
        list.retain(|asked| !matches!(asked.state, Some(State::Retiring)));
        Ok(list)
    }
}

/// A field's name as MongoDB's own commands would spell it.
fn camel_case(field: &str) -> Option<&'static str> {
    match field {
        "keep_buckets" => Some("keepBuckets"),
        "with_data" => Some("withData"),
        _ => None,
    }
}

/// The command as it was sent.
struct Request<'a> {
    verb: &'static str,
    body: &'a Doc<'a>,
    /// Nothing for all databases: it was sent to `admin`.
    db: Option<String>,
}

impl<'a> Request<'a> {
    fn read(db: &str, body: &'a Doc<'a>) -> Result<Request<'a>> {
        let verb = body.get("pleach");
        let Some(name) = verb.as_ref().and_then(|verb| verb.as_str()) else {
            return Err(Error::type_mismatch(format!("pleach takes the name of a verb: {}", verbs())));
        };
        let Some(verb) = VERBS.iter().find(|verb| verb.name == name) else {
            return Err(
                Error::bad_value(format!("pleach does not know '{name}'")).with_hint(format!("it knows {}", verbs()))
            );
        };
        for (field, _) in body.iter().skip(1) {
            let field = field.as_str();
            // Any verb takes a declaration: it says at least which database is meant.
            let is_known = |known: &&str| *known == field || camel_case(known).is_some_and(|other| other == field);
            if !verb.fields.iter().any(is_known) && field != "declaration" && !is_generic(field) {
                return Err(Error::bad_value(format!("pleach {name} takes no field '{field}'"))
                    .with_hint(format!("it takes {}", verb.fields.join(", "))));
            }
        }
        let asked = Request { verb: verb.name, body, db: (db != "admin").then(|| db.to_owned()) };
        match asked.has("declaration") && !verb.fields.contains(&"declaration") {
            true => Ok(Request { db: Some(asked.declaration()?.database.to_string()), ..asked }),
            false => Ok(asked),
        }
    }

    fn has(&self, field: &str) -> bool {
        self.body.contains(field)
    }

    fn checked(&self) -> Result<Checked> {
        match self.body.get("declaration") {
            Some(Value::Document(declaration)) => Ok(declare::from_bson(&declaration, self.db.as_deref())),
            // A file's text, so that findings name lines.
            Some(Value::String(text)) => Ok(declare::from_yaml("declaration", text.as_str())),
            Some(other) => Err(Error::type_mismatch(format!(
                "'declaration' must be a document or YAML text, not {}",
                other.type_name()
            ))),
            None => Err(missing(self.verb, "declaration")),
        }
    }

    fn declaration(&self) -> Result<Declaration> {
        let declaration = self.checked()?.into_result()?;
        match &self.db {
            Some(db) if **db != *declaration.database => Err(Error::bad_value(format!(
                "the declaration is for database {}, and the command was sent to {db}",
                declaration.database
            ))),
            _ => Ok(declaration),
        }
    }

    fn flag(&self, field: &str, otherwise: bool) -> Result<bool> {
        match self.body.get(field).or_else(|| camel_case(field).and_then(|field| self.body.get(field))) {
            None => Ok(otherwise),
            Some(value @ (Value::Bool(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_))) => {
                Ok(value.is_truthy())
            }
            Some(other) => Err(Error::type_mismatch(format!("'{field}' must be a boolean, not {}", other.type_name()))),
        }
    }

    fn text(&self, field: &str) -> Result<Option<String>> {
        match self.body.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().to_owned())),
            Some(other) => Err(Error::type_mismatch(format!("'{field}' must be a string, not {}", other.type_name()))),
        }
    }

    fn examples(&self) -> Result<usize> {
        match self.body.get("examples") {
            None => Ok(EXAMPLES),
            some => {
                let number = super::catalog::long(some);
                // What fits into one answer.
                usize::try_from(number)
                    .map(|number| number.min(10_000))
                    .map_err(|_| Error::bad_value("'examples' must not be negative"))
            }
        }
    }
}

fn missing(verb: &str, field: &str) -> Error {
    Error::failed_to_parse(format!("pleach {verb} needs '{field}'"))
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

/// `{ findings: [ { severity, rule, file, line, column, field, message, hint } ] }` (SEMANTICS F).
pub fn findings(checked: &Checked) -> Doc<'static> {
    let mut list = ArrayWriter::new();
    for finding in &checked.findings {
        list.push(&Value::Document(show(finding)));
    }
    let mut answer = DocWriter::new();
    answer.append("findings", &Value::Array(list.finish()));
    answer.finish()
}

fn show(finding: &Finding) -> Doc<'static> {
    let text = |text: Option<&str>| text.map_or(Value::Null, Value::string);
    let number = |number: Option<usize>| {
        number.map_or(Value::Null, |number| Value::Int32(i32::try_from(number).unwrap_or(i32::MAX)))
    };
    let mut doc = DocWriter::new();
    doc.append("severity", &Value::from(finding.severity.name()));
    doc.append("rule", &text(finding.rule.as_deref())).append("file", &text(finding.file.as_deref()));
    doc.append("line", &number(finding.spot.map(|spot| spot.line)));
    doc.append("column", &number(finding.spot.map(|spot| spot.column)));
    doc.append("field", &Value::from(&*finding.field)).append("message", &Value::from(&*finding.message));
    doc.append("hint", &text(finding.hint.as_deref()));
    doc.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn verbs_are_sorted_and_documented() {
        assert!(VERBS.is_sorted_by(|a, b| a.name < b.name));
        assert!(VERBS.iter().all(|verb| verb.help.ends_with('.')));
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
