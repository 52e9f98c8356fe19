//! A new index compared with those that exist: it may be there already, or one may be in its way.

use crate::catalog::{Collection, Index};
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::value::{order, show};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// Options that make a different index of the same key pattern.
const SIGNATURE: &[&str] = &["unique", "sparse", "partialFilterExpression"];

/// Whether an index like `spec` is there: the same one, or one that is in its way.
pub(super) fn find<'c>(collection: &'c Collection, spec: &Doc<'_>) -> Result<Option<&'c Arc<Index>>> {
    let name = spec.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    const DETAILS: &[&str] =
        &["expireAfterSeconds", "weights", "default_language", "language_override", "textIndexVersion"];
    let both = |message: &str, existing: &Index| {
        format!("{message} Requested index: {}, existing index: {}", message_form(spec), message_form(&existing.spec))
    };
    if let Some(existing) = collection.index(&name) {
        if !same(spec, &existing.spec, SIGNATURE) {
            let message = "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation.";
            return Err(Error::new(Code::IndexKeySpecsConflict, both(message, existing)));
        }
        if !same(spec, &existing.spec, DETAILS) {
            let message = "An equivalent index already exists with the same name but different options.";
            return Err(Error::new(Code::IndexOptionsConflict, both(message, existing)));
        }
        return Ok(Some(existing));
    }
    match collection.indexes.iter().find(|existing| same(spec, &existing.spec, SIGNATURE)) {
        None => match collection.text_index().filter(|_| spec.contains("weights")) {
            None => Ok(None),
            Some(existing) => Err(Error::new(
                Code::CannotCreateIndex,
                format!("only one text index per collection allowed, found existing text index \"{}\"", existing.name),
            )),
        },
        Some(existing) if same(spec, &existing.spec, DETAILS) => Err(Error::new(
            Code::IndexOptionsConflict,
            format!("Index already exists with a different name: {}", existing.name),
        )),
        Some(existing) => {
            let message = "An equivalent index already exists with a different name and options.";
            Err(Error::new(Code::IndexOptionsConflict, both(message, existing)))
        }
    }
}

/// The same key pattern and the same of these options; absent is false.
fn same(left: &Doc<'_>, right: &Doc<'_>, options: &[&str]) -> bool {
    let key = |spec: &Doc<'_>| match spec.get("key") {
        Some(Value::Document(key)) => key.into_owned(),
        _ => Doc::empty(),
    };
    let option = |spec: &Doc<'_>, name: &str| match spec.get(name) {
        None | Some(Value::Bool(false)) => Value::Missing,
        // The same condition written in another way is the same.
        Some(Value::Document(filter)) => match Filter::parse(&filter, &mut Names::new()) {
            Ok(parsed) => Value::Document(parsed.root.to_query()),
            Err(_) => Value::Document(filter.into_owned()),
        },
        Some(value) => value.into_owned(),
    };
    order::compare_documents(&key(left), &key(right)).is_eq()
        && options.iter().all(|name| order::equal(&option(left, name), &option(right, name)))
}

/// In messages `unique` stands first.
fn message_form(spec: &Doc<'_>) -> String {
    let mut writer = DocWriter::new();
    writer.append("v", &spec.get("v").unwrap_or(Value::Int32(2)));
    writer.append("unique", &spec.get("unique").unwrap_or(Value::Missing));
    for (name, value) in spec.iter().filter(|(name, _)| !matches!(name.as_str(), "v" | "unique")) {
        writer.append(name.as_str(), &value);
    }
    show::document(&writer.finish()).to_string()
}
