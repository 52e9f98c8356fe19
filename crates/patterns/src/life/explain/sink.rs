//! What a pipeline that ends with `$merge` or `$out` would write. The pipeline itself is run: its results are what is written.

use crate::active::Rules;
use crate::execute::plan::{Action, Plan, Step};
use crate::execute::rights::Rights;
use crate::layer::explain::plan;
use crate::layer::refused::{bookkeeping, other_of, refused};
use crate::life::Life;
use crate::life::explain::{ExplainedCommand, checked, command_step};
use crate::rule::names;
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::{Aggregate, Context, Find, Insert, Namespace, ReadOp, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::{MergeSpec, Pipeline, Sink, WhenMatched};
use document::{Array, Doc, Error, Result, Value};
use std::collections::HashMap;

/// So many results are written by one statement, as when the pipeline is run.
const CHUNK: usize = 1000;

impl Life {
    /// `$out` into a collection of a rule is refused before anything is written beside it.
    pub(crate) fn check_sink(&self, rules: &Rules, op: &Aggregate) -> Result<(), (Namespace, Error)> {
        let Some(Sink::Out { db, collection }) = &op.pipeline.sink else { return Ok(()) };
        let target = Namespace::new(db.as_deref().unwrap_or(&op.ns.db), collection);
        let refusal = match rules.of(&target).and_then(|local| local.named_by.first()) {
            _ if names::is_bookkeeping(&target) => Some(bookkeeping(&target)),
            kept => self
                .refused_as_timeseries(&target)
                .map(|refused| refused.context("PlanExecutor error during aggregation :: caused by :: "))
                .or_else(|| kept.map(|kept| refused("$out", &target, kept, &other_of(kept, &target)))),
        };
        refusal.map_or(Ok(()), |refusal| Err((target, refusal)))
    }

    /// `None` if the pipeline writes nothing.
    pub(super) async fn explain_sink(
        &self,
        client: &mut Session,
        context: &Context,
        explained: &ExplainedCommand<'_>,
        op: &Aggregate,
        rights: &Rights,
    ) -> Result<Option<Doc<'static>>> {
        let Some(sink) = &op.pipeline.sink else { return Ok(None) };
        let (db, collection) = match sink {
            Sink::Out { db, collection } => (db, collection),
            Sink::Merge(merge) => (&merge.db, &merge.collection),
        };
        let target = Namespace::new(db.as_deref().unwrap_or(&op.ns.db), collection);
        self.need_to_write_into(rights, sink, &target)?;
        let rules = self.patterned.rules();
        if let Err((_, refused)) = self.check_sink(&rules, op) {
            return checked(rights, &rules, &op.ns, Err(refused)).map(|_| None);
        }
        drop(rules);
        let read = ReadOp::Aggregate(Aggregate { pipeline: without_sink(&op.pipeline, explained)?, ..op.clone() });
        let results = self.all(client, context, read.clone()).await?;
        let spec = match sink {
            Sink::Merge(spec) => spec,
            Sink::Out { .. } => {
                let written = self.replaced(client, context, &target, &results).await?;
                return Ok(Some(command_step("write", &target.to_string(), explained.command, Some(written))));
            }
        };
        let mut whole = Plan::of(vec![Step::from(Action::Read(read))]);
        for chunk in results.chunks(CHUNK) {
            for op in self.merging(client, context, &target, spec, chunk).await? {
                whole.join(plan(&self.patterned.executor, client, context, &op).await?);
            }
        }
        let whole = checked(rights, &self.patterned.rules(), &target, Ok(whole))?;
        Ok(Some(whole.to_mql()))
    }

    fn need_to_write_into(&self, rights: &Rights, sink: &Sink, target: &Namespace) -> Result<()> {
        let actions = match sink {
            Sink::Out { .. } => ["insert", "remove"],
            Sink::Merge(_) => ["insert", "update"],
        };
        match self.patterned.rules().shaped(target) {
            Some(shaped) => shaped.places.iter().try_for_each(|place| rights.need_all(&actions, &place.stored)),
            None => rights.need_all(&actions, target),
        }
    }

    /// The statements that merge some results.
    async fn merging(
        &self,
        client: &mut Session,
        context: &Context,
        target: &Namespace,
        spec: &MergeSpec,
        results: &[Doc<'static>],
    ) -> Result<Vec<WriteOp>> {
        let inserting = |documents| Insert { ordered: false, ..Insert::of(target.clone(), documents) };
        if matches!(spec.matched, WhenMatched::Fail) {
            return Ok(vec![WriteOp::Insert(inserting(results.to_vec()))]);
        }
        let (mut statements, mut new) = (Vec::new(), Vec::new());
        for doc in results {
            let doc = spec.with_id(doc.clone(), &context.env);
            let statement = spec.statement(doc.clone(), &context.env)?;
            if !spec.inserts_as_it_is() {
                statements.push(statement);
                continue;
            }
            let find = Find { limit: Some(1), ..Find::matching(target.clone(), statement.filter.clone()) };
            match self.all(client, context, ReadOp::Find(find)).await?.is_empty() {
                true => new.push(doc),
                false => statements.push(UpdateStatement { upsert: false, ..statement }),
            }
        }
        let mut ops = Vec::new();
        if !statements.is_empty() {
            ops.push(WriteOp::Update(UpdateOp { ordered: false, ..UpdateOp::of(target.clone(), statements) }));
        }
        if !new.is_empty() {
            ops.push(WriteOp::Insert(inserting(new)));
        }
        Ok(ops)
    }

    /// How many documents differ after results have taken the place of a collection.
    async fn replaced(
        &self,
        client: &mut Session,
        context: &Context,
        target: &Namespace,
        results: &[Doc<'static>],
    ) -> Result<u64> {
        let identity = |doc: &Doc<'_>| crate::rule::key::bytes(&doc.get("_id").unwrap_or(Value::Missing));
        let find = ReadOp::Find(Find::matching(target.clone(), Filter::all()));
        let there = self.all(client, context, find).await?;
        let mut gone: HashMap<Vec<u8>, &Doc<'static>> = there.iter().map(|doc| (identity(doc), doc)).collect();
        let is_other =
            |doc: &&Doc<'static>| gone.remove(&identity(doc)).is_none_or(|there| there.as_bytes() != doc.as_bytes());
        let other = results.iter().filter(is_other).count();
        Ok((other + gone.len()) as u64)
    }

    /// All documents that a read gives a client.
    async fn all(&self, client: &mut Session, context: &Context, op: ReadOp) -> Result<Vec<Doc<'static>>> {
        const BATCH: BatchLimit = BatchLimit { documents: 1000, bytes: 4 << 20 };
        let mut session = client.sibling();
        let mut cursor = self.patterned.read(&mut session, context, op).await?;
        let mut all = Vec::new();
        loop {
            let batch = cursor.next(&mut session, context, BATCH).await?;
            all.extend(batch.documents);
            if batch.exhausted {
                return Ok(all);
            }
        }
    }
}

/// The stages that give the results.
fn without_sink(pipeline: &Pipeline, explained: &ExplainedCommand<'_>) -> Result<Pipeline> {
    let Some(source) = &pipeline.source else { return Ok(Pipeline { sink: None, ..pipeline.clone() }) };
    let count = source.iter().count().saturating_sub(1);
    let stages: Array<'static> = source.iter().take(count).map(Value::into_owned).collect();
    Pipeline::parse(&stages, &mut explained.names.clone())
}
