//! `$documents`: the documents are written in the pipeline itself; no collection is read.

use super::expr::{self, Expr, Scope};
use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, from_documents};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::{Path, Value, show};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$documents",
    help: "Gives the documents of an array that an expression makes, instead of a collection's.",
    parse,
    place: Place::First,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    if matches!(spec, Value::Document(doc) if doc.is_empty()) {
        let message = "An empty sub-projection is not a valid value. Found empty object at path";
        return Err(Error::new(Code::Location(51270), message).context("Invalid $documents :: caused by :: "));
    }
    Parsed::one(Documents(expr::parse(spec, parser.names)?))
}

#[derive(Debug)]
struct Documents(Expr);

impl Stage for Documents {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, _input: Rows, run: &Run) -> Result<Rows> {
        let mut scope = Scope::new(Doc::empty(), &run.env);
        let Value::Array(array) = self.0.eval(&mut scope)? else {
            return Err(Error::new(Code::Location(5_858_203), "an array is expected"));
        };
        let documents = array.iter().map(|item| match item {
            Value::Document(doc) => Ok(doc.into_owned()),
            other => Err(Error::new(
                Code::Location(40228),
                format!(
                    "elements within the array passed to $documents must evaluate to an object, but resulting value \
                     was: {}. Type of resulting value: '{}'",
                    show::computed(&other),
                    other.type_name()
                ),
            )),
        });
        Ok(from_documents(documents.collect::<Result<Vec<_>>>()?))
    }

    fn role(&self) -> Role<'_> {
        Role::Source
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        Some(Vec::new())
    }
}
