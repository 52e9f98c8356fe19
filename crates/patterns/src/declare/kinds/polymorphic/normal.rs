//! A polymorphic block in its normal form: every kind with all that it inherits.

use super::UNKNOWN;
use crate::constraints::Polymorphic;
use crate::constraints::polymorphic::KindIndex;
use crate::declare::kinds::extended_reference::word;
use crate::declare::kinds::sort_keys;
use crate::mql;
use document::{Doc, DocWriter, Value};

pub(super) fn block(rule: &Polymorphic) -> Doc<'static> {
    let mut own = DocWriter::new();
    own.append("discriminator", &Value::string(rule.discriminator.dotted()));
    own.start_document("kinds");
    for kind in &rule.kinds {
        own.start_document(&kind.name);
        if !kind.required.is_empty() {
            own.append("required", &mql::list(kind.required.iter().map(|path| Value::string(path.dotted()))));
        }
        if let Some(schema) = &kind.schema {
            own.append("schema", &Value::Document(schema.borrow()));
        }
        indexes(&kind.indexes, &mut own);
        own.end();
    }
    own.end();
    own.append("unknown", &Value::string(word(UNKNOWN, rule.unknown)));
    indexes(&rule.indexes, &mut own);
    if !rule.text.is_empty() {
        own.start_document("text");
        for (path, weight) in &rule.text {
            own.append(&path.dotted(), &Value::Int32(*weight));
        }
        own.end();
    }
    own.finish()
}

fn indexes(indexes: &[KindIndex], own: &mut DocWriter) {
    if indexes.is_empty() {
        return;
    }
    let index = |index: &KindIndex| {
        let unique = if index.unique { Value::Bool(true) } else { Value::Missing };
        mql::object([("key", Value::Document(sort_keys::document(&index.keys))), ("unique", unique)])
    };
    own.append("indexes", &mql::list(indexes.iter().map(index)));
}
