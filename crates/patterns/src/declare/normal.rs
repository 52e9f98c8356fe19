//! A rule's block in its one normal form: a declaration of that rule alone, in the contract's own spelling, every default
//! written out. The catalog keeps it, two versions of a rule are compared by it, and reading it gives the rule again.

use document::op::Namespace;
use document::value::Path;
use document::{Doc, DocWriter, Value};

pub(crate) fn one_rule(host: &Namespace, pattern: &str, field: &Path, block: Doc<'static>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("database", &Value::string(&*host.db));
    writer.start_document("collections").start_document(&host.collection).start_document(pattern);
    writer.append(&field.dotted(), &Value::Document(block));
    writer.end().end().end();
    writer.finish()
}

/// The block inside [`one_rule`].
pub(crate) fn block<'a>(declaration: &Doc<'a>) -> Option<Doc<'a>> {
    let inner = |doc: Doc<'a>| match doc.iter().next() {
        Some((_, Value::Document(inner))) => Some(inner),
        _ => None,
    };
    let Some(Value::Document(collections)) = declaration.get("collections") else { return None };
    inner(collections).and_then(inner).and_then(inner)
}
