//! Samples of documents in files: Extended JSON, one document after the other or arrays of them, as `mongoexport` writes both.

use crate::input;
use crate::report::{Code, Failure};
use bson::Bson;
use document::Doc;
use patterns::declare::{self, Declaration, DeclarationText, Part};
use patterns::propose::Evidence;
use std::path::Path;

/// A sample need not be everything.
const MOST_BYTES: usize = 64 << 20;

/// Documents behind that number are not looked at.
const MOST_DOCUMENTS: usize = 20_000;

/// What a file says about one version of documents.
pub(crate) enum Version {
    Declaration(Declaration),
    Evidence(Evidence),
}

/// Reads a declaration, a sample or a JSON Schema. `number` is the field that holds the version.
pub(crate) fn read(path: &Path, number: &str) -> Result<Version, Failure> {
    let text = input::read(path, MOST_BYTES)
        .map_err(|failure| failure.hint("name two declarations, two samples of documents or two JSON Schemas"))?;
    let file = path.display().to_string();
    let documents = match documents(&text) {
        Ok(documents) => documents,
        // A declaration in braces looks like a sample with a mistake in it.
        Err(error) => return declared(&file, &text, Some(error)),
    };
    match documents.as_slice() {
        [only] if only.contains_key("collections") && only.contains_key("database") => declared(&file, &text, None),
        [only] if schema(only).is_some() => {
            let schema = Doc::from(schema(only).cloned().unwrap_or_default());
            Ok(Version::Evidence(Evidence::of_schema(&schema, number)))
        }
        [] => Err(Failure::of(Code::Word("file"), format!("{file} has no documents"))
            .hint("a sample is Extended JSON: one document on each line, or an array of documents")),
        _ => {
            let documents = documents.into_iter().map(Doc::from).collect();
            Ok(Version::Evidence(Evidence::of_documents(documents, number)))
        }
    }
}

/// `{ $jsonSchema: … }`, or what stands behind it.
fn schema(doc: &bson::Document) -> Option<&bson::Document> {
    match doc.get_document("$jsonSchema") {
        Ok(schema) => Some(schema),
        Err(_) => {
            let is_object = ["bsonType", "type"].iter().any(|key| doc.get_str(key).ok() == Some("object"));
            Some(doc).filter(|_| is_object && doc.get_document("properties").is_ok())
        }
    }
}

fn declared(file: &str, text: &str, sample_error: Option<String>) -> Result<Version, Failure> {
    let part = Part { file, content: DeclarationText::Yaml(text) };
    let checked = declare::from_parts(&[part], None).into_iter().next().map(|group| group.checked);
    if let Some(declaration) = checked.as_ref().and_then(|checked| checked.declaration.clone()) {
        return Ok(Version::Declaration(declaration));
    }
    let is_yaml = Path::new(file).extension().is_some_and(|end| end == "yaml" || end == "yml");
    let message = match (is_yaml, sample_error) {
        (false, Some(error)) => format!("{file} is no sample: {error}"),
        _ => format!("{file} is not a valid declaration"),
    };
    let findings = checked.map(|checked| checked.findings).unwrap_or_default();
    Err(Failure {
        findings: findings.iter().map(crate::snippet::json).collect(),
        ..Failure::of(Code::Word("file"), message).hint(
            "name two declarations (`pleach check` says what is wrong with one), or two samples: Extended JSON, one document on each line, or an array of documents",
        )
    })
}

fn documents(text: &str) -> Result<Vec<bson::Document>, String> {
    let mut documents = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>() {
        let value = value.map_err(|error| error.to_string())?;
        let items = match value {
            serde_json::Value::Array(items) => items,
            single => vec![single],
        };
        for item in items {
            match Bson::try_from(item) {
                Ok(Bson::Document(document)) => documents.push(document),
                Ok(_) => return Err(format!("what stands at place {} is no document", documents.len() + 1)),
                Err(error) => return Err(format!("document {}: {error}", documents.len() + 1)),
            }
            if documents.len() == MOST_DOCUMENTS {
                return Ok(documents);
            }
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_lines_or_arrays() {
        let ids = |text: &str| {
            documents(text).map(|found| found.iter().map(|doc| doc.get_i32("_id").unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(ids("{\"_id\": 1}\n{\"_id\": {\"$numberInt\": \"2\"}}\n"), Ok(vec![1, 2]));
        assert_eq!(ids("[{\"_id\": 1}, {\"_id\": 2}]"), Ok(vec![1, 2]));
        assert_eq!(ids(""), Ok(Vec::new()));
        assert!(ids("[1]").unwrap_err().contains("place 1"));
        assert!(ids("{\"_id\": ").is_err());
        assert!(ids("database: shop").is_err());
    }
}
