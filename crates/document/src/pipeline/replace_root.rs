//! `$replaceRoot` and `$replaceWith`: each document gives way to one computed from it.

use super::map::map;
use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, Transform};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::pipeline::expr::{self, Expr, Scope};
use crate::raw::{Doc, DocWriter};
use crate::value::{Path, Value, show};
use std::sync::Arc;

pub(super) const REPLACE_ROOT: StageDef = StageDef {
    name: "$replaceRoot",
    help: "Replaces each document with one computed from it.",
    parse: parse_root,
    place: Place::Anywhere,
    refused: false,
};

pub(super) const REPLACE_WITH: StageDef = StageDef {
    name: "$replaceWith",
    help: "Replaces each document with one computed from it; a shorter $replaceRoot.",
    parse: |spec, parser| finish(spec, "'replacement document' ", parser),
    place: Place::Anywhere,
    refused: false,
};

fn parse_root(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(spec) = spec else {
        let message = format!("expected an object as specification for $replaceRoot stage, got {}", spec.type_name());
        return Err(Error::new(Code::Location(40229), message));
    };
    if let Some((name, _)) = spec.iter().find(|(name, _)| name.as_str() != "newRoot") {
        let message = format!("BSON field '$replaceRoot.{name}' is an unknown field.");
        return Err(Error::new(Code::Location(40415), message));
    }
    let Some(new_root) = spec.get("newRoot") else {
        let message = "BSON field '$replaceRoot.newRoot' is missing but a required field";
        return Err(Error::new(Code::Location(40414), message));
    };
    finish(&new_root, "'newRoot' expression ", parser)
}

fn finish(new_root: &Value<'_>, called: &'static str, parser: &mut Parser<'_>) -> Result<Parsed> {
    Parsed::one(ReplaceRoot { new_root: expr::parse(new_root, parser.names)?, called })
}

#[derive(Debug)]
struct ReplaceRoot {
    new_root: Expr,
    /// What the expression is called in messages.
    called: &'static str,
}

impl Stage for ReplaceRoot {
    fn name(&self) -> &'static str {
        REPLACE_ROOT.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(map(self, input, run))
    }

    fn role(&self) -> Role<'_> {
        Role::Transform(self)
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        self.new_root.reads()
    }
}

impl Transform for ReplaceRoot {
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        let mut scope = Scope::new(doc.borrow(), env);
        match self.new_root.eval(&mut scope)? {
            Value::Document(new_root) => Ok(new_root.into_owned()),
            other => Err(Error::new(
                Code::Location(40228),
                format!(
                    "{} must evaluate to an object, but resulting value was: {}. Type of resulting value: '{}'. \
                     Input document: {}",
                    self.called,
                    show::computed(&other),
                    other.type_name(),
                    show::computed(&Value::Document(self.input_read(doc))),
                ),
            )),
        }
    }
}

impl ReplaceRoot {
    /// The fields of the input that the expression reads: MongoDB fetches no others, so it shows no others.
    fn input_read(&self, doc: &Doc<'_>) -> Doc<'static> {
        let Some(paths) = self.new_root.reads() else { return doc.clone().into_owned() };
        let mut writer = DocWriter::new();
        for (name, value) in doc.iter().filter(|(name, _)| paths.iter().any(|path| path.first() == name.as_str())) {
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    }
}
