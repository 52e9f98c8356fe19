//! `$redact`: an expression decides at each level of a document whether to keep it, leave it out or look further inside.
//!
//! `$$KEEP`, `$$PRUNE` and `$$DESCEND` are variables bound to values that no document can hold, so that anything else an
//! expression gives is seen to be something else.

use super::expr::{self, Expr, Scope};
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Array, ArrayWriter, Blob, Doc, DocWriter};
use crate::text::carried::carry;
use crate::value::{Value, show};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$redact",
    help: "Keeps or leaves out parts of the documents, as an expression decides at each level.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

/// A reserved binary subtype marks the three answers.
const MARK: u8 = 0x7f;
const KEEP: &[u8] = b"pleach:keep";
const PRUNE: &[u8] = b"pleach:prune";
const DESCEND: &[u8] = b"pleach:descend";

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let mark = parser.names.mark();
    for (name, bytes) in [("KEEP", KEEP), ("PRUNE", PRUNE), ("DESCEND", DESCEND)] {
        parser.names.bind_constant(name, Value::Binary { subtype: MARK, bytes: Blob::Borrowed(bytes) });
    }
    let current = parser.names.bind("CURRENT");
    let decision = expr::parse(spec, parser.names);
    parser.names.release(mark);
    Parsed::one(Redact { decision: decision?, current })
}

#[derive(Debug)]
struct Redact {
    decision: Expr,
    /// The slot of `$$CURRENT`: the level being decided on.
    current: usize,
}

impl Stage for Redact {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Redacting { stage: self, input, env: run.env.clone() }))
    }
}

struct Redacting {
    stage: Arc<Redact>,
    input: Rows,
    env: Env,
}

impl Stream for Redacting {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        while let Some(doc) = self.input.next()? {
            let mut scope = Scope::new(doc.borrow(), &self.env);
            if let Some(kept) = self.stage.level(&doc.borrow(), &mut scope)? {
                return Ok(Some(carry(&doc, kept.into_owned())));
            }
        }
        Ok(None)
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

impl Redact {
    /// What is left of a document; `None` if it goes.
    fn level<'a>(&'a self, doc: &Doc<'a>, scope: &mut Scope<'a>) -> Result<Option<Doc<'a>>> {
        scope.set(self.current, Value::Document(doc.clone()));
        let answer = self.decision.eval(scope)?;
        let Value::Binary { subtype: MARK, bytes } = &answer else { return Err(unexpected(&answer)) };
        match bytes.as_slice() {
            KEEP => Ok(Some(doc.clone())),
            PRUNE => Ok(None),
            DESCEND => {
                let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
                for (name, value) in doc.iter() {
                    writer.append(name.as_str(), &self.inside(value, scope)?);
                }
                Ok(Some(writer.finish()))
            }
            _ => Err(unexpected(&answer)),
        }
    }

    /// What is left of a value inside a document; missing if it goes.
    fn inside<'a>(&'a self, value: Value<'a>, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        Ok(match value {
            Value::Document(doc) => self.level(&doc, scope)?.map_or(Value::Missing, Value::Document),
            Value::Array(array) => Value::Array(self.elements(&array, scope)?),
            other => other,
        })
    }

    fn elements<'a>(&'a self, array: &Array<'a>, scope: &mut Scope<'a>) -> Result<Array<'a>> {
        let mut writer = ArrayWriter::new();
        for item in array.iter() {
            let kept = self.inside(item, scope)?;
            if !kept.is_missing() {
                writer.push(&kept);
            }
        }
        Ok(writer.finish())
    }
}

fn unexpected(answer: &Value<'_>) -> Error {
    let message = "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                   $$PRUNE, but returned";
    Error::new(Code::Location(17053), format!("{message} {}", show::computed(answer)))
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::{check, check_error, documents};
    use bson::bson;

    #[test]
    fn levels_are_decided_one_by_one() {
        let input = || {
            documents(
                bson!([{ "_id": 1, "l": 1, "s": { "l": 2, "t": [{ "l": 1 }, { "l": 3 }, 5, [{ "l": 3 }, { "l": 1 }]] }, "p": { "l": 3 } }]),
            )
        };
        check(
            input(),
            bson!([{ "$redact": { "$cond": [{ "$gt": ["$l", 2] }, "$$PRUNE", "$$DESCEND"] } }]),
            bson!([{ "_id": 1, "l": 1, "s": { "l": 2, "t": [{ "l": 1 }, 5, [{ "l": 1 }]] } }]),
        );
        check(input(), bson!([{ "$redact": "$$PRUNE" }]), bson!([]));
        check(
            input(),
            bson!([{ "$redact": { "$cond": [{ "$eq": ["$$ROOT.l", 2] }, "$$PRUNE", "$$KEEP"] } }]),
            bson!(input()),
        );
    }

    #[test]
    fn errors_are_mongodbs() {
        let message = "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but returned 5";
        check_error(bson!([{ "$redact": 5 }]), 17053, message);
    }
}
