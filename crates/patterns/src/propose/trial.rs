//! What the proposed steps make of the older sample, by the lens that the declaration gives.

use super::evidence::{Evidence, KnownField, value_at};
use crate::rule::lens::Lens;
use document::{Doc, DocWriter, Env, Result, Value};
use std::collections::BTreeMap;

/// How far the steps lead.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// In the older sample.
    pub documents: usize,
    /// Of these, that have the fields and types of the newer sample in the end.
    pub same_shape: usize,
    /// Documents that are in both samples.
    pub in_both: usize,
    /// Of these, that are what the newer sample has.
    pub equal: usize,
    /// The first document that is not of the newer shape, and why.
    pub example: Option<String>,
}

impl Trial {
    pub(super) fn of(lens: &Lens, old: &Evidence, new: &Evidence, number: &str) -> Result<Trial> {
        let mut trial = Trial { documents: old.documents.len(), ..Trial::default() };
        let by_id: BTreeMap<Vec<u8>, &Doc<'static>> = new.documents.iter().map(|doc| (id(doc), doc)).collect();
        let before_newest = lens.newest() - 1;
        for doc in &old.documents {
            let numbered = with_number(doc, number, before_newest);
            let made = lens.up(&numbered, &Env::fixed())?.unwrap_or(numbered);
            let shape = Evidence::of_documents(vec![made.clone()], number);
            match misfit(&shape, new) {
                None => trial.same_shape += 1,
                Some(why) if trial.example.is_none() => {
                    let id = doc.get("_id").unwrap_or(Value::Missing);
                    trial.example = Some(format!("document {}: {why}", crate::languages::yaml::flow(&id)));
                }
                Some(_) => {}
            }
            if let Some(after) = by_id.get(&id(doc)) {
                trial.in_both += 1;
                trial.equal += usize::from(fields(&made, number) == fields(after, number));
            }
        }
        Ok(trial)
    }
}

/// Why a document is not like those of the newer version.
fn misfit(made: &Evidence, new: &Evidence) -> Option<String> {
    for field in &made.fields {
        let path = field.path.dotted();
        let Some(known) = new.field(&field.path) else {
            let is_place = field.types.iter().all(|name| *name == "object") && new.is_document(&field.path);
            if is_place {
                continue;
            }
            return Some(format!("it has `{path}`"));
        };
        if let Some(other) = field.types_of_values().find(|name| !allows(known, name)) {
            return Some(format!("its `{path}` is {other}"));
        }
    }
    let is_missing = |known: &&KnownField| known.always && made.field(&known.path).is_none();
    new.fields.iter().find(is_missing).map(|known| format!("it has no `{}`", known.path.dotted()))
}

fn allows(known: &KnownField, name: &str) -> bool {
    known.types.is_empty() || known.types.contains(&name)
}

fn id(doc: &Doc<'_>) -> Vec<u8> {
    let mut own = DocWriter::new();
    own.append("", &doc.get("_id").unwrap_or(Value::Null));
    own.finish().as_bytes().to_vec()
}

/// The sample is of the version before the newest, whatever its documents say.
fn with_number(doc: &Doc<'_>, number: &str, version: i32) -> Doc<'static> {
    let mut own = DocWriter::new();
    for (name, value) in doc.iter().filter(|(name, _)| name.as_str() != number) {
        own.append(name.as_str(), &value);
    }
    own.append(number, &Value::Int32(version));
    own.finish()
}

/// The fields in the order of their names, without the number.
fn fields(doc: &Doc<'_>, number: &str) -> Vec<(String, Vec<u8>)> {
    let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
    let evidence = Evidence::of_documents(vec![doc.borrow().into_owned()], number);
    for field in &evidence.fields {
        let mut own = DocWriter::new();
        own.append("", &value_at(doc, &field.path).unwrap_or(Value::Missing));
        fields.push((field.path.dotted(), own.finish().as_bytes().to_vec()));
    }
    fields.sort();
    fields
}
