//! Commands of clients with the hex digits in them in lower case.

use crate::shapes::hex::Digits;
use document::backend::{Class, Head};
use document::filter::Filter;
use document::op::{Context, Modify, ReadOp, WriteOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::{self, Names, Scope};
use document::project::Projection;
use document::update::Update;
use document::{Doc, DocWriter, Result, Value};
use std::borrow::Cow;
use std::sync::Arc;

impl Digits {
    /// The command that is passed on in place of a client's read. Returns `None` if it says the same.
    pub(crate) fn command(mut self, command: &Head<'_>) -> Option<Doc<'static>> {
        let part = match command.class {
            Class::Aggregate => "pipeline",
            Class::Find => "filter",
            Class::Count | Class::Distinct => "query",
            _ => return None,
        };
        document::raw::validate(command.body.as_bytes()).ok()?;
        if let Some(Value::Document(variables)) = command.body.get("let") {
            self = self.with_let(&variables);
        }
        let lower = match (part, command.body.get(part)?) {
            ("pipeline", Value::Array(stages)) => Value::Array(self.changed(&stages)?),
            ("filter" | "query", Value::Document(query)) => {
                let lower = self.query(&query);
                (lower.as_bytes() != query.as_bytes()).then_some(Value::Document(lower))?
            }
            _ => return None,
        };
        let mut body = DocWriter::with_capacity(command.body.as_bytes().len() + 64);
        for (name, value) in command.body.iter() {
            body.append(name.as_str(), if name.as_str() == part { &lower } else { &value });
        }
        Some(body.finish())
    }

    /// The read with its digits in lower case; the same read if it says the same.
    pub(crate) fn read<'o>(self, op: &'o ReadOp, context: &Context) -> Result<Cow<'o, ReadOp>> {
        let rewrite = Rewrite::new(self, context, None)?;
        let filter = match op {
            ReadOp::Find(op) => &op.filter,
            ReadOp::Count(op) => &op.filter,
            ReadOp::Distinct(op) => &op.filter,
            ReadOp::Aggregate(aggregate) => {
                let Some(source) = &aggregate.pipeline.source else { return Ok(Cow::Borrowed(op)) };
                let Some(stages) = rewrite.digits.changed(source) else { return Ok(Cow::Borrowed(op)) };
                let mut aggregate = aggregate.clone();
                aggregate.pipeline = Pipeline::parse(&stages, &mut rewrite.names.clone())?;
                return Ok(Cow::Owned(ReadOp::Aggregate(aggregate)));
            }
        };
        let (filter, projection) = match (rewrite.filter(filter)?, rewrite.projection(op)?) {
            (None, None) => return Ok(Cow::Borrowed(op)),
            (other, projection) => (other.unwrap_or_else(|| filter.clone()), projection),
        };
        let mut op = op.clone();
        match &mut op {
            ReadOp::Find(op) => {
                op.filter = filter;
                op.projection = projection.or(op.projection.take());
            }
            ReadOp::Count(op) => op.filter = filter,
            ReadOp::Distinct(op) => op.filter = filter,
            ReadOp::Aggregate(_) => {}
        }
        Ok(Cow::Owned(op))
    }

    /// The write with the digits of its filters, and of what its pipelines compare, in lower case. What it stores is brought there
    /// where it is encoded.
    pub(crate) fn write<'o>(self, op: &'o WriteOp, context: &Context) -> Result<Cow<'o, WriteOp>> {
        let rewrite = Rewrite::new(self, context, None)?;
        let mut changed = op.clone();
        let mut differs = false;
        let mut replace = |filter: &mut Filter, update: Option<&mut Update>, upsert: bool| -> Result<()> {
            if let Some(other) = rewrite.of_write(upsert).filter(filter)? {
                *filter = other;
                differs = true;
            }
            if let Some(update) = update
                && let Some(other) =
                    Rewrite::new(rewrite.digits.clone(), context, update.constants.as_ref())?.update(update)?
            {
                *update = other;
                differs = true;
            }
            Ok(())
        };
        match &mut changed {
            WriteOp::Insert(_) => {}
            WriteOp::Update(op) => op.statements.iter_mut().try_for_each(|statement| {
                replace(&mut statement.filter, Some(&mut statement.update), statement.upsert)
            })?,
            WriteOp::Delete(op) => {
                op.statements.iter_mut().try_for_each(|statement| replace(&mut statement.filter, None, false))?;
            }
            WriteOp::FindAndModify(op) => match &mut op.action {
                Modify::Remove => replace(&mut op.filter, None, false)?,
                Modify::Update { update, upsert, .. } => replace(&mut op.filter, Some(update), *upsert)?,
            },
        }
        Ok(if differs { Cow::Owned(changed) } else { Cow::Borrowed(op) })
    }
}

struct Rewrite {
    digits: Digits,
    names: Names,
}

impl Rewrite {
    /// Knows the variables of the command's `let`, and the constants of a statement.
    fn new(digits: Digits, context: &Context, constants: Option<&Doc<'static>>) -> Result<Rewrite> {
        let mut names = Names::new();
        let mut known: Vec<(String, Value<'static>)> = Vec::new();
        for (name, value) in context.sent.variables.iter().flat_map(Doc::iter) {
            let value = expr::parse(&value, &mut names)?;
            let value = value.eval(&mut Scope::new(Doc::empty(), &context.env))?.into_owned();
            names.bind_constant(name.as_str(), value.clone());
            known.push((name.to_string(), value));
        }
        for (name, value) in constants.into_iter().flat_map(Doc::iter) {
            names.bind_constant(name.as_str(), value.clone().into_owned());
            known.push((name.to_string(), value.into_owned()));
        }
        Ok(Rewrite { digits: digits.knowing(known), names })
    }

    /// An upsert inserts what its filter equals: that is one value.
    fn of_write(&self, upsert: bool) -> Rewrite {
        let digits = self.digits.clone();
        Rewrite { digits: if upsert { digits.in_one_case() } else { digits }, names: self.names.clone() }
    }

    /// What `find` computes; `None` if it says the same already.
    fn projection(&self, op: &ReadOp) -> Result<Option<Arc<Projection>>> {
        let ReadOp::Find(find) = op else { return Ok(None) };
        let Some(source) = find.projection.as_ref().and_then(|projection| projection.source()) else { return Ok(None) };
        match self.digits.expression(&Value::Document(source.borrow())) {
            Value::Document(spec) if spec.as_bytes() != source.as_bytes() => {
                let parsed = Projection::parse_find(&spec, &find.filter, &mut self.names.clone())?;
                Ok(Some(Arc::new(parsed.with_sort(find.sort.as_ref())?)))
            }
            _ => Ok(None),
        }
    }

    /// `None` if the update says the same already, or has no expressions.
    fn update(&self, update: &Update) -> Result<Option<Update>> {
        let Value::Array(source) = &update.source else { return Ok(None) };
        let stages = self.digits.clone().in_one_case().stages(source);
        if stages.as_bytes() == source.as_bytes() {
            return Ok(None);
        }
        let mut other = Update::parse(&Value::Array(stages), &[], &mut self.names.clone())?;
        (other.constants, other.whole) = (update.constants.clone(), update.whole);
        Ok(Some(other))
    }

    /// `None` if the filter says the same already.
    fn filter(&self, filter: &Filter) -> Result<Option<Filter>> {
        let source = self.digits.query(&filter.source);
        if source.as_bytes() == filter.source.as_bytes() {
            return Ok(None);
        }
        let parsed = Filter::parse(&source, &mut self.names.clone())?;
        Ok(Some(parsed.collated(filter.collation.clone())))
    }
}
