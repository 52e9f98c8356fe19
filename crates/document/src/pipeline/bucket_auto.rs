//! `$bucketAuto`: as many groups of about equal size as asked for, by ranges of a value.
//!
//! All documents are sorted by the value first; equal values stay in one group. Preferred numbers as bounds (`granularity`) are
//! not there and refused.

use super::bucket::{count_field, is_expression, parse_output};
use super::expr::{self, Expr, Scope};
use super::group::{Field, null_if_missing};
use super::rows::drain;
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::value::{Path, Value, order, show};
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

pub(super) const STAGE: StageDef = StageDef {
    name: "$bucketAuto",
    help: "Groups documents into so many ranges of a value, of about equal size.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

const GRANULARITIES: &[&str] =
    &["1-2-5", "E12", "E192", "E24", "E48", "E6", "E96", "POWERSOF2", "R10", "R20", "R40", "R5", "R80"];

fn fail<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::Location(code), message))
}

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(options) = spec else {
        let message = "The argument to $bucketAuto must be an object, but found type";
        return fail(40240, format!("{message}: {}", spec.type_name()));
    };
    let (mut group_by, mut buckets, mut output) = (None, None, None);
    for (name, value) in options.iter() {
        let kind = value.type_name();
        match (name.as_str(), &value) {
            ("groupBy", value) if is_expression(value) => group_by = Some(expr::parse(value, parser.names)?),
            ("groupBy", value) => {
                let message =
                    "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object";
                return fail(40239, format!("{message}, but found: {}", show::element(value)));
            }
            ("buckets", value) => buckets = Some(parse_buckets(value)?),
            ("output", Value::Document(fields)) => output = Some(parse_output(fields, parser)?),
            ("output", _) => {
                return fail(
                    40244,
                    format!("The $bucketAuto 'output' field must be an object, but found type: {kind}"),
                );
            }
            ("granularity", Value::String(series)) if GRANULARITIES.contains(&series.as_str()) => {
                return Err(Error::not_implemented("The option 'granularity' of $bucketAuto"));
            }
            ("granularity", Value::String(series)) => {
                return fail(40257, format!("Unknown rounding granularity '{series}'"));
            }
            ("granularity", _) => {
                let message = "The $bucketAuto 'granularity' field must be a string, but found type";
                return fail(40261, format!("{message}: {kind}"));
            }
            (other, _) => return fail(40245, format!("Unrecognized option to $bucketAuto: {other}")),
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return fail(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified");
    };
    let fields = match output {
        Some(fields) => fields,
        None => vec![count_field(parser)?],
    };
    Parsed::one(BucketAuto { group_by, buckets, fields })
}

fn parse_buckets(value: &Value<'_>) -> Result<usize> {
    let Some(number) = value.as_number() else {
        let message = "The $bucketAuto 'buckets' field must be a numeric value, but found type";
        return fail(40241, format!("{message}: {}", value.type_name()));
    };
    let Some(count) = number.as_i32_exact() else {
        let message = "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found";
        return fail(40242, format!("{message} {}", show::computed(value)));
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => fail(40243, format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {count}")),
    }
}

#[derive(Debug)]
struct BucketAuto {
    group_by: Expr,
    buckets: usize,
    fields: Vec<Field>,
}

impl Stage for BucketAuto {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        let rest = Vec::new().into_iter().peekable();
        Ok(Box::new(Bucketing { stage: self, input: Some(input), env: run.env.clone(), rest, size: 0, next: 0 }))
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = self.group_by.reads()?;
        for field in &self.fields {
            needed.extend(field.accumulator.argument().reads()?);
        }
        Some(needed)
    }
}

/// A value and the document it is from.
type Entry = (Value<'static>, Doc<'static>);

struct Bucketing {
    stage: Arc<BucketAuto>,
    input: Option<Rows>,
    env: Env,
    /// What is left, in order.
    rest: Peekable<IntoIter<Entry>>,
    /// How many documents a bucket is meant to hold.
    size: usize,
    next: usize,
}

impl Stream for Bucketing {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            let sorted = self.stage.sort(&mut *input, &self.env)?;
            self.size = rounded(sorted.len(), self.stage.buckets).max(1);
            self.rest = sorted.into_iter().peekable();
        }
        self.next += 1;
        let size = if self.next < self.stage.buckets { self.size } else { usize::MAX };
        self.stage.bucket(&mut self.rest, size, &self.env)
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

impl BucketAuto {
    fn sort(&self, input: &mut dyn Stream, env: &Env) -> Result<Vec<Entry>> {
        let (mut sorted, mut bytes) = (Vec::new(), 0);
        drain(input, env, |doc| {
            let value = match self.group_by.eval(&mut Scope::new(doc.borrow(), env))? {
                Value::Missing => Value::Null,
                value => value.into_owned(),
            };
            bytes += doc.as_bytes().len() + size_of::<Entry>();
            sorted.push((value, doc));
            if bytes <= env.memory_limit {
                return Ok(());
            }
            let message = format!("Exceeded memory limit for $bucketAuto; the limit is {} bytes", env.memory_limit);
            Err(Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message))
        })?;
        sorted.sort_by(|(a, _), (b, _)| order::compare(a, b));
        Ok(sorted)
    }

    /// The next bucket: `size` documents, and those with the same value as the last of them.
    fn bucket(&self, rest: &mut Peekable<IntoIter<Entry>>, size: usize, env: &Env) -> Result<Option<Doc<'static>>> {
        let Some((least, _)) = rest.peek() else { return Ok(None) };
        let (least, mut greatest, mut taken) = (least.clone(), least.clone(), 0);
        let mut states = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            states.push(field.accumulator.start(&Value::Null, env)?);
        }
        while let Some((value, doc)) = rest.next_if(|(next, _)| taken < size || order::equal(next, &greatest)) {
            let mut scope = Scope::new(doc.borrow(), env);
            for (field, state) in self.fields.iter().zip(&mut states) {
                field.accumulator.add(&mut **state, &mut scope)?;
            }
            (greatest, taken) = (value, taken + 1);
        }
        let upper = rest.peek().map_or(&greatest, |(next, _)| next);
        let mut writer = DocWriter::new();
        writer.start_document("_id").append("min", &least).append("max", upper).end();
        for (field, state) in self.fields.iter().zip(&mut states) {
            writer.append(&field.name, &null_if_missing(state.finish()?));
        }
        Ok(Some(writer.finish()))
    }
}

/// `count / parts`, rounded half up.
fn rounded(count: usize, parts: usize) -> usize {
    (count.saturating_mul(2) + parts) / (parts * 2)
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::{check, check_error, documents};
    use bson::{Bson, bson};

    #[test]
    fn buckets_are_of_about_equal_size() {
        let values =
            [bson!(5), bson!(1), bson!(3), bson!(9), bson!(7), bson!(3), bson!(3), Bson::Null, bson!("x"), bson!(2.5)];
        let input = || {
            documents(Bson::Array(values.iter().zip(0..).map(|(a, id)| bson!({ "_id": id, "a": a.clone() })).collect()))
        };
        check(
            input(),
            bson!([{ "$bucketAuto": { "groupBy": "$a", "buckets": 3 } }]),
            bson!([{ "_id": { "min": null, "max": 3 }, "count": 3 }, { "_id": { "min": 3, "max": 5 }, "count": 3 }, { "_id": { "min": 5, "max": "x" }, "count": 4 }]),
        );
        check(
            input(),
            bson!([{ "$bucketAuto": { "groupBy": "$_id", "buckets": 4, "output": { "s": { "$push": "$a" } } } }]),
            bson!([
                { "_id": { "min": 0, "max": 3 }, "s": [5, 1, 3] }, { "_id": { "min": 3, "max": 6 }, "s": [9, 7, 3] },
                { "_id": { "min": 6, "max": 9 }, "s": [3, null, "x"] }, { "_id": { "min": 9, "max": 9 }, "s": [2.5] },
            ]),
        );
        check(
            input(),
            bson!([{ "$bucketAuto": { "groupBy": "$zz", "buckets": 2 } }]),
            bson!([{ "_id": { "min": null, "max": null }, "count": 10 }]),
        );
    }

    #[test]
    fn errors_are_mongodbs() {
        let bucket = |spec: Bson, code, message: &str| check_error(bson!([{ "$bucketAuto": spec }]), code, message);
        bucket(bson!({}), 40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified");
        bucket(bson!({ "buckets": 0 }), 40243, "The $bucketAuto 'buckets' field must be greater than 0, but found: 0");
        bucket(
            bson!({ "buckets": 1.5 }),
            40242,
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found 1.5",
        );
        bucket(bson!({ "granularity": "x" }), 40257, "Unknown rounding granularity 'x'");
    }
}
