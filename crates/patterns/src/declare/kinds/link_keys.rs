//! How children find their host: `by` a field or an expression, `each`, `match`, `create`. All but a plain field are built and not
//! offered yet: they are refused unless a test has asked for them ([`read_planned_forms`]).

use crate::declare::block::{Block, BlockItem};
use crate::declare::finding::Findings;
use crate::declare::kinds::{DeclaredField, KeyDef, ValueType};
use crate::rule::{KeyExpression, KeyPath, LinkKey};
use document::value::Path;
use document::{DocWriter, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

static READS_PLANNED: AtomicBool = AtomicBool::new(false);

/// From now on this process reads forms of declarations that are not offered yet: for tests of what they will be made of.
#[doc(hidden)]
pub fn read_planned_forms() {
    READS_PLANNED.store(true, Ordering::Relaxed);
}

pub(super) fn reads_planned() -> bool {
    READS_PLANNED.load(Ordering::Relaxed)
}

/// The keys that come with the planned forms.
const PLANNED_KEYS: [KeyDef; 2] = [
    KeyDef { name: "each", help: "An array in `by` links once per element.", shape: ValueType::Flag },
    KeyDef { name: "match", help: "The field of this collection that `by` refers to.", shape: ValueType::Path },
];

/// The keys of a block with those that are planned.
pub(super) fn with_planned(keys: &[KeyDef]) -> Vec<KeyDef> {
    match reads_planned() {
        true => keys.iter().copied().chain(PLANNED_KEYS).collect(),
        false => keys.to_vec(),
    }
}

/// Both sides of a link to children.
pub(super) struct Keys {
    pub(super) local: KeyPath,
    pub(super) foreign: LinkKey,
    pub(super) create: bool,
}

impl Keys {
    pub(super) fn read(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Keys> {
        let by = block.require("by", "by: <the field of the children that holds this document's _id>", findings)?;
        let flag = |name: &str, findings: &mut Findings| match block.get(name).filter(|_| reads_planned()) {
            Some(item) => item.flag(findings),
            None => Some(false),
        };
        let (each, create) = (flag("each", findings), flag("create", findings));
        let matched = match block.get("match").filter(|_| reads_planned()) {
            Some(item) => item.path("email", findings),
            None => Some(Path::new("_id")),
        };
        let foreign = match by.node.to_value() {
            source @ Value::Document(_) if reads_planned() => expression(&by, source, findings),
            _ => by.path("productId", findings).map(|path| LinkKey::Path(KeyPath { path, each: each == Some(true) })),
        };
        let keys = Keys { local: KeyPath::new(matched?), foreign: foreign?, create: create? };
        let refuse = |key: &str, message: &str, hint: &str, findings: &mut Findings| {
            findings.error(&block.key_at(key), message, hint);
        };
        if each? && keys.foreign.path().is_none() {
            refuse("each", "`each` beside an expression", "an expression gives one key: leave out `each`", findings);
            return None;
        }
        if !keys.create {
            return Some(keys);
        }
        if keys.local.path.dotted() != "_id" {
            refuse(
                "match",
                "`match` beside `create`",
                "a document is made with its key as `_id`: leave out `match`",
                findings,
            );
            return None;
        }
        if block.get("lag").is_some() {
            refuse("lag", "`lag` beside `create` is not there yet", "leave out `lag`", findings);
            return None;
        }
        let source = block.get("from").or_else(|| block.get("count")).map(|item| item.node.to_value());
        if source.as_ref().and_then(|source| source.as_str()) == Some(&*target.host.collection) {
            refuse(
                "create",
                "documents of a collection that make documents of the same",
                "name another collection",
                findings,
            );
            return None;
        }
        Some(keys)
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

    /// `by`, as it is declared.
    pub(super) fn by(&self) -> Value<'static> {
        match &self.foreign {
            LinkKey::Path(key) => Value::string(key.path.dotted()),
            LinkKey::Expression(expression) => expression.source.clone(),
        }
    }
}

fn expression(by: &BlockItem<'_>, source: Value<'static>, findings: &mut Findings) -> Option<LinkKey> {
    match KeyExpression::new(source) {
        Ok(expression) => Some(LinkKey::Expression(Arc::new(expression))),
        Err(error) => {
            let hint = error.hint().unwrap_or("write an expression over the children").to_owned();
            findings.error(&by.at, format!("`by` is {}", error.message()), hint);
            None
        }
    }
}
