//! The rules that are in force: what they keep is no symptom.

use crate::reader::Reader;
use crate::values::text;
use document::Value;
use document::op::AdminOp;

/// A rule, by its name: `collection.field`, `collection.bucket` …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInForce {
    pub name: String,
}

impl RuleInForce {
    /// Whether it keeps the field of the collection, or one in or above it.
    pub fn keeps(&self, collection: &str, field: &str) -> bool {
        let Some(kept) = self.kept_of(collection) else { return false };
        let within = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        within(field, kept) || within(kept, field)
    }

    /// What it keeps of the collection: a path, or the pattern's word.
    pub fn kept_of(&self, collection: &str) -> Option<&str> {
        self.name.strip_prefix(collection)?.strip_prefix('.')
    }
}

/// The rules of a database. None where nobody can say: a backend without rules, or without the right to read them.
pub async fn in_force(reader: &Reader<'_>, db: &str) -> Vec<RuleInForce> {
    let body = crate::values::figures([("pleach", Value::from("status"))]);
    let op = AdminOp::Extension { command: "pleach", db: db.to_owned(), body };
    let Ok(answers) = reader.admin(op).await else { return Vec::new() };
    let mut rules = Vec::new();
    for answer in &answers {
        let Some(Value::Array(list)) = answer.get("rules") else { continue };
        for rule in list.iter() {
            if let Value::Document(rule) = rule {
                rules.push(RuleInForce { name: text(&rule, "rule") });
            }
        }
    }
    rules
}
