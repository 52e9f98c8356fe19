//! A rule's block in its one normal form: a declaration of that rule alone, in the contract's own spelling, every default
//! written out. The catalog keeps it, two versions of a rule are compared by it, and reading it gives the rule again.

use document::op::Namespace;
use document::value::Path;
use document::{Doc, DocWriter, Value};

/// Of a rule that keeps a field.
pub(crate) fn field_rule(host: &Namespace, pattern: &str, field: &Path, block: Doc<'static>) -> Doc<'static> {
    let mut fields = DocWriter::new();
    fields.append(&field.dotted(), &Value::Document(block));
    collection_rule(host, pattern, fields.finish())
}

/// Of a rule that is about its whole collection.
pub(crate) fn collection_rule(host: &Namespace, pattern: &str, block: Doc<'static>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("database", &Value::string(&*host.db));
    writer.start_document("collections").start_document(&host.collection);
    writer.append(pattern, &Value::Document(block));
    writer.end().end();
    writer.finish()
}

/// What stands under the pattern's name in [`collection_rule`].
pub(crate) fn collection_block<'a>(declaration: &Doc<'a>) -> Option<Doc<'a>> {
    let Some(Value::Document(collections)) = declaration.get("collections") else { return None };
    first(collections).and_then(first)
}

/// The block inside [`field_rule`].
pub(crate) fn field_block<'a>(declaration: &Doc<'a>) -> Option<Doc<'a>> {
    collection_block(declaration).and_then(first)
}

fn first(doc: Doc<'_>) -> Option<Doc<'_>> {
    match doc.iter().next() {
        Some((_, Value::Document(inner))) => Some(inner),
        _ => None,
    }
}
