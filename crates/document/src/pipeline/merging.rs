//! What `$merge` does with one result, as an update of its target.

use super::expr::{self, Names, Scope};
use super::sink::{MergeSpec, WhenMatched, WhenNotMatched};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::op::UpdateStatement;
use crate::raw::{Doc, DocWriter};
use crate::update::Update;
use crate::value::{Path, Value};

impl MergeSpec {
    /// Whether a result that matches nothing is inserted as it is, not as what the update makes of an empty document.
    pub fn inserts_as_it_is(&self) -> bool {
        matches!((&self.matched, self.not_matched), (WhenMatched::Pipeline { .. }, WhenNotMatched::Insert))
    }

    /// The update that merges one result into the target.
    pub fn statement(&self, doc: Doc<'static>, env: &Env) -> Result<UpdateStatement> {
        let doc = self.with_id(doc, env);
        let mut filter = DocWriter::new();
        for path in &self.on {
            let parts = Path::new(path);
            let value = expr::field_of_document(&doc.borrow(), &parts.parts);
            if path != "_id" && value.is_nullish() {
                return Err(Error::new(
                    Code::Location(51132),
                    "$merge write error: 'on' field cannot be missing, null, undefined or an array",
                ));
            }
            if matches!(value, Value::Array(_)) {
                let message = format!("$merge write error: 'on' field '{path}' is an array");
                return Err(Error::new(Code::Location(51185), message));
            }
            // `$eq` takes a document or a regex as the value that it is.
            filter.start_document(path).append("$eq", &value).end();
        }
        let filter = Filter::parse(&filter.finish(), &mut Names::new())?;
        let mut names = Names::new();
        let mut constants = None;
        let update = match &self.matched {
            WhenMatched::Replace => Value::Document(doc),
            WhenMatched::KeepExisting => Value::Document(single("$setOnInsert", doc)),
            WhenMatched::Merge | WhenMatched::Fail => Value::Document(single("$set", doc)),
            WhenMatched::Pipeline { stages, variables } => {
                let bound = match variables {
                    Some(variables) => variables_of(variables, &doc, env)?,
                    None => single("new", doc),
                };
                for (name, value) in bound.iter() {
                    names.bind_constant(name.as_str(), value);
                }
                constants = Some(bound);
                Value::Array(stages.clone())
            }
        };
        let mut update = Update::parse(&update, &[], &mut names)?;
        (update.constants, update.whole) = (constants, true);
        let upsert = self.not_matched == WhenNotMatched::Insert;
        Ok(UpdateStatement { filter, update, multi: false, upsert, hint: None })
    }

    /// A result without `_id` gets a new one where `_id` decides.
    pub fn with_id(&self, doc: Doc<'static>, env: &Env) -> Doc<'static> {
        if doc.contains("_id") || !self.on.iter().any(|path| path == "_id") {
            return doc;
        }
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 20);
        writer.append("_id", &Value::ObjectId((env.new_id)()));
        for (name, value) in doc.borrow().iter() {
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    }
}

fn single(name: &str, doc: Doc<'static>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append(name, &Value::Document(doc));
    writer.finish()
}

/// The `let` of `$merge`: expressions over the result.
fn variables_of(variables: &Doc<'_>, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
    let mut bound = DocWriter::new();
    for (name, value) in variables.iter() {
        let expr = expr::parse(&value, &mut Names::new())?;
        let value = expr.eval(&mut Scope::new(doc.borrow(), env))?;
        bound.append(name.as_str(), &value);
    }
    Ok(bound.finish())
}
