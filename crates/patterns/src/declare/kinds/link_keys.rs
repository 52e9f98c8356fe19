//! How children find their host: `by` a field or an expression over the children, `each`, `match`, `create`.

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::{DeclaredField, KeyDef, ValueType};
use crate::rule::{KeyExpression, KeyPath, LinkKey};
use document::value::Path;
use document::{DocWriter, Value};
use std::sync::Arc;

pub(super) const BY_KEY: KeyDef = KeyDef {
    name: "by",
    help: "The field of the children that holds this document's `_id`, or an expression over a child that gives it: `{ $dateTrunc: … }`, `{ region: $region, … }`.",
    shape: ValueType::Either(&[ValueType::Path, ValueType::Operators]),
};

pub(super) const CREATE_KEY: KeyDef = KeyDef {
    name: "create",
    help: "A roll-up: a document appears with its first child and goes with its last.",
    shape: ValueType::Flag,
};

pub(super) const EACH_KEY: KeyDef = KeyDef {
    name: "each",
    help: "`by` holds an array: the child belongs to the document of each element.",
    shape: ValueType::Flag,
};

pub(super) const MATCH_KEY: KeyDef = KeyDef {
    name: "match",
    help: "The field of this collection that `by` refers to; `_id` if omitted.",
    shape: ValueType::Path,
};

/// What can be a key that an index serves, for hints.
const SERVED: &str = "a field, $dateTrunc of a field, or a document of these";

/// Both sides of a link to children.
pub(super) struct Keys {
    pub(super) local: KeyPath,
    pub(super) foreign: LinkKey,
    pub(super) create: bool,
}

impl Keys {
    /// Reads them; `source` is the collection of the children.
    pub(super) fn read(
        block: &Block<'_>,
        target: &DeclaredField,
        source: Option<&str>,
        findings: &mut Findings,
    ) -> Option<Keys> {
        let before = findings.errors();
        let by = block.require("by", "by: <the field of the children that holds this document's _id>", findings);
        let flag = |name: &str, findings: &mut Findings| match block.get(name) {
            Some(item) => item.flag(findings),
            None => Some(false),
        };
        let (each, create) = (flag("each", findings), flag("create", findings));
        let local = match block.get("match") {
            Some(item) => host_path(&item, findings),
            None => Some(Path::new("_id")),
        };
        let foreign = by.as_ref().and_then(|by| match by.node.to_value() {
            source @ Value::Document(_) => expression(by, source, findings),
            _ => child_path(by, each, findings),
        });
        let keys = Keys { local: KeyPath::new(local?), foreign: foreign?, create: create? };
        if each? && keys.foreign.path().is_none() {
            let hint = "an expression gives one key: leave out `each`";
            findings.error(&block.key_at("each"), "`each` beside an expression", hint);
        }
        if let Some(source) = source.filter(|source| **source == *target.host.collection) {
            keys.check_same_collection(block, source, findings);
        }
        if keys.create && keys.local.path.dotted() != "_id" {
            let hint = "a document is made with its key as `_id`: leave out `match`";
            findings.error(&block.key_at("match"), "`match` beside `create`", hint);
        }
        if let (Some(by), None) = (&by, keys.foreign.path()) {
            let message = "a child for which this gives null or an array, or cannot be computed, counts nowhere";
            findings.note(&by.at, message, "`plan`, `audit` and `status` (`unkeyed`) say how many there are");
        }
        if let (Some(by), false) = (&by, keys.foreign.is_seekable()) {
            unserved(block, by, source.unwrap_or("the children"), findings);
        }
        (findings.errors() == before).then_some(keys)
    }

    /// Children that are documents of the same collection: a comment counts its replies.
    fn check_same_collection(&self, block: &Block<'_>, source: &str, findings: &mut Findings) {
        if self.create {
            findings.error(
                &block.key_at("create"),
                format!("documents of `{source}` would make documents of `{source}`, and these the next"),
                "roll up into another collection",
            );
        } else if let Some(by) = self.foreign.path()
            && by.path == self.local.path
        {
            let at = block.get("by").map_or_else(|| block.at.clone(), |item| item.at);
            findings.error(
                &at,
                format!("every document of `{source}` would be its own child"),
                "name the field that holds the parent's `_id`: `by: parentId`",
            );
        }
    }

    /// Their part of the normal form, behind the rest.
    pub(super) fn write_flags(&self, own: &mut DocWriter) {
        for (name, is) in [("each", self.foreign.each()), ("create", self.create)] {
            if is {
                own.append(name, &Value::Bool(true));
            }
        }
        if self.local.path.dotted() != "_id" {
            own.append("match", &Value::string(self.local.path.dotted()));
        }
    }

    /// A finding where no index finds the children of a key: values that are looked up again need one (SEMANTICS R35).
    pub(super) fn require_served(&self, block: &Block<'_>, findings: &mut Findings) {
        if let (Some(by), false) = (block.get("by"), self.foreign.is_seekable()) {
            let message = "no index can serve this key, and this value is looked up among its children";
            findings.error(&by.at, message, format!("write `by` as {SERVED}, or keep a count, sum or avg"));
        }
        if let Some(by) = self.foreign.path().filter(|by| by.each) {
            note_each(block, &by.path, findings);
        }
    }

    /// `by`, as it is declared.
    pub(super) fn by(&self) -> Value<'static> {
        match &self.foreign {
            LinkKey::Path(key) => Value::string(key.path.dotted()),
            LinkKey::Expression(expression) => expression.source.clone(),
        }
    }
}

/// What an array of keys costs where values are looked up: an index takes one array of a document.
fn note_each(block: &Block<'_>, by: &Path, findings: &mut Findings) {
    let at = block.key_at("each");
    match block.get("sort") {
        Some(_) => findings.note(
            &at,
            format!("a child with an array in `{by}` and another in a field of `sort` is refused (171): the index that has the children of a key in order takes one"),
            "sort by fields that hold one value",
        ),
        None => findings.note(
            &at,
            "a value that leaves is looked up again among all children of its key: the index has `by` alone, so that values may be arrays too",
            "a `first` or `last` by an order is one seek",
        ),
    }
}

/// `match`: a field of the host that holds one value.
fn host_path(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Path> {
    let path = item.path("email", findings)?;
    if path.parts.iter().any(|part| part.index.is_some()) {
        let message = format!("`match: {path}` names a position in an array");
        findings.error(&item.at, message, "name a field that holds one value");
        return None;
    }
    Some(path)
}

/// `by`, a field of the children.
fn child_path(by: &BlockItem<'_>, each: Option<bool>, findings: &mut Findings) -> Option<LinkKey> {
    let (path, each) = (by.path("productId", findings)?, each == Some(true));
    let (message, hint) = if path.parts.iter().any(|part| part.index.is_some()) {
        let hint = match each {
            true => "name the array: each element links by itself",
            false => "name a field that holds one value",
        };
        (format!("`by: {path}` names a position in an array"), hint)
    } else if each && path.dotted() == "_id" {
        let message = "`_id` is never an array, so `each: true` has nothing to walk".to_owned();
        (message, "leave out `each`, or name the array in `by`")
    } else {
        return Some(LinkKey::Path(KeyPath { path, each }));
    };
    findings.error(&by.at, message, hint);
    None
}

fn expression(by: &BlockItem<'_>, source: Value<'static>, findings: &mut Findings) -> Option<LinkKey> {
    match KeyExpression::new(source) {
        Ok(expression) => Some(LinkKey::Expression(Arc::new(expression))),
        Err(error) => {
            // Without a hint it is no expression of the language at all.
            let (message, hint) = match error.hint() {
                Some(hint) => (format!("`by` is {}", error.message()), hint),
                None => (format!("`by` is no expression: {}", error.message()), "write an expression over a child"),
            };
            findings.error(&by.at, message, hint);
            None
        }
    }
}

/// A key whose children no index finds (SEMANTICS R35): each evaluation reads all of them.
fn unserved(block: &Block<'_>, by: &BlockItem<'_>, source: &str, findings: &mut Findings) {
    if block.get("lag").is_some() {
        findings.error(
            &block.key_at("lag"),
            format!("`lag` by a key that no index can serve: each late change would read all of `{source}`"),
            format!("leave out `lag`, or write `by` as {SERVED}"),
        );
    } else {
        findings.note(
            &by.at,
            format!("no index can serve this key: evaluating a document anew reads all of `{source}`"),
            format!("changes of children are added without that; where it matters, write `by` as {SERVED}"),
        );
    }
}
