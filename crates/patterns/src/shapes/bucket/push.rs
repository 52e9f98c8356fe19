//! What a filter on logical documents says about the buckets that may hold them: a condition on stored documents that lets
//! through every bucket with a match, and maybe others. The filter itself follows behind the unpacking.

use crate::shapes::bucket::{Body, Bucket, Layout, ReadingId, Slot, hex};
use document::filter::{Filter, InSet, Node, Test};
use document::value::Path;
use document::{Doc, Value};
use std::sync::Arc;

impl Bucket {
    pub fn push(&self, filter: &Filter) -> Filter {
        let pushed = match self.packed {
            true => self.push_packed(&filter.root),
            false => self.push_node(&filter.root),
        };
        pushed.map_or_else(Filter::all, Filter::from_node)
    }

    /// Nothing means that any bucket may have a match.
    fn push_node(&self, node: &Node) -> Option<Node> {
        match node {
            Node::And(nodes) => {
                let pushed: Vec<Node> = nodes.iter().filter_map(|node| self.push_node(node)).collect();
                (!pushed.is_empty()).then(|| Node::all_of(pushed))
            }
            Node::Or(nodes) => nodes.iter().map(|node| self.push_node(node)).collect::<Option<_>>().map(Node::Or),
            Node::Nor(_) => self.is_stored_alike(node).then(|| node.clone()),
            Node::Field { path, test } => self.push_field(path, test),
            Node::Expr(_) | Node::Whole(_) => None,
        }
    }

    /// Whether it reads nothing but series that are stored as clients know them.
    fn is_stored_alike(&self, node: &Node) -> bool {
        match node {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().all(|node| self.is_stored_alike(node))
            }
            Node::Field { path, .. } => matches!(self.role_of(path.first()), Some(Role::Series { hex: false, .. })),
            Node::Expr(_) | Node::Whole(_) => false,
        }
    }

    fn role_of(&self, name: &str) -> Option<Role<'_>> {
        if name == &*self.time {
            return Some(Role::Time);
        }
        if let Some(series) = self.by.iter().find(|series| &*series.field == name) {
            return Some(Role::Series { name: &series.field, hex: series.hex });
        }
        match &self.body {
            Body::Slots(slots) if slots.slot.field() == Some(name) => Some(Role::Slot),
            _ => None,
        }
    }

    fn push_field(&self, path: &Path, test: &Test) -> Option<Node> {
        if path.first() == "_id" {
            return self.push_id(path, test);
        }
        match self.role_of(path.first())? {
            Role::Series { hex: false, .. } => Some(Node::Field { path: path.clone(), test: test.clone() }),
            Role::Series { name, hex: true } if path.parts.len() == 1 => {
                each_test(test, &|test| hex_test(test).map(|test| Node::field(name, test)))
            }
            Role::Time if path.parts.len() == 1 => each_test(test, &|test| self.time_test(test)),
            Role::Slot if path.parts.len() == 1 => each_test(test, &|test| self.slot_test(test)),
            _ => None,
        }
    }

    fn push_id(&self, path: &Path, test: &Test) -> Option<Node> {
        let derived = match &self.body {
            Body::Readings(readings) => readings.reading_id == ReadingId::Time,
            Body::Slots(_) => true,
        };
        match path.parts.split_first()? {
            (_, []) if derived => each_test(test, &|test| match test {
                Test::Eq(id) => self.id_equals(id),
                Test::In(set) if set.regexes.is_empty() => {
                    set.values.iter().map(|id| self.id_equals(id)).collect::<Option<_>>().map(Node::Or)
                }
                _ => None,
            }),
            // A derived `_id` has the same fields as the document.
            (_, rest) if derived => self.push_field(&Path { parts: rest.into() }, test),
            _ => each_test(test, &|test| match test {
                Test::Eq(Value::Null) => None,
                Test::Eq(_) | Test::Lt(_) | Test::Lte(_) | Test::Gt(_) | Test::Gte(_) => {
                    Some(Node::field(&format!("readings.{}", path.dotted()), test.clone()))
                }
                Test::In(set) if !set.contains(&Value::Null) => {
                    Some(Node::field(&format!("readings.{}", path.dotted()), test.clone()))
                }
                _ => None,
            }),
        }
    }

    /// The bucket of a derived `_id`: one that has other fields, or in another order, is in none.
    fn id_equals(&self, id: &Value<'_>) -> Option<Node> {
        let nothing = Some(Node::Or(Vec::new()));
        let Value::Document(id) = id else { return nothing };
        let Some(parts) = self.parts_of_id(id) else { return nothing };
        let mut nodes = Vec::new();
        for (series, value) in self.by.iter().zip(parts.series) {
            match value {
                None => nodes.push(Node::field(&series.field, Test::Not(Box::new(Test::Exists)))),
                Some(value) if series.hex => nodes.push(Node::field(&series.field, hex_test(&Test::Eq(value))?)),
                Some(Value::Regex { .. }) => {}
                Some(value) => nodes.push(Node::field(&series.field, Test::Eq(value))),
            }
        }
        nodes.extend(self.time_test(&Test::Eq(Value::DateTime(parts.at))));
        if let Some(name) = parts.slot {
            nodes.extend(self.slot_test(&Test::Eq(Value::from(name))));
        }
        Some(Node::all_of(nodes))
    }

    pub(super) fn parts_of_id(&self, id: &Doc<'_>) -> Option<IdParts> {
        let mut fields = id.iter().peekable();
        let mut series = Vec::with_capacity(self.by.len());
        for declared in &self.by {
            let own = fields.next_if(|(name, _)| name.as_str() == &*declared.field);
            series.push(own.map(|(_, value)| value.into_owned()));
        }
        let (name, Value::DateTime(at)) = fields.next()? else { return None };
        let slot_field = match &self.body {
            Body::Slots(slots) => slots.slot.field(),
            Body::Readings(_) => None,
        };
        let slot = match (slot_field, fields.next()) {
            (None, None) => None,
            (Some(field), Some((name, Value::String(value)))) if name.as_str() == field => {
                Some(value.as_str().to_owned())
            }
            _ => return None,
        };
        (name.as_str() == &*self.time && fields.next().is_none()).then_some(IdParts { series, at, slot })
    }

    /// A condition on the time as one on the period's start.
    fn time_test(&self, test: &Test) -> Option<Node> {
        let start = |value: &Value<'_>| match value {
            Value::DateTime(at) => Some(Value::DateTime(self.every.start(*at))),
            _ => None,
        };
        let test = match test {
            Test::Eq(at) => Test::Eq(start(at)?),
            // Where a period begins, the next one is not asked for.
            Test::Lt(at) if start(at).as_ref() == Some(at) => Test::Lt(start(at)?),
            Test::Lt(at) | Test::Lte(at) => Test::Lte(start(at)?),
            Test::Gt(at) | Test::Gte(at) => Test::Gte(start(at)?),
            Test::In(set) if set.regexes.is_empty() => {
                let starts = set.values.iter().map(start).collect::<Option<Vec<_>>>()?;
                Test::among(starts)
            }
            _ => return None,
        };
        Some(Node::field(self.every.name(), test))
    }

    /// A condition on the field that names the slots.
    fn slot_test(&self, test: &Test) -> Option<Node> {
        let Body::Slots(slots) = &self.body else { return None };
        let Slot::Field { field, .. } = &slots.slot else { return None };
        let names: Vec<&str> = match test {
            Test::Eq(Value::String(name)) => vec![name.as_str()],
            Test::In(set) if set.regexes.is_empty() => {
                set.values.iter().map(|value| value.as_str()).collect::<Option<_>>()?
            }
            _ => return None,
        };
        match slots.layout {
            Layout::Array => Some(Node::field(&format!("items.{field}"), test.clone())),
            Layout::FieldNames => {
                let usable = |name: &&str| !(name.is_empty() || name.starts_with('$') || name.contains('.'));
                let there = names.into_iter().filter(usable);
                let nodes: Vec<Node> = there.map(|name| Node::field(&format!("items.{name}"), Test::Exists)).collect();
                match nodes.len() {
                    1 => nodes.into_iter().next(),
                    _ => Some(Node::Or(nodes)),
                }
            }
        }
    }
}

/// What a top-level field of a logical document is.
enum Role<'b> {
    Series { name: &'b str, hex: bool },
    Time,
    Slot,
}

/// What a derived `_id` says, as clients write it.
pub(super) struct IdParts {
    pub(super) series: Vec<Option<Value<'static>>>,
    pub(super) at: i64,
    slot: Option<String>,
}

/// Several operators on one field hold each for itself.
fn each_test(test: &Test, push: &dyn Fn(&Test) -> Option<Node>) -> Option<Node> {
    match test {
        Test::All(tests) => {
            let pushed: Vec<Node> = tests.iter().filter_map(|test| each_test(test, push)).collect();
            (!pushed.is_empty()).then(|| Node::all_of(pushed))
        }
        single => push(single),
    }
}

/// A condition on hex digits as one on bytes. Digits that are never given back equal nothing.
fn hex_test(test: &Test) -> Option<Test> {
    match test {
        Test::Exists => Some(Test::Exists),
        Test::Eq(Value::Null) => Some(Test::Eq(Value::Null)),
        Test::Eq(value) => Some(match bytes_of(value)? {
            Some(bytes) => Test::Eq(hex::binary(bytes)),
            None => Test::In(Arc::new(InSet::default())),
        }),
        Test::In(set) if set.regexes.is_empty() => {
            let mut values = Vec::with_capacity(set.values.len());
            for value in &set.values {
                match value {
                    Value::Null => values.push(Value::Null),
                    value => values.extend(bytes_of(value)?.map(hex::binary)),
                }
            }
            Some(Test::among(values))
        }
        _ => None,
    }
}

/// The bytes of hex digits; nothing for other texts. What is no text is not looked at.
pub(super) fn bytes_of(value: &Value<'_>) -> Option<Option<Vec<u8>>> {
    let Value::String(digits) = value else { return None };
    Some(document::value::hex::to_bytes(digits.as_str()))
}
