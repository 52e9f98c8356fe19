//! `$skip`: leaves out the first so many documents.

use super::limit::whole_number;
use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, Stream};
use crate::env::Env;
use crate::error::Result;
use crate::raw::Doc;
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$skip",
    help: "Leaves out the first so many documents.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, _parser: &mut Parser<'_>) -> Result<Parsed> {
    Parsed::one(Skip(whole_number(STAGE.name, 5_107_200, spec)?))
}

#[derive(Debug)]
pub(super) struct Skip(pub(super) u64);

impl Stage for Skip {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Skipping { left: self.0, input, env: run.env.clone() }))
    }

    fn role(&self) -> Role<'_> {
        Role::Skip(self.0)
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        after
    }
}

struct Skipping {
    left: u64,
    input: Rows,
    env: Env,
}

impl Stream for Skipping {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        while self.left > 0 {
            if self.input.next()?.is_none() {
                self.left = 0;
                return Ok(None);
            }
            self.left -= 1;
            if self.left.is_multiple_of(256) {
                (self.env.interrupt)()?;
            }
        }
        self.input.next()
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
