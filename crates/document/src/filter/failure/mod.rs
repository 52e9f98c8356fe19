//! Why a document does not pass a collection's validator: the `details` of error 121.
//!
//! Works from the filter as the client wrote it, clause by clause: it runs only when a write was refused. A negation
//! explains why its inside matched; so every clause can be explained both ways.

mod considered;
mod operator;

#[cfg(test)]
mod tests;

use super::parse::{References, is_operator_document};
use super::{Filter, FilterParser, schema};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::pipeline::expr::{self, Names, Scope};
use crate::raw::{ArrayWriter, Doc, DocWriter};
use crate::value::Value;

/// What `errInfo.details` says of a document that the filter does not match.
pub fn failure_details(filter: &Filter, doc: &Doc<'_>, env: &Env) -> Doc<'static> {
    let explain = Explain { doc: doc.borrow(), env };
    explain.query(&filter.source, Outcome::Failed).unwrap_or_else(|error| {
        let mut writer = DocWriter::new();
        writer.append("code", &Value::Int32(error.code().number()));
        writer.append("codeName", &Value::from(error.code().name()));
        writer.append("errmsg", &Value::from(error.message()));
        writer.finish()
    })
}

/// What is to be explained of a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Failed,
    Matched,
}

impl Outcome {
    fn opposite(self) -> Outcome {
        match self {
            Outcome::Failed => Outcome::Matched,
            Outcome::Matched => Outcome::Failed,
        }
    }

    fn clauses(self) -> &'static str {
        match self {
            Outcome::Failed => "clausesNotSatisfied",
            Outcome::Matched => "clausesSatisfied",
        }
    }
}

/// One condition of a query document, as a query of its own.
enum Clause<'q> {
    /// `$and`, `$expr` and the like.
    Document {
        name: String,
        argument: Value<'q>,
    },
    /// A value or regular expression in the place of operators.
    Value {
        path: String,
        value: Value<'q>,
    },
    Operator {
        path: String,
        name: String,
        argument: Value<'q>,
        siblings: Doc<'q>,
    },
}

struct Explain<'d> {
    doc: Doc<'d>,
    env: &'d Env,
}

impl Explain<'_> {
    fn query(&self, query: &Doc<'_>, outcome: Outcome) -> Result<Doc<'static>> {
        self.all(&clauses(query), outcome)
    }

    /// One clause speaks for itself, several are an `$and`.
    fn all(&self, clauses: &[Clause<'_>], outcome: Outcome) -> Result<Doc<'static>> {
        match clauses {
            [only] => self.clause(only, outcome),
            clauses => {
                let explain = |clause: &Clause<'_>| self.clause(clause, outcome);
                let matches = |clause: &Clause<'_>| self.matches(&clause.query());
                list("$and", clauses, outcome, matches, explain, Clause::schema)
            }
        }
    }

    fn matches(&self, query: &Doc<'_>) -> Result<bool> {
        FilterParser::new(&mut Names::new()).document(query)?.matches(&self.doc, self.env, None)
    }

    fn clause(&self, clause: &Clause<'_>, outcome: Outcome) -> Result<Doc<'static>> {
        match clause {
            Clause::Document { name, argument } => self.document_clause(name, argument, outcome),
            Clause::Value { path, value } => {
                let name = if matches!(value, Value::Regex { .. }) { "$regex" } else { "$eq" };
                let mut specified = DocWriter::new();
                specified.append(path, value);
                operator::explain(&self.doc, path, name, value, specified.finish(), outcome)
            }
            Clause::Operator { path, name, argument, .. } if name == "$not" => {
                let inner = match argument {
                    Value::Document(operators) => operator_clauses(path, operators),
                    other => vec![Clause::Value { path: path.clone(), value: other.borrow() }],
                };
                let mut writer = DocWriter::new();
                writer.append("operatorName", &Value::from("$not"));
                writer.append("details", &Value::Document(self.all(&inner, outcome.opposite())?));
                Ok(writer.finish())
            }
            Clause::Operator { path, name, argument, .. } => {
                operator::explain(&self.doc, path, name, argument, clause.specified(), outcome)
            }
        }
    }

    fn document_clause(&self, name: &str, argument: &Value<'_>, outcome: Outcome) -> Result<Doc<'static>> {
        let specified = || -> Doc<'static> {
            let mut writer = DocWriter::new();
            writer.append(name, argument);
            writer.finish()
        };
        match (name, argument) {
            ("$and" | "$or" | "$nor", Value::Array(items)) => {
                let queries: Vec<Doc<'_>> = items
                    .iter()
                    .filter_map(|item| if let Value::Document(query) = item { Some(query) } else { None })
                    .collect();
                let wanted = if name == "$nor" { outcome.opposite() } else { outcome };
                let explain = |query: &Doc<'_>| self.query(query, wanted);
                list(name, &queries, wanted, |query| self.matches(query), explain, schema_of)
            }
            ("$jsonSchema", Value::Document(source)) if outcome == Outcome::Failed => {
                schema::explain(&schema::parse(source)?, &self.doc)
            }
            ("$jsonSchema", _) => {
                let mut writer = DocWriter::new();
                writer.append("operatorName", &Value::from(name)).append("reason", &Value::from("schema matched"));
                Ok(writer.finish())
            }
            ("$expr", argument) => {
                let expr = expr::parse(argument, &mut Names::new())?;
                let result = expr.eval(&mut Scope::new(self.doc.borrow(), self.env))?.into_owned();
                let mut writer = DocWriter::new();
                writer.append("operatorName", &Value::from(name));
                writer.append("specifiedAs", &Value::Document(specified()));
                writer.append(
                    "reason",
                    &Value::from(match outcome {
                        Outcome::Failed => "expression did not match",
                        Outcome::Matched => "expression did match",
                    }),
                );
                writer.append("expressionResult", &result);
                Ok(writer.finish())
            }
            _ => Err(Error::new(
                crate::Code::Location(4_994_600),
                format!(
                    "Cannot generate validation error details: no annotation found for expression {}",
                    crate::value::show::document(&specified())
                ),
            )),
        }
    }
}

/// The schema of a query that is nothing else.
fn schema_of(query: &Doc<'_>) -> Option<Doc<'static>> {
    match clauses(query).as_slice() {
        [only] => only.schema(),
        _ => None,
    }
}

/// The clauses with the wanted outcome, each explained. Of a schema the title and description are repeated beside its place.
fn list<C>(
    name: &str,
    clauses: &[C],
    wanted: Outcome,
    matches: impl Fn(&C) -> Result<bool>,
    explain: impl Fn(&C) -> Result<Doc<'static>>,
    schema: impl Fn(&C) -> Option<Doc<'static>>,
) -> Result<Doc<'static>> {
    let mut list = ArrayWriter::new();
    for (index, clause) in clauses.iter().enumerate() {
        if matches(clause)? == (wanted == Outcome::Matched) {
            let mut entry = DocWriter::new();
            entry.append("index", &Value::Int32(i32::try_from(index).unwrap_or(i32::MAX)));
            if let Some(schema) = schema(clause) {
                for about in ["title", "description"] {
                    entry.append(about, &schema.get(about).unwrap_or(Value::Missing));
                }
            }
            entry.append("details", &Value::Document(explain(clause)?));
            list.push(&Value::Document(entry.finish()));
        }
    }
    let mut writer = DocWriter::new();
    writer.append("operatorName", &Value::from(name));
    writer.append(wanted.clauses(), &Value::Array(list.finish()));
    Ok(writer.finish())
}

fn clauses<'q>(query: &Doc<'q>) -> Vec<Clause<'q>> {
    let mut clauses = Vec::new();
    for (name, value) in query.iter() {
        let path = name.as_str().to_owned();
        match value {
            _ if path == "$comment" => {}
            argument if path.starts_with('$') => clauses.push(Clause::Document { name: path, argument }),
            Value::Document(operators) if is_operator_document(&operators, References::Whole) => {
                clauses.extend(operator_clauses(&path, &operators));
            }
            value => clauses.push(Clause::Value { path, value }),
        }
    }
    clauses
}

fn operator_clauses<'q>(path: &str, operators: &Doc<'q>) -> Vec<Clause<'q>> {
    let operator = |(name, argument): (crate::Text<'q>, Value<'q>)| Clause::Operator {
        path: path.to_owned(),
        name: name.as_str().to_owned(),
        argument,
        siblings: operators.clone(),
    };
    operators.iter().filter(|(name, _)| name.as_str() != "$options").map(operator).collect()
}

impl Clause<'_> {
    /// The schema that the clause asks for.
    fn schema(&self) -> Option<Doc<'static>> {
        match self {
            Clause::Document { name, argument: Value::Document(schema) } if name == "$jsonSchema" => {
                Some(schema.clone().into_owned())
            }
            _ => None,
        }
    }

    /// What `specifiedAs` says: a regular expression shows all that stands beside it.
    fn specified(&self) -> Doc<'static> {
        match self {
            Clause::Operator { path, name, siblings, .. } if name == "$regex" => {
                let mut writer = DocWriter::new();
                writer.append(path, &Value::Document(siblings.borrow()));
                writer.finish()
            }
            _ => self.query(),
        }
    }

    /// The clause as a query document.
    fn query(&self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        match self {
            Clause::Document { name, argument } => {
                writer.append(name, argument);
            }
            Clause::Value { path, value } => {
                writer.append(path, value);
            }
            Clause::Operator { path, name, argument, siblings } => {
                writer.start_document(path).append(name, argument);
                if name == "$regex" {
                    writer.append("$options", &siblings.get("$options").unwrap_or(Value::Missing));
                }
                writer.end();
            }
        }
        writer.finish()
    }
}
