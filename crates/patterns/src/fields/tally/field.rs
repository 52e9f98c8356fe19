//! A count, sum or average as a [`Field`].

use super::amount::{Numbers, count, too_many_digits};
use super::{Deltas, Evaluated, Owned, Tally, TallyField, definition};
use crate::fields::differing;
use crate::fields::set_paths::Entry;
use crate::mql::{call, document, literal, object};
use crate::rule::field::{HostStages, Outlook, Samples, Search};
use crate::rule::obstacle::{Arrays, Obstacle};
use crate::rule::{
    Delta, Effect, Effects, Fate, Fences, Fetch, Field, HostField, Link, Reads, Recipe, Rows, Wanted, key,
};
use document::backend::Mode;
use document::filter::Filter;
use document::op::{Aggregate, Change, ReadOp};
use document::pipeline::expr::field_of_document;
use document::update::{Native, Update};
use document::value::{Decimal128, Path, order};
use document::{Array, Doc, Env, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

impl Field for TallyField {
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

    fn describe(&self) -> String {
        let (source, by) = (&self.link.source.collection, self.link.by());
        match &self.tally {
            Tally::Count => format!("count of {source} by {by}"),
            Tally::Sum(path) => format!("sum of {path} from {source} by {by}"),
            Tally::Avg(path) => format!("avg of {path} from {source} by {by}"),
        }
    }

    fn instead(&self) -> String {
        format!("write to {} instead", self.link.source.collection)
    }

    fn enters_arrays(&self) -> bool {
        false
    }

    fn react(&self, change: &Change, env: &Env, effects: &mut Effects) -> Result<()> {
        let mut deltas = Deltas::new();
        if let Some(after) = &change.after {
            self.contribute(after, env, true, &mut deltas)?;
        }
        if let Some(before) = &change.before {
            let mut earlier = Deltas::new();
            self.contribute(before, env, false, &mut earlier)?;
            for (key, amount) in earlier {
                let amount = negated(amount);
                match deltas.iter_mut().find(|(other, _)| order::equal(other, &key)) {
                    Some((_, sum)) => *sum = self.combine(sum.clone(), &amount)?,
                    None => deltas.push((key, amount)),
                }
            }
        }
        let changing = deltas.into_iter().filter(|(_, delta)| !delta.is_zero());
        effects.extend(changing.map(|(key, delta)| (key, Effect::Update(delta))));
        Ok(())
    }

    fn contribution(&self, source: &Doc<'_>, env: &Env) -> Result<Effects> {
        let mut deltas = Deltas::new();
        self.contribute(source, env, false, &mut deltas)?;
        Ok(deltas.into_iter().map(|(key, delta)| (key, Effect::Update(delta))).collect())
    }

    fn hosts_of_source(&self, source: &Doc<'_>, env: &Env) -> Result<key::Values> {
        match &self.link.filter {
            Some(filter) if !filter.matches(source, env)? => Ok(key::Values::new()),
            _ => Ok(self.link.source_keys(source, env).values),
        }
    }

    /// Where a host is made, whoever fills its other fields must know of it.
    fn is_blind(&self) -> bool {
        !self.link.create
    }

    fn combine(&self, first: Delta, second: &Delta) -> Result<Delta> {
        match (first, second) {
            (Delta::Count(a), Delta::Count(b)) => Ok(Delta::Count(a + b)),
            (Delta::Numbers(a), Delta::Numbers(b)) => self.plus(&a, b).map(Delta::Numbers),
            (Delta::State(a), Delta::State(b)) => self.plus(&a, b).map(Delta::State),
            // Deltas of one field are of one kind.
            (delta, _) => Ok(delta),
        }
    }

    fn variable(&self) -> &str {
        &self.variable
    }

    fn stages(&self, delta: &Delta) -> &HostStages {
        match delta {
            Delta::State(_) => &self.state_stages,
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
            Delta::Numbers(numbers) | Delta::State(numbers) => {
                let form = self.stateful.as_ref().map(|stateful| stateful.form);
                form.map_or(Value::Null, |form| Value::Document(numbers.to_constant(form)))
            }
            Delta::Items { .. } | Delta::Set { .. } | Delta::Unset => Value::Null,
        }
    }

    fn apply<'d>(&'d self, delta: &'d Delta, host: &Doc<'_>, into: &mut SmallVec<[Entry<'d>; 6]>) -> Result<()> {
        match delta {
            Delta::Count(n) => {
                let more = document::value::Number::int_or_long(*n);
                let sum = match field_of_document(host, &self.owned.field.parts).as_number() {
                    Some(number) => number.plus(more).into(),
                    None => count(*n),
                };
                into.push((&self.owned.field.parts, sum));
            }
            Delta::Numbers(numbers) | Delta::State(numbers) => {
                let (Some(state), Some(stateful)) = (&self.owned.state, &self.stateful) else { return Ok(()) };
                let old = Numbers::from_state(&field_of_document(host, &state.parts));
                let new = self.plus(&old.ok_or_else(|| self.broken(state))?, numbers)?;
                if matches!(delta, Delta::Numbers(_)) {
                    into.push((&self.owned.field.parts, self.visible(&new)));
                }
                into.push((&state.parts, Value::Document(new.to_state(stateful.form))));
            }
            Delta::Items { .. } | Delta::Set { .. } | Delta::Unset => {}
        }
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

    fn query(&self, keys: &[Value<'static>], _: Fetch) -> Result<ReadOp> {
        let head = definition::of_keys(&self.link, keys)?;
        Ok(ReadOp::Aggregate(Aggregate {
            ns: self.link.source.clone(),
            collectionless: false,
            pipeline: head.then(self.grouping.clone()),
            hint: None,
            allow_disk_use: true,
        }))
    }

    fn row(&self, document: &Doc<'_>, _: Fetch) -> Option<(Value<'static>, Doc<'static>)> {
        Some((document.get("_id")?.into_owned(), document.clone().into_owned()))
    }

    fn place(&self, host: &Doc<'_>, _: Option<&Doc<'_>>, rows: &Rows, _: &Env) -> Result<Doc<'static>> {
        let row = self.host_key(host).and_then(|own| rows.get(&own));
        Ok(self.owned.place(host, &self.evaluated(row)))
    }

    fn shown_by_state(&self, host: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let (Some(path), Some(stateful)) = (&self.owned.state, &self.stateful) else { return Ok(None) };
        let state = Numbers::from_state(&field_of_document(host, &path.parts)).ok_or_else(|| self.broken(path))?;
        Ok(Some(self.owned.place(host, &self.of_state(stateful.form, &state))))
    }

    fn empty_values(&self) -> Vec<(Path, Value<'static>)> {
        let empty = self.evaluated(None);
        let state = self.owned.state.clone().zip(empty.state.map(Value::Document));
        std::iter::once((self.owned.field.clone(), empty.value)).chain(state).collect()
    }

    fn without_host(&self) -> Option<Array<'static>> {
        self.link.create.then(|| TallyField::without_host(self))
    }

    fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        Obstacle::on_way(host, &self.owned.field.parts, Arrays::Obstruct)
    }

    /// Equal values of the same type, equal states.
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
        states && left.value.kind() == right.value.kind() && order::equal(&left.value, &right.value)
    }

    fn fate(&self, host: &Doc<'_>, right: &Doc<'_>) -> Fate {
        Fate::of(&self.stored(host).value, &self.stored(right).value)
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
        let mut stages: Vec<Value<'static>> = self.definition(search.in_force).iter().collect();
        if !search.in_force {
            stages.push(differing());
        }
        Ok(stages)
    }

    fn outlook(&self, _: bool) -> Result<Option<Vec<Outlook>>> {
        let all = self.compared().into_iter().map(|stages| Outlook { stages, hosts: Value::Int32(1) });
        Ok(Some(all.collect()))
    }

    fn samples(&self, sources: &[Doc<'static>], _: &[Doc<'static>], _: &Env) -> Result<Samples> {
        let mut samples = Samples { values: vec![self.evaluated(None).value], ..Samples::default() };
        match &self.tally {
            Tally::Sum(path) => {
                let numbers = sources.iter().map(|child| field_of_document(child, &path.parts).into_owned());
                samples.values.extend(numbers.filter(Value::is_number));
            }
            // Of the type that its children have.
            Tally::Avg(_) => samples.any.extend([Value::Double(0.5), Value::Decimal(Decimal128::ZERO)]),
            // However many there will be.
            Tally::Count => samples.values.push(Value::Int32(i32::MAX)),
        }
        Ok(samples)
    }

    fn recipe(&self) -> Result<Recipe> {
        if self.link.each_foreign() {
            return Ok(Recipe::Unwritten("it links by arrays"));
        }
        if self.link.create || self.link.foreign.path().is_none() {
            return Ok(Recipe::Unwritten("it links by an expression, or makes its documents"));
        }
        if self.tally == Tally::Count && self.link.filter.is_none() {
            return Ok(Recipe::Count);
        }
        let mut set = vec![(self.field.clone(), "expected")];
        set.extend(self.owned.state.iter().map(|path| (path.dotted(), "expectedState")));
        let empty = self.evaluated(None);
        let mut values = vec![(self.field.clone(), empty.value)];
        if let (Some(path), Some(state)) = (&self.owned.state, empty.state) {
            values.push((path.dotted(), Value::Document(state)));
        }
        let empty = document(values.iter().map(|(path, value)| (&**path, value.borrow())));
        Ok(Recipe::Evaluate { stages: self.grouping_stages(), set, empty })
    }
}

impl TallyField {
    fn plus(&self, first: &Numbers, second: &Numbers) -> Result<Numbers> {
        first.plus(second).ok_or_else(|| too_many_digits(&self.target.rule))
    }
}

fn negated(delta: Delta) -> Delta {
    match delta {
        Delta::Count(n) => Delta::Count(-n),
        Delta::Numbers(numbers) => Delta::Numbers(numbers.negated()),
        other => other,
    }
}

fn same_key(left: Option<&Value<'_>>, right: Option<&Value<'_>>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => order::equal(left, right),
        (left, right) => left.is_none() && right.is_none(),
    }
}

/// [`Field::correction`] as code.
#[derive(Debug)]
struct Placing {
    owned: Owned,
    evaluated: Evaluated,
}

impl Native for Placing {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        Ok(self.owned.place(doc, &self.evaluated))
    }
}
