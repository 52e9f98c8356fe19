//! Filters that find nothing, or not what was meant: a kind that is not declared, two kinds at once, a field that only another kind has.

use super::open::declared_names;
use super::{DocumentKind, Polymorphic, UnknownKinds};
use document::Value;
use document::filter::{Filter, Node, Test};
use document::value::Path;
use std::collections::BTreeSet;

pub(super) fn of(rule: &Polymorphic, filter: &Filter) -> Vec<String> {
    let mut conditions = Vec::new();
    conjoined(&filter.root, &mut conditions);
    let named: Vec<BTreeSet<String>> = conditions
        .iter()
        .filter(|(path, _)| **path == rule.discriminator)
        .filter_map(|(_, test)| values(test))
        .collect();
    let Some(kinds) = named.iter().cloned().reduce(|both, next| both.intersection(&next).cloned().collect()) else {
        return Vec::new();
    };
    let path = &rule.discriminator;
    if kinds.is_empty() {
        return vec![format!("the filter finds nothing: no document has two values of `{path}`")];
    }
    let unknown: Vec<&str> = kinds.iter().filter(|name| rule.kind(name).is_none()).map(|name| &**name).collect();
    if !unknown.is_empty() && rule.unknown == UnknownKinds::Reject {
        let unknown = unknown.join(", ");
        return vec![format!("no kind is called {unknown}: the kinds of {} are {}", rule.rule, rule.names())];
    }
    if !unknown.is_empty() {
        return Vec::new();
    }
    let asked: Vec<&DocumentKind> = kinds.iter().filter_map(|name| rule.kind(name)).collect();
    let mut notes = Vec::new();
    for (field, test) in &conditions {
        let name = field.first();
        if **field == rule.discriminator || !needs_presence(test) || asked.iter().any(|kind| declares(kind, name)) {
            continue;
        }
        let owners: Vec<&str> = rule.kinds.iter().filter(|kind| declares(kind, name)).map(|kind| &*kind.name).collect();
        if owners.is_empty() {
            continue;
        }
        let names: Vec<&str> = kinds.iter().map(|name| &**name).collect();
        notes.push(format!(
            "the filter contradicts itself: it asks for {path} {} and for `{field}`, a field of {} only",
            names.join(", "),
            owners.join(", ")
        ));
    }
    notes
}

/// The conditions that all must hold.
fn conjoined<'f>(node: &'f Node, into: &mut Vec<(&'f Path, &'f Test)>) {
    match node {
        Node::And(nodes) => nodes.iter().for_each(|node| conjoined(node, into)),
        Node::Or(nodes) => {
            if let [only] = nodes.as_slice() {
                conjoined(only, into);
            }
        }
        Node::Field { path, test: Test::All(tests) } => into.extend(tests.iter().map(|test| (path, test))),
        Node::Field { path, test } => into.push((path, test)),
        Node::Nor(_) | Node::Expr(_) | Node::Whole(_) => {}
    }
}

/// The texts that a path must be one of; `None` if others will do.
fn values(test: &Test) -> Option<BTreeSet<String>> {
    let text = |value: &Value<'static>| value.as_str().map(str::to_owned);
    match test {
        Test::Eq(value) => Some(BTreeSet::from([text(value)?])),
        Test::In(set) if set.regexes.is_empty() => set.values.iter().map(text).collect(),
        _ => None,
    }
}

/// Whether only documents that have the field pass.
fn needs_presence(test: &Test) -> bool {
    match test {
        Test::Eq(value) => !matches!(value, Value::Null),
        Test::In(set) => !set.values.iter().any(|value| matches!(value, Value::Null)),
        Test::Lt(_) | Test::Lte(_) | Test::Gt(_) | Test::Gte(_) | Test::Exists => true,
        Test::ElemMatch(_) | Test::ElemMatchValue(_) | Test::Size(_) | Test::Leaf(_) => true,
        Test::All(tests) => tests.iter().any(needs_presence),
        Test::Not(_) => false,
    }
}

/// Whether documents of the kind are declared to have the field.
fn declares(kind: &DocumentKind, name: &str) -> bool {
    let in_index = kind.indexes.iter().flat_map(|index| &index.keys).any(|(path, _)| path.first() == name);
    in_index
        || kind.required.iter().any(|path| path.first() == name)
        || kind.schema.as_ref().is_some_and(|schema| declared_names(schema).contains(name))
}
