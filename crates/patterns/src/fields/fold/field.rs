//! A fold as a [`Field`].

use super::children::{by_shortcut, key_field, keyed, keys_of_child, of_keys};
use super::evaluated::{Evaluated, Placing};
use super::{Fold, FoldField, Sameness, Shortcut};
use crate::fields::differing;
use crate::fields::set_paths::Entry;
use crate::mql::{call, document, literal, object};
use crate::rule::field::{ComparisonPipeline, HostStages, SOUGHT_KEYS, Samples, Search};
use crate::rule::numbers::too_many_digits;
use crate::rule::numbers::{CHILDREN, Numbers, count};
use crate::rule::obstacle::{Arrays, Obstacle};
use crate::rule::{
    Delta, Effect, Effects, Fate, Fences, Fetch, Field, HostField, KeyedRecipe, Link, Lookup, Needs, Question, Reads,
    Recipe, Rows, Wanted, key,
};
use document::backend::Mode;
use document::filter::Filter;
use document::op::{Aggregate, Change, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::update::Update;
use document::value::{Number, Path, order};
use document::{Array, Code, Doc, Env, Error, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

impl<F: Fold> Field for FoldField<F> {
    fn target(&self) -> &HostField {
        &self.target
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn state(&self) -> Option<&Path> {
        self.owned.state.as_ref()
    }

    fn fences(&self) -> Fences {
        Fences { evaluate: Mode::Exclusive, change: None, unwritten: Some(Mode::Shared) }
    }

    fn needs(&self) -> Needs {
        self.fold.needs(&self.target, &self.link)
    }

    fn lookup(&self) -> Lookup {
        self.fold.lookup()
    }

    fn describe(&self) -> String {
        format!("{} by {}", self.fold.describe(&self.link.source.collection), self.link.by())
    }

    fn instead(&self) -> String {
        format!("write to {} instead", self.link.source.collection)
    }

    fn enters_arrays(&self) -> bool {
        false
    }

    fn react(&self, change: &Change, env: &Env, effects: &mut Effects) -> Result<()> {
        self.reaction(change, env, effects)
    }

    fn contribution(&self, source: &Doc<'_>, env: &Env) -> Result<Effects> {
        self.addition(source, env)
    }

    fn hosts_of_source(&self, source: &Doc<'_>, env: &Env) -> Result<key::Values> {
        self.keys_of_child(source, env, false)
    }

    /// Where a host is made, whoever fills its other fields must know of it.
    fn is_blind(&self) -> bool {
        !self.link.create && self.fold.is_blind()
    }

    fn stages_decide(&self, delta: &Delta) -> bool {
        self.fold.stages_decide(delta)
    }

    fn decide(&self, host: &Doc<'_>, delta: Delta) -> Result<Effect> {
        Ok(self.fold.decide(&field_of_document(host, &self.owned.field.parts), delta))
    }

    fn ask(&self, questions: &[Question], fetch: Fetch) -> Result<ReadOp> {
        if let Some(stages) = self.fold.ask(&self.link, questions, fetch) {
            return self.aggregate(Pipeline::parse(&stages, &mut Names::new())?);
        }
        let mut keys: Vec<Value<'static>> = questions.iter().map(|question| question.key.clone()).collect();
        keys.sort_by(order::compare);
        keys.dedup_by(|a, b| order::equal(a, b));
        self.rows_of(&keys, true, fetch)
    }

    fn answer_row(&self, document: &Doc<'_>, fetch: Fetch) -> Option<(Value<'static>, Value<'static>, Doc<'static>)> {
        let about = document.get("about").map_or(Value::Missing, Value::into_owned);
        self.row(document, fetch).map(|(key, row)| (key, about, row))
    }

    fn answer(&self, question: &Question, row: Option<&Doc<'_>>) -> Result<Option<Delta>> {
        Ok(self.fold.answer(question, row))
    }

    fn combine(&self, first: Delta, second: &Delta) -> Result<Delta> {
        match (first, second) {
            (Delta::Count(a), Delta::Count(b)) => Ok(Delta::Count(a + b)),
            (Delta::Numbers(a), Delta::Numbers(b)) => self.plus(&a, b).map(Delta::Numbers),
            (Delta::State(a), Delta::State(b)) => self.plus(&a, b).map(Delta::State),
            // What was read holds everything else.
            (first, Delta::Set { value, appeared, children }) => {
                Ok(Delta::Set { value: value.clone(), appeared: *appeared, children: children + first.children() })
            }
            (Delta::Set { value, appeared, children }, second) => {
                Ok(Delta::Set { value, appeared, children: children + second.children() })
            }
            (first, second) => Ok(self.fold.combine(first, second)),
        }
    }

    fn variable(&self) -> &str {
        &self.variable
    }

    fn stages(&self, delta: &Delta) -> &HostStages {
        match delta {
            Delta::State(_) => &self.state_stages,
            Delta::Set { .. } => &self.set_stages,
            _ => &self.stages,
        }
    }

    fn compiled_update(&self, delta: &Delta) -> Option<&Update> {
        match delta {
            Delta::Count(1) => self.one_more.as_ref(),
            Delta::Count(-1) => self.one_less.as_ref(),
            _ => None,
        }
    }

    fn constant(&self, delta: &Delta) -> Value<'static> {
        match delta {
            Delta::Count(n) => count(*n),
            Delta::State(numbers) => Value::Document(numbers.to_constant(self.form)),
            Delta::Set { value, children, .. } => object([("value", value.borrow()), (CHILDREN, count(*children))]),
            other => self.fold.constant(other, self.form),
        }
    }

    fn apply<'d>(&'d self, delta: &'d Delta, host: &Doc<'_>, into: &mut SmallVec<[Entry<'d>; 6]>) -> Result<()> {
        let stored = field_of_document(host, &self.owned.field.parts);
        let state = match &self.owned.state {
            Some(path) => {
                let old = Numbers::from_state(&field_of_document(host, &path.parts));
                let more = match delta {
                    Delta::Numbers(numbers) | Delta::State(numbers) => *numbers,
                    other => Numbers { children: other.children(), ..Numbers::default() },
                };
                Some((path, self.plus(&old.ok_or_else(|| self.broken(path))?, &more)?))
            }
            None => None,
        };
        let value = match delta {
            Delta::State(_) => None,
            Delta::Count(n) => Some(match stored.as_number() {
                Some(number) => number.plus(Number::int_or_long(*n)).into(),
                None => count(*n),
            }),
            Delta::Set { value, .. } => Some(value.borrow()),
            other => {
                Some(self.fold.apply(other, stored, state.as_ref().map_or(&Numbers::default(), |(_, new)| new))?)
            }
        };
        into.extend(value.map(|value| (&*self.owned.field.parts, value)));
        into.extend(state.map(|(path, new)| (&*path.parts, Value::Document(new.to_state(self.form)))));
        Ok(())
    }

    fn hosts(&self, key: &Value<'_>) -> Filter {
        Filter::equality(&self.link.local.path.dotted(), key)
    }

    fn keys(&self, host: &Doc<'_>) -> key::Values {
        self.host_key(host).into_iter().collect()
    }

    /// Evaluated for a host that is new or has another key, else as it was.
    fn wanted(&self, host: &Doc<'_>, before: Option<&Doc<'_>>) -> Result<Wanted> {
        let own = self.host_key(host);
        match before {
            Some(before) if same_key(self.host_key(before).as_ref(), own.as_ref()) => {
                // A host that is not seeded yet may have neither value nor state: nothing is made of that.
                let (stored, now) = (self.stored(before), self.stored(host));
                match stored.value == now.value && stored.state == now.state {
                    true => Ok(Wanted::Nothing),
                    false => Ok(Wanted::Restored(self.owned.place(host, &stored))),
                }
            }
            _ => Ok(Wanted::Rows(own.into_iter().collect())),
        }
    }

    fn query(&self, keys: &[Value<'static>], fetch: Fetch) -> Result<ReadOp> {
        // The number of children needs all of them.
        self.rows_of(keys, !self.form.children, fetch)
    }

    fn row(&self, document: &Doc<'_>, _: Fetch) -> Option<(Value<'static>, Doc<'static>)> {
        Some((document.get("_id")?.into_owned(), document.clone().into_owned()))
    }

    fn place(&self, host: &Doc<'_>, _: Option<&Doc<'_>>, rows: &Rows, _: &Env) -> Result<Doc<'static>> {
        let row = self.host_key(host).and_then(|own| rows.get(&own));
        Ok(self.owned.place(host, &self.evaluated(row)))
    }

    fn shown_by_state(&self, host: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let Some(path) = &self.owned.state else { return Ok(None) };
        let state = Numbers::from_state(&field_of_document(host, &path.parts)).ok_or_else(|| self.broken(path))?;
        let Some(value) = self.fold.of_state(&state) else { return Ok(None) };
        Ok(Some(self.owned.place(host, &Evaluated { value, state: Some(state.to_state(self.form)) })))
    }

    fn empty_values(&self) -> Vec<(Path, Value<'static>)> {
        let empty = self.evaluated(None);
        let state = self.owned.state.clone().zip(empty.state.map(Value::Document));
        std::iter::once((self.owned.field.clone(), empty.value)).chain(state).collect()
    }

    fn fills_every_host(&self) -> bool {
        true
    }

    fn without_host(&self) -> Option<Array<'static>> {
        self.link.create.then(|| self.hostless())
    }

    fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        Obstacle::on_way(host, &self.owned.field.parts, Arrays::Obstruct)
    }

    /// The same values, equal states.
    fn is_right(&self, host: &Doc<'_>, right: &Doc<'_>) -> bool {
        let (left, right) = (self.stored(host), self.stored(right));
        let numbers = |evaluated: &Evaluated| match &evaluated.state {
            Some(state) => Numbers::from_state(&Value::Document(state.borrow())),
            None => None,
        };
        let states = match (&self.owned.state, numbers(&left), numbers(&right)) {
            (None, ..) => true,
            (Some(_), Some(left), Some(right)) => left.equals(&right),
            _ => false,
        };
        states && self.is_same(&left.value, &right.value)
    }

    fn fate(&self, host: &Doc<'_>, right: &Doc<'_>) -> Fate {
        match Fate::of(&self.stored(host).value, &self.stored(right).value) {
            Fate::Retyped if self.fold.sameness() == Sameness::ByValue => Fate::Right,
            fate => fate,
        }
    }

    fn correction(&self, _: &Doc<'_>, right: &Doc<'_>) -> Result<Update> {
        let evaluated = self.stored(right);
        let mut fields = vec![(self.field.clone(), literal(evaluated.value.borrow()))];
        if let (Some(path), Some(state)) = (&self.owned.state, &evaluated.state) {
            fields.push((path.dotted(), literal(Value::Document(state.borrow()))));
        }
        let stage = call("$set", object(fields.iter().map(|(path, value)| (&**path, value.borrow()))));
        let program = Placing { owned: self.owned.clone(), evaluated };
        Ok(Update::native(std::iter::once(stage).collect(), None, Arc::new(program)))
    }

    fn expected(&self, only_differences: bool) -> Array<'static> {
        self.definition(only_differences)
    }

    fn suspects(&self, search: Search) -> Result<Vec<Value<'static>>> {
        if !search.in_force && !search.is_indexed {
            return Ok(self.differing_without_index());
        }
        let mut stages = match self.meets_cheaply() {
            true => self.met(),
            false => self.definition(false).iter().collect(),
        };
        stages.push(if search.in_force { self.differing() } else { differing() });
        Ok(stages)
    }

    fn comparison(&self, _: bool) -> Result<Option<Vec<ComparisonPipeline>>> {
        let all = self.compared().into_iter().map(|stages| ComparisonPipeline { stages, hosts: Value::Int32(1) });
        Ok(Some(all.collect()))
    }

    fn samples(&self, sources: &[Doc<'static>], _: &[Doc<'static>], _: &Env) -> Result<Samples> {
        let mut samples = self.fold.samples(sources);
        samples.values.insert(0, self.fold.empty());
        Ok(samples)
    }

    fn recipe(&self) -> Result<Recipe> {
        let is_keyed = self.link.create || self.link.each_foreign() || self.link.foreign.path().is_none();
        if let Some(recipe) = self.fold.recipe(&self.link).filter(|_| !is_keyed) {
            return Ok(recipe);
        }
        let mut set = vec![(self.field.clone(), "expected")];
        set.extend(self.owned.state.iter().map(|path| (path.dotted(), "expectedState")));
        let empty: Vec<_> = self.empty_values().into_iter().map(|(path, value)| (path.dotted(), value)).collect();
        let empty = document(empty.iter().map(|(path, value)| (&**path, value.borrow())));
        let stages = self.rows().into_iter().collect();
        if !is_keyed {
            return Ok(Recipe::Evaluate { stages, set, empty });
        }
        let (keyed, key) = (keyed(&self.link).into_iter().collect(), key_field(&self.link));
        let (keys, create) = (keys_of_child(&self.link), self.link.create);
        Ok(Recipe::Keyed(KeyedRecipe { keys, keyed, key, stages, set, empty, create }))
    }
}

impl<F: Fold> FoldField<F> {
    /// The key under which a host collects; `None` if it links to nothing.
    fn host_key(&self, host: &Doc<'_>) -> Option<Value<'static>> {
        key::linked(host, &self.link.local).values.into_iter().next()
    }

    /// Reads the rows of some keys; `values_only` if nothing needs their state.
    fn rows_of(&self, keys: &[Value<'static>], values_only: bool, fetch: Fetch) -> Result<ReadOp> {
        let is_short = values_only && keys.len() <= SOUGHT_KEYS && self.link.foreign.is_seekable();
        // Several keys or branches are joined by `$lookup`.
        let may_join = fetch != Fetch::Shaped;
        let is_usable = |shortcut: &Shortcut| may_join || (keys.len() == 1 && shortcut.branches.len() == 1);
        let shortcut = self.fold.shortcut().filter(|shortcut| is_short && !keys.is_empty() && is_usable(shortcut));
        let parse = |stages: Array<'static>| Pipeline::parse(&stages, &mut Names::new());
        self.aggregate(match shortcut {
            Some(shortcut) => parse(by_shortcut(&self.link, keys, &shortcut))?,
            None => parse(of_keys(&self.link, keys).into_iter().collect())?.then(self.grouping_in(fetch).clone()),
        })
    }

    fn grouping_in(&self, fetch: Fetch) -> &Pipeline {
        self.own_grouping.as_ref().filter(|_| fetch == Fetch::Documents).unwrap_or(&self.grouping)
    }

    fn aggregate(&self, pipeline: Pipeline) -> Result<ReadOp> {
        let ns = self.link.source.clone();
        Ok(ReadOp::Aggregate(Aggregate {
            ns,
            collectionless: false,
            pipeline,
            hint: None,
            allow_disk_use: true,
            collation: None,
        }))
    }

    fn is_same(&self, left: &Value<'_>, right: &Value<'_>) -> bool {
        let same_types = match self.fold.sameness() {
            Sameness::Exact => left.kind() == right.kind(),
            Sameness::ByValue => left.is_missing() == right.is_missing(),
        };
        same_types && order::equal(left, right)
    }

    fn plus(&self, first: &Numbers, second: &Numbers) -> Result<Numbers> {
        first.plus(second).ok_or_else(|| too_many_digits(&self.target.rule))
    }

    fn broken(&self, state: &Path) -> Error {
        let message = format!("{state} does not hold the state of rule {}: repair the rule", self.target.rule);
        Error::new(Code::BadValue, message)
    }
}

fn same_key(left: Option<&Value<'_>>, right: Option<&Value<'_>>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => order::equal(left, right),
        (left, right) => left.is_none() && right.is_none(),
    }
}
