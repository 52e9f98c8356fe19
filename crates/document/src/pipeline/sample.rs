//! `$sample`: so many documents by chance, each at most once.
//!
//! One pass with a reservoir: memory is bounded by the size asked for.

use super::rows::drain;
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$sample",
    help: "Gives so many documents by chance.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, _parser: &mut Parser<'_>) -> Result<Parsed> {
    let refuse = |code, message: &str| Err(Error::new(Code::Location(code), message));
    let Value::Document(options) = spec else {
        return refuse(28745, "the $sample stage specification must be an object");
    };
    let mut size = None;
    for (name, value) in options.iter() {
        if name.as_str() != "size" {
            return refuse(28748, &format!("unrecognized option to $sample: {name}"));
        }
        let Some(number) = value.as_number() else {
            return refuse(28746, "size argument to $sample must be a number");
        };
        let Ok(count) = u64::try_from(number.to_i64_saturated()) else {
            return refuse(28747, "size argument to $sample must not be negative");
        };
        size = Some(count);
    }
    match size {
        Some(size) => Parsed::one(Sample(size)),
        None => refuse(28749, "$sample stage must specify a size"),
    }
}

#[derive(Debug)]
struct Sample(u64);

impl Stage for Sample {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Sampling { size: self.0, input: Some(input), env: run.env.clone(), output: Vec::new() }))
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        after
    }
}

struct Sampling {
    size: u64,
    input: Option<Rows>,
    env: Env,
    output: Vec<Doc<'static>>,
}

impl Stream for Sampling {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            let (env, size) = (&self.env, usize::try_from(self.size).unwrap_or(usize::MAX));
            let (output, mut seen, mut bytes) = (&mut self.output, 0_usize, 0_usize);
            drain(&mut *input, env, |doc| {
                seen += 1;
                let length = doc.as_bytes().len();
                if output.len() < size {
                    bytes += length;
                    output.push(doc);
                } else if let Some(place) = output.get_mut(below(seen, env)) {
                    bytes = (bytes + length).saturating_sub(place.as_bytes().len());
                    *place = doc;
                }
                check_memory(bytes, env.memory_limit)
            })?;
            for at in (1..output.len()).rev() {
                output.swap(at, below(at + 1, env));
            }
        }
        Ok(self.output.pop())
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

/// A random number below `count`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "in [0, count)"
)]
fn below(count: usize, env: &Env) -> usize {
    (((env.random)() * count as f64) as usize).min(count.saturating_sub(1))
}

fn check_memory(bytes: usize, limit: usize) -> Result<()> {
    if bytes <= limit {
        return Ok(());
    }
    let message = format!("Exceeded memory limit for $sample; the limit is {limit} bytes");
    Err(Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message))
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::{check, check_error};
    use bson::{bson, doc};

    #[test]
    fn as_many_as_asked_for() {
        let input = || (0..50).map(|n| doc! { "_id": n }).collect::<Vec<_>>();
        check(
            input(),
            bson!([{ "$sample": { "size": 7 } }, { "$group": { "_id": "$_id" } }, { "$count": "n" }]),
            bson!([{ "n": 7 }]),
        );
        check(input(), bson!([{ "$sample": { "size": 99 } }, { "$count": "n" }]), bson!([{ "n": 50 }]));
        check(input(), bson!([{ "$sample": { "size": 0 } }]), bson!([]));
    }

    #[test]
    fn errors_are_mongodbs() {
        check_error(bson!([{ "$sample": 1 }]), 28745, "the $sample stage specification must be an object");
        check_error(bson!([{ "$sample": {} }]), 28749, "$sample stage must specify a size");
        check_error(bson!([{ "$sample": { "size": "x" } }]), 28746, "size argument to $sample must be a number");
        check_error(bson!([{ "$sample": { "size": -1 } }]), 28747, "size argument to $sample must not be negative");
        check_error(bson!([{ "$sample": { "x": 1 } }]), 28748, "unrecognized option to $sample: x");
    }
}
