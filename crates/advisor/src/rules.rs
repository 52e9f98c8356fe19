//! The rules that are in force: what they keep is no symptom.

use crate::reader::{Bound, Reader};
use crate::values::text;
use document::Value;
use document::filter::Filter;
use document::op::{AdminOp, Find};

/// So many rules of a database are read.
const RULES: u64 = 2_000;

/// A rule, by its name: `collection.field`, `collection.bucket` …
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleInForce {
    pub name: String,
    /// The collections and paths that its declaration names.
    pub words: Vec<String>,
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

    /// Whether its declaration names all of these.
    pub fn names(&self, words: &[&str]) -> bool {
        words.iter().all(|word| self.words.iter().any(|known| known == word))
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
                rules.push(RuleInForce { name: text(&rule, "rule"), words: Vec::new() });
            }
        }
    }
    if !rules.is_empty() {
        read_declarations(reader, db, &mut rules).await;
    }
    rules
}

/// The names in the rules' declarations, from their catalog; none where it may not be read.
async fn read_declarations(reader: &Reader<'_>, db: &str, rules: &mut [RuleInForce]) {
    let find = Find::matching(patterns::rule::names::catalog(db), Filter::all());
    let rows = reader.find(find, Bound::documents(RULES)).await.unwrap_or_default();
    for row in &rows {
        let name = text(row, "_id");
        if let (Some(rule), Some(Value::Document(declared))) =
            (rules.iter_mut().find(|rule| rule.name == name), row.get("declaration"))
        {
            collect(&Value::Document(declared), &mut rule.words);
        }
    }
}

fn collect(value: &Value<'_>, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.as_str().to_owned()),
        Value::Document(inner) => inner.iter().for_each(|(_, value)| collect(&value, words)),
        Value::Array(items) => items.iter().for_each(|item| collect(&item, words)),
        _ => {}
    }
}
