//! `$limit`: lets the first so many documents through.

use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::{Path, Value, show};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$limit",
    help: "Passes only the first so many documents on.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, _parser: &mut Parser<'_>) -> Result<Parsed> {
    match whole_number(STAGE.name, 5_107_201, spec)? {
        0 => Err(Error::new(Code::Location(15958), "the limit must be positive")),
        count => Parsed::one(Limit(count)),
    }
}

/// The argument of `$limit` and `$skip`: an integer of any number type, zero or more.
pub(super) fn whole_number(stage: &str, code: i32, spec: &Value<'_>) -> Result<u64> {
    let refuse = |what: &str| {
        let message = format!("invalid argument to {stage} stage: {what} {stage}: {}", show::element(spec));
        Err(Error::new(Code::Location(code), message))
    };
    let Some(number) = spec.as_number() else { return refuse("Expected a number in:") };
    if number.is_nan() {
        return refuse("Expected an integer, but found NaN in:");
    }
    match number.as_i64_exact() {
        Some(whole) => u64::try_from(whole).or_else(|_| refuse("Expected a non-negative number in:")),
        None if matches!(spec, Value::Double(_)) && number.to_i64_truncated().is_some() => {
            refuse("Expected an integer:")
        }
        None => refuse("Cannot represent as a 64-bit integer:"),
    }
}

#[derive(Debug)]
pub(super) struct Limit(pub(super) u64);

impl Stage for Limit {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, _run: &Run) -> Result<Rows> {
        Ok(Box::new(Limited { left: self.0, input }))
    }

    fn role(&self) -> Role<'_> {
        Role::Limit(self.0)
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        after
    }
}

struct Limited {
    left: u64,
    input: Rows,
}

impl Stream for Limited {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.input.next()
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
