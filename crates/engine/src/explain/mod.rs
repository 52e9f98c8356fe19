//! `explain`: the plan of an operation in MongoDB's shape, and what running it would do. Nothing is changed.

mod run;
mod stage;
mod text;

use crate::backend::long;
use crate::catalog::Collection;
use crate::engine::Engine;
use crate::index::access::plan::Plan;
use crate::index::access::{Query, choose, text as text_plan};
use crate::index::scan::Want;
use crate::read::{Window, distinct_index, needed, resolve};
use crate::transaction::write_set::Moment;
use document::backend::Session;
use document::filter::Filter;
use document::op::{
    Aggregate, Context, Count, Distinct, Explained, Find, Hint, Modify, Namespace, ReadOp, SortSpec, Verbosity, WriteOp,
};
use document::pipeline::{Pipeline, Role};
use document::update::Update;
use document::{Array, Doc, DocWriter, Env, Result, Value};
use run::{ExplainedQuery, Outcome, Top};
use std::sync::Arc;

/// Explains an operation.
pub(crate) fn explain(
    engine: &Engine,
    session: &mut Session,
    context: &Context,
    op: &Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let moment = engine.moment(session)?;
    let explainer = Explainer { moment, env: &context.env, verbosity };
    long(|| match op {
        Explained::Read(ReadOp::Find(op)) => explainer.find(op),
        Explained::Read(ReadOp::Aggregate(op)) => explainer.aggregate(op),
        Explained::Read(ReadOp::Count(op)) => explainer.count(op),
        Explained::Read(ReadOp::Distinct(op)) => explainer.distinct(op),
        Explained::Write(op) => explainer.write(op),
    })
}

struct Explainer<'e> {
    moment: Moment,
    env: &'e Env,
    verbosity: Verbosity,
}

impl Explainer<'_> {
    fn find(&self, op: &Find) -> Result<Doc<'static>> {
        let window = Window { skip: op.skip, limit: op.limit };
        let needed = needed(op);
        self.of_name(
            &op.ns,
            ExplainedQuery {
                filter: &op.filter,
                sort: op.sort.as_ref(),
                hint: op.hint.as_ref(),
                min: op.min.as_ref(),
                max: op.max.as_ref(),
                needed: needed.as_deref(),
                projection: op.projection.as_ref().and_then(|projection| projection.source()),
                window,
                score: op.projection.as_ref().is_some_and(|projection| projection.reads_score()),
                ..ExplainedQuery::all(&op.filter)
            },
        )
    }

    fn distinct(&self, op: &Distinct) -> Result<Doc<'static>> {
        let index = self.moment.catalog.get(&op.ns).and_then(|collection| distinct_index(collection, op));
        let top = index.as_ref().map_or(Top::Return, |index| Top::Distinct(index, &op.key));
        self.of_name(&op.ns, ExplainedQuery { hint: op.hint.as_ref(), top, ..ExplainedQuery::all(&op.filter) })
    }

    fn count(&self, op: &Count) -> Result<Doc<'static>> {
        let window = Window { skip: op.skip, limit: op.limit };
        let top = if op.filter.is_all() && op.hint.is_none() { Top::FastCount } else { Top::Count };
        self.of_name(
            &op.ns,
            ExplainedQuery {
                hint: op.hint.as_ref(),
                window,
                top,
                want: Want::Count,
                ..ExplainedQuery::all(&op.filter)
            },
        )
    }

    fn write(&self, op: &WriteOp) -> Result<Doc<'static>> {
        let all = Filter::all();
        let one = Window { skip: 0, limit: Some(1) };
        let of = |filter, hint: &Option<Hint>, sort: Option<&SortSpec>, ns: &Namespace, top, multi: bool| {
            let window = if multi { Window::default() } else { one };
            let asked = ExplainedQuery { hint: hint.as_ref(), sort, window, top, ..ExplainedQuery::all(filter) };
            self.of_name(ns, asked)
        };
        match op {
            WriteOp::Insert(op) => self.of_name(&op.ns, ExplainedQuery::all(&all)),
            WriteOp::Update(op) => match op.statements.first() {
                Some(statement) => {
                    let top = Top::Update(&statement.update, statement.upsert);
                    of(&statement.filter, &statement.hint, None, &op.ns, top, statement.multi)
                }
                None => self.of_name(&op.ns, ExplainedQuery::all(&all)),
            },
            WriteOp::Delete(op) => match op.statements.first() {
                Some(statement) => of(&statement.filter, &statement.hint, None, &op.ns, Top::Delete, statement.multi),
                None => self.of_name(&op.ns, ExplainedQuery::all(&all)),
            },
            WriteOp::FindAndModify(op) => {
                let top = match &op.action {
                    Modify::Remove => Top::Delete,
                    Modify::Update { update, upsert, .. } => Top::Update(update, *upsert),
                };
                of(&op.filter, &op.hint, op.sort.as_ref(), &op.ns, top, false)
            }
        }
    }

    /// Of a collection by its plan, of a view by its pipeline.
    fn of_name(&self, ns: &Namespace, asked: ExplainedQuery<'_>) -> Result<Doc<'static>> {
        if self.moment.catalog.get(ns).is_some_and(|found| found.view().is_some()) {
            let pipeline = Pipeline::of_query(asked.filter, asked.sort, asked.window.skip, asked.window.limit);
            return self.pipeline(ns, pipeline, asked.hint);
        }
        let mut reply = DocWriter::new();
        reply.append("explainVersion", &Value::from("1"));
        self.append_plan(&mut reply, ns, self.moment.catalog.get(ns), asked)?;
        Ok(reply.finish())
    }

    fn aggregate(&self, op: &Aggregate) -> Result<Doc<'static>> {
        self.pipeline(&op.ns, op.pipeline.clone(), op.hint.as_ref())
    }

    fn pipeline(&self, ns: &Namespace, pipeline: Pipeline, hint: Option<&Hint>) -> Result<Doc<'static>> {
        let (collection, pipeline) = resolve(&self.moment.catalog, ns, pipeline)?;
        let ns = collection.as_ref().map_or(ns, |collection| &collection.ns);
        let split = pipeline.split();
        let leading = &split.leading;
        let window = Window { skip: leading.skip, limit: leading.limit };
        let (sort, score) = (leading.sort.as_ref(), split.rest.reads_score);
        let asked = ExplainedQuery { sort, hint, window, score, ..ExplainedQuery::all(&leading.filter) };
        let mut reply = DocWriter::new();
        reply.append("explainVersion", &Value::from("1"));
        if split.rest.stages.is_empty() && split.rest.sink.is_none() {
            self.append_plan(&mut reply, ns, collection.as_ref(), asked)?;
            return Ok(reply.finish());
        }
        let mut stages = Vec::new();
        let mut stage = |name: &str, content: Value<'static>| {
            let mut writer = DocWriter::new();
            writer.append(name, &content);
            stages.push(Value::Document(writer.finish()));
        };
        if !pipeline.makes_documents() {
            let mut cursor = DocWriter::new();
            self.append_plan(&mut cursor, ns, collection.as_ref(), asked)?;
            stage("$cursor", Value::Document(cursor.finish()));
        }
        let written = split.rest.stages.iter().filter(|rest| !rest.name().is_empty());
        written.for_each(|rest| stage(rest.name(), content(&**rest)));
        if let Some(sink) = &split.rest.sink {
            stage(sink.stage_name(), Value::Document(Doc::empty()));
        }
        let stages: Array<'static> = stages.into_iter().collect();
        reply.append("stages", &Value::Array(stages));
        Ok(reply.finish())
    }

    fn append_plan(
        &self,
        reply: &mut DocWriter,
        ns: &Namespace,
        collection: Option<&Arc<Collection>>,
        asked: ExplainedQuery<'_>,
    ) -> Result<()> {
        let bound = text_plan::bind(collection.map(|collection| &**collection), ns, asked.filter, asked.hint)?;
        let asked = ExplainedQuery { filter: bound.as_ref().unwrap_or(asked.filter), ..asked };
        let (plan, rejected) = match collection {
            None => (Plan::nothing(), Vec::new()),
            Some(collection) => {
                let chosen = choose(collection, &self.moment.snapshot, asked.query(self.env), true)?;
                (chosen.plan, chosen.rejected)
            }
        };
        reply.start_document("queryPlanner");
        reply.append("namespace", &Value::from(&*ns.to_string()));
        reply.append("indexFilterSet", &Value::Bool(false));
        if !matches!(asked.top, Top::FastCount) {
            reply.append("parsedQuery", &Value::Document(asked.filter.root.to_query()));
        }
        if collection.is_some() && !matches!(asked.top, Top::FastCount) {
            let shape = Value::string(crate::index::access::Shape::of(&asked.query(self.env)).to_string());
            reply.append("queryHash", &shape).append("planCacheKey", &shape);
        }
        for name in ["maxIndexedOrSolutionsReached", "maxIndexedAndSolutionsReached", "maxScansToExplodeReached"] {
            reply.append(name, &Value::Bool(false));
        }
        let winning = run::tree(&plan, &asked, None);
        reply.append("winningPlan", &Value::Document(winning.document(false)));
        let rejected: Array<'static> =
            rejected.iter().map(|plan| Value::Document(run::tree(plan, &asked, None).document(false))).collect();
        reply.append("rejectedPlans", &Value::Array(rejected));
        reply.end();
        if self.verbosity < Verbosity::ExecutionStats {
            return Ok(());
        }
        let outcome = run::run(&plan, collection, &self.moment.snapshot, &asked, self.env)?;
        self.append_execution(reply, &plan, &asked, &outcome);
        Ok(())
    }

    fn append_execution(&self, reply: &mut DocWriter, plan: &Plan, asked: &ExplainedQuery<'_>, outcome: &Outcome) {
        reply.start_document("executionStats");
        reply.append("executionSuccess", &Value::Bool(true));
        reply.append("nReturned", &stage::number(outcome.returned(asked)));
        let millis = i32::try_from(outcome.took.as_millis()).unwrap_or(i32::MAX);
        reply.append("executionTimeMillis", &Value::Int32(millis));
        reply.append("totalKeysExamined", &stage::number(outcome.keys()));
        reply.append("totalDocsExamined", &stage::number(outcome.documents()));
        let stages = run::tree(plan, asked, Some(outcome));
        reply.append("executionStages", &Value::Document(stages.document(true)));
        if self.verbosity == Verbosity::AllPlansExecution {
            reply.append("allPlansExecution", &Value::Array(Array::empty()));
        }
        reply.end();
    }
}

/// What a stage was parsed to, where that is known: most compiled stages do not know how they were written, and their name
/// and place tell what is left to run.
fn content(stage: &dyn document::pipeline::Stage) -> Value<'static> {
    let whole = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    match stage.role() {
        Role::Match(stage) => Value::Document(stage.filter.root.to_query()),
        Role::Sort(stage) => {
            let mut writer = DocWriter::new();
            writer.append("sortKey", &Value::Document(stage.spec.to_document()));
            if let Some(limit) = stage.limit {
                writer.append("limit", &whole(limit));
            }
            Value::Document(writer.finish())
        }
        Role::Skip(number) | Role::Limit(number) => whole(number),
        Role::Transform(_) | Role::Source | Role::Other => Value::Document(Doc::empty()),
    }
}

impl<'q> ExplainedQuery<'q> {
    fn query(&self, env: &'q Env) -> Query<'q> {
        Query {
            filter: self.filter,
            sort: self.sort,
            hint: self.hint,
            min: self.min,
            max: self.max,
            needed: self.needed,
            limit: self.window.reach(),
            score: self.score,
            env,
        }
    }
}

/// Whether the update changes the document.
fn changes(update: &Update, doc: &Doc<'_>, details: &document::filter::Details, env: &Env) -> Result<bool> {
    Ok(matches!(update.apply(doc, details, env)?, document::update::Applied::Changed(_)))
}
