//! What a reading command asks of logical documents: stages, and what is made of their rows.

use crate::execute::read::find_projection::FindProjection;
use crate::execute::read::result::ResultForm;
use crate::mql::{call, field, list, object};
use crate::rule::read::ReadRequest;
use document::op::{Context, Distinct, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Code, Error, Result, Value};
use std::sync::Arc;

/// A command taken apart.
pub(super) struct ParsedRead {
    pub(super) request: ReadRequest,
    pub(super) form: ResultForm,
    /// What `find` shows, if MongoDB has no stage for it.
    pub(super) only_in_find: Option<Arc<FindProjection>>,
}

impl ParsedRead {
    pub(super) fn of(op: &ReadOp, context: &Context) -> Result<ParsedRead> {
        let mut request = ReadRequest {
            pipeline: Pipeline::default(),
            projection: None,
            hint: None,
            allow_disk_use: true,
            has_variables: context.sent.variables.is_some(),
            for_people: false,
        };
        let (mut form, mut only_in_find) = (ResultForm::Rows, None);
        match op {
            ReadOp::Find(op) => {
                op.check_for_view()?;
                request.pipeline = Pipeline::of_query(&op.filter, op.sort.as_ref(), op.skip, op.limit);
                (request.hint, request.allow_disk_use) = (op.hint.clone(), op.allow_disk_use);
                if let Some(projection) = &op.projection {
                    let projection = Arc::new(FindProjection::new(projection.clone(), &op.filter));
                    let source = projection.to_mql().map(|stage| [stage].into_iter().collect());
                    only_in_find = source.is_none().then(|| projection.clone());
                    request.projection =
                        Some(Pipeline { stages: vec![projection], sink: None, source, reads_score: false });
                }
            }
            ReadOp::Aggregate(op) => {
                request.pipeline = op.pipeline.clone();
                (request.hint, request.allow_disk_use) = (op.hint.clone(), op.allow_disk_use);
            }
            ReadOp::Count(op) => {
                let counted = parsed(call("$count", Value::from("n")))?;
                request.pipeline = Pipeline::of_query(&op.filter, None, op.skip, op.limit).then(counted);
                request.hint = op.hint.clone();
                form = ResultForm::Count;
            }
            ReadOp::Distinct(op) => {
                // The whole first field: only the values tell how arrays on the way are to be taken apart. Beside another field
                // a missing one is not null.
                let key = object([("_id", object([("v", field(op.key.first())), ("of", Value::from("value"))]))]);
                request.pipeline = Pipeline::of_query(&op.filter, None, 0, None).then(parsed(call("$group", key))?);
                request.hint = op.hint.clone();
                form = ResultForm::Distinct(op.key.clone());
            }
        }
        Ok(ParsedRead { request, form, only_in_find })
    }

    /// A distinct whose values are told apart by MongoDB: arrays are taken apart there.
    pub(super) fn make_collated_distinct(&mut self, op: &Distinct) -> Result<()> {
        if op.key.parts.iter().any(|part| part.index.is_some()) {
            let message = "distinct with a collation takes no position in an array here";
            return Err(Error::new(Code::NotImplemented, message).with_hint("use an aggregation with $group"));
        }
        let mut stages = Pipeline::of_query(&op.filter, None, 0, None);
        for length in 1..=op.key.parts.len() {
            let part = Path { parts: op.key.parts.get(..length).unwrap_or_default().to_vec() };
            let unwind = object([("path", field(&part.dotted())), ("preserveNullAndEmptyArrays", Value::Bool(true))]);
            stages = stages.then(parsed(call("$unwind", unwind))?);
        }
        let all = object([("_id", Value::Null), ("values", call("$addToSet", field(&op.key.dotted())))]);
        self.request.pipeline = stages.then(parsed(call("$group", all))?);
        self.form = ResultForm::Values;
        Ok(())
    }
}

fn parsed(stage: Value<'static>) -> Result<Pipeline> {
    let Value::Array(stages) = list([stage]) else { return Ok(Pipeline::default()) };
    Pipeline::parse(&stages, &mut Names::new())
}
