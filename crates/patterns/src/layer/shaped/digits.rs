//! Reads and writes of clients with the hex digits in them as logical documents have them: `as: hex` takes either case.

use crate::shape::Shaped;
use crate::shape::bucket::Digits;
use document::filter::Filter;
use document::op::{Context, Modify, ReadOp, WriteOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::{self, Names, Scope};
use document::{Doc, Result};
use std::borrow::Cow;

/// The read with its digits in lower case; the same read if nothing in it differs.
pub(super) fn read<'o>(shaped: &Shaped, op: &'o ReadOp, context: &Context) -> Result<Cow<'o, ReadOp>> {
    let Some(digits) = Digits::of(shaped) else { return Ok(Cow::Borrowed(op)) };
    let rewrite = Rewrite { digits, context };
    let filter = match op {
        ReadOp::Find(op) => &op.filter,
        ReadOp::Count(op) => &op.filter,
        ReadOp::Distinct(op) => &op.filter,
        ReadOp::Aggregate(aggregate) => {
            let Some(source) = &aggregate.pipeline.source else { return Ok(Cow::Borrowed(op)) };
            let stages = rewrite.digits.stages(source);
            if stages.as_bytes() == source.as_bytes() {
                return Ok(Cow::Borrowed(op));
            }
            let mut aggregate = aggregate.clone();
            aggregate.pipeline = Pipeline::parse(&stages, &mut rewrite.names()?)?;
            return Ok(Cow::Owned(ReadOp::Aggregate(aggregate)));
        }
    };
    let Some(filter) = rewrite.filter(filter)? else { return Ok(Cow::Borrowed(op)) };
    let mut op = op.clone();
    match &mut op {
        ReadOp::Find(op) => op.filter = filter,
        ReadOp::Count(op) => op.filter = filter,
        ReadOp::Distinct(op) => op.filter = filter,
        ReadOp::Aggregate(_) => {}
    }
    Ok(Cow::Owned(op))
}

/// The write with the digits of its filters in lower case. What it stores is brought there where it is encoded.
pub(super) fn write<'o>(shaped: &Shaped, op: &'o WriteOp, context: &Context) -> Result<Cow<'o, WriteOp>> {
    let digits = if matches!(op, WriteOp::Insert(_)) { None } else { Digits::of(shaped) };
    let Some(digits) = digits else { return Ok(Cow::Borrowed(op)) };
    let rewrite = Rewrite { digits, context };
    // An upsert inserts what its filter equals: that is one value.
    let single = Rewrite { digits: rewrite.digits.clone().in_one_case(), context };
    let mut changed = op.clone();
    let mut differs = false;
    let mut replace = |filter: &mut Filter, upsert: bool| -> Result<()> {
        let rewrite = if upsert { &single } else { &rewrite };
        if let Some(other) = rewrite.filter(filter)? {
            *filter = other;
            differs = true;
        }
        Ok(())
    };
    match &mut changed {
        WriteOp::Insert(_) => {}
        WriteOp::Update(op) => {
            op.statements.iter_mut().try_for_each(|statement| replace(&mut statement.filter, statement.upsert))?;
        }
        WriteOp::Delete(op) => {
            op.statements.iter_mut().try_for_each(|statement| replace(&mut statement.filter, false))?;
        }
        WriteOp::FindAndModify(op) => {
            let upsert = matches!(&op.action, Modify::Update { upsert: true, .. });
            replace(&mut op.filter, upsert)?;
        }
    }
    Ok(if differs { Cow::Owned(changed) } else { Cow::Borrowed(op) })
}

struct Rewrite<'c> {
    digits: Digits,
    context: &'c Context,
}

impl Rewrite<'_> {
    /// `None` if the filter says the same already.
    fn filter(&self, filter: &Filter) -> Result<Option<Filter>> {
        let source = self.digits.query(&filter.source);
        if source.as_bytes() == filter.source.as_bytes() {
            return Ok(None);
        }
        let parsed = Filter::parse(&source, &mut self.names()?)?;
        Ok(Some(parsed.collated(filter.collation.clone())))
    }

    /// The variables of the command's `let`.
    fn names(&self) -> Result<Names> {
        let mut names = Names::new();
        for (name, value) in self.context.sent.variables.iter().flat_map(Doc::iter) {
            let value = expr::parse(&value, &mut names)?;
            let value = value.eval(&mut Scope::new(Doc::empty(), &self.context.env))?.into_owned();
            names.bind_constant(name.as_str(), value);
        }
        Ok(names)
    }
}
