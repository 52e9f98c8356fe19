//! A field computed from the document itself: `margin: { expr: … }`.

use crate::fields::value_at;
use crate::mql::{call, field, object, with};
use crate::rule::field::{ComparisonPipeline, HostStages, OwnStage, Samples, Search};
use crate::rule::obstacle::{Arrays, Obstacle};
use crate::rule::{
    Delta, Fate, Fences, Fetch, Field, HostField, Link, Reads, Recipe, RegistryEntry, Rows, Wanted, key,
};
use document::backend::Mode;
use document::filter::{Filter, Node};
use document::op::{Capture, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::update::Update;
use document::value::Path;
use document::{Array, Code, Doc, Env, Error, Result, Value};
use smallvec::SmallVec;

pub(crate) const ENTRY: RegistryEntry = RegistryEntry {
    name: "expression",
    help: "A value computed from the document itself.",
    page: "docs/concepts/computed.md",
    example: "examples/computed",
    blocks: &[
        "products:\n  computed:\n    margin: { expr: { $subtract: [$price, $cost] } }",
        "orders:\n  computed:\n    sums.total: { expr: { $multiply: [{ $ifNull: [$n, 0] }, 2] } }",
        // Of a field that another rule keeps.
        "products:\n  computed:\n    allReviews: { count: reviews, by: productId }\n    isKnown: { expr: { $gt: [$allReviews, 1] } }",
    ],
};

/// What a declaration's `expr` is compiled to.
#[derive(Clone, Debug)]
pub struct Expression {
    /// As declared, for printing and for pipelines.
    pub source: Value<'static>,
    /// `[{ $set: { <field>: <expression> } }]`, compiled.
    pub set: Pipeline,
    /// The paths of the document that it reads.
    pub reads: Vec<Path>,
}

#[derive(Debug)]
pub struct ExpressionField {
    target: HostField,
    source: Value<'static>,
    own: OwnStage,
    update: Update,
    reads: Reads,
    stages: HostStages,
}

impl ExpressionField {
    pub fn new(target: HostField, expression: Expression) -> Result<ExpressionField> {
        let Expression { source, set, reads } = expression;
        let stage = call("$set", object([(&*target.path.dotted(), source.borrow())]));
        let stages: Array<'static> = std::iter::once(stage.clone()).collect();
        let update = Update::parse(&Value::Array(stages), &[], &mut Names::new())?;
        let reads = Reads { source: Capture::Nothing, host: reads };
        Ok(ExpressionField {
            target,
            source,
            own: OwnStage { stage, program: set },
            update,
            reads,
            stages: HostStages::new(Vec::new(), None),
        })
    }

    fn unlinked(&self) -> Error {
        Error::new(Code::InternalError, format!("rule {} has no source", self.target.rule))
    }
}

impl Field for ExpressionField {
    fn target(&self) -> &HostField {
        &self.target
    }

    fn link(&self) -> Option<&Link> {
        None
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    /// It reads what it writes: there are no keys to fence.
    fn fences(&self) -> Fences {
        Fences { evaluate: Mode::Exclusive, change: None, unwritten: None }
    }

    fn describe(&self) -> String {
        "computed from the document itself".to_owned()
    }

    fn instead(&self) -> String {
        match self.reads.host.as_slice() {
            [] => "it cannot be written".to_owned(),
            reads => {
                let read: Vec<String> = reads.iter().map(Path::dotted).collect();
                format!("write to {} instead", read.join(", "))
            }
        }
    }

    fn enters_arrays(&self) -> bool {
        true
    }

    fn combine(&self, first: Delta, _: &Delta) -> Result<Delta> {
        Ok(first)
    }

    fn variable(&self) -> &str {
        ""
    }

    fn stages(&self, _: &Delta) -> &HostStages {
        &self.stages
    }

    fn constant(&self, _: &Delta) -> Value<'static> {
        Value::Null
    }

    fn apply<'d>(
        &'d self,
        _: &'d Delta,
        _: &Doc<'_>,
        _: &mut SmallVec<[crate::fields::set_paths::Entry<'d>; 6]>,
    ) -> Result<()> {
        Ok(())
    }

    fn hosts(&self, _: &Value<'_>) -> Filter {
        Filter::from_node(Node::Or(Vec::new()))
    }

    fn keys(&self, _: &Doc<'_>) -> key::Values {
        key::Values::new()
    }

    fn wanted(&self, host: &Doc<'_>, before: Option<&Doc<'_>>) -> Result<Wanted> {
        let at = |doc: &Doc<'_>, path: &Path| document::value::expand::walk(doc, &path.parts).0.into_owned();
        let paths = || self.reads.host.iter().chain([&self.target.path]);
        match before.is_none_or(|before| paths().any(|path| at(before, path) != at(host, path))) {
            true => Ok(Wanted::Here),
            false => Ok(Wanted::Nothing),
        }
    }

    fn query(&self, _: &[Value<'static>], _: Fetch) -> Result<ReadOp> {
        Err(self.unlinked())
    }

    fn row(&self, _: &Doc<'_>, _: Fetch) -> Option<(Value<'static>, Doc<'static>)> {
        None
    }

    fn place(&self, host: &Doc<'_>, _: Option<&Doc<'_>>, _: &Rows, env: &Env) -> Result<Doc<'static>> {
        self.own.program.transform(host, env)
    }

    fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        Obstacle::on_way(host, &self.target.path.parts, Arrays::AreEntered)
    }

    fn is_right(&self, host: &Doc<'_>, right: &Doc<'_>) -> bool {
        value_at(host, &self.target.path) == value_at(right, &self.target.path)
    }

    fn fate(&self, host: &Doc<'_>, right: &Doc<'_>) -> Fate {
        Fate::of(&value_at(host, &self.target.path), &value_at(right, &self.target.path))
    }

    fn correction(&self, _: &Doc<'_>, _: &Doc<'_>) -> Result<Update> {
        Ok(self.update.clone())
    }

    fn expected(&self, only_differences: bool) -> Array<'static> {
        let shown = [("stored", field(&self.target.path.dotted())), ("expected", self.source.borrow())];
        let mut stages = vec![call("$project", object(shown))];
        if only_differences {
            stages.push(crate::fields::differing());
        }
        stages.into_iter().collect()
    }

    fn suspects(&self, _: Search) -> Result<Vec<Value<'static>>> {
        Ok(self.expected(true).iter().collect())
    }

    fn comparison(&self, _: bool) -> Result<Option<Vec<ComparisonPipeline>>> {
        // As the value of a variable: a plain number in `$project` would not be a value.
        let expected = with([("own", Value::Null)], self.source.borrow());
        let shown = [("stored", field(&self.target.path.dotted())), ("expected", expected)];
        Ok(Some(vec![ComparisonPipeline { stages: vec![call("$project", object(shown))], hosts: Value::Int32(1) }]))
    }

    fn samples(&self, _: &[Doc<'static>], hosts: &[Doc<'static>], env: &Env) -> Result<Samples> {
        // One that cannot be evaluated gets no value.
        let right = hosts.iter().filter_map(|host| self.own.program.transform(host, env).ok());
        let values = right.map(|right| field_of_document(&right, &self.target.path.parts).into_owned()).collect();
        Ok(Samples { values, ..Samples::default() })
    }

    fn own_stage(&self) -> Option<&OwnStage> {
        Some(&self.own)
    }

    fn recipe(&self) -> Result<Recipe> {
        Ok(Recipe::Expression { stages: std::iter::once(self.own.stage.clone()).collect() })
    }
}
