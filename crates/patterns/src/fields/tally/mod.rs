//! count, sum and avg of linked documents: signed deltas, exact (SEMANTICS R8).

pub mod amount;
pub mod exact;
#[cfg(test)]
mod tests;

use crate::fields::Query;
use crate::fields::host_update::{count_or_zero, increment, merged};
use crate::fields::set_paths::{Entry, put};
use crate::fields::tally::amount::{Amount, Numbers, count};
use crate::fields::tally::exact::{Shown, accumulators, grouped_state, next_state, visible, visible_expression};
use crate::mql::{call, call_with, cond, document, field, list, literal, object};
use crate::rule::obstacle::{Arrays, Obstacle};
use crate::rule::{Fold, Link, Rule, Tally, Upkeep, key};
use document::filter::Filter;
use document::op::Capture;
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::update::{Native, Update};
use document::value::{Path, order};
use document::{Array, Doc, Env, Error, Result, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// What one change means: for each host key, how much.
pub type Deltas = SmallVec<[(Value<'static>, Amount); 2]>;

/// A count, sum or avg rule, compiled.
#[derive(Debug)]
pub struct TallyProgram {
    rule: Arc<Rule>,
    link: Link,
    /// The path that is added up; nothing for a count.
    summed: Option<(Shown, Path)>,
    owned: Owned,
    /// The field, dotted.
    field: String,
    /// The name of the amounts in pipelines.
    variable: String,
    first_stage: Vec<(String, Value<'static>)>,
    second_stage: Option<(String, Value<'static>)>,
    stages: Array<'static>,
    one_more: Option<Update>,
    one_less: Option<Update>,
    /// What comes behind the `$match` on keys in [`TallyProgram::children`].
    grouping: Pipeline,
    watched_source: Capture,
    watched_host: Vec<Path>,
}

/// The paths that the rule owns.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) field: Path,
    pub(super) state: Option<Path>,
}

impl Owned {
    fn place(&self, host: &Doc<'_>, evaluated: &Evaluated) -> Doc<'static> {
        let mut entries: SmallVec<[Entry<'_>; 2]> = SmallVec::new();
        entries.push((&self.field.parts, evaluated.value.borrow()));
        if let (Some(path), Some(state)) = (&self.state, &evaluated.state) {
            entries.push((&path.parts, Value::Document(state.borrow())));
        }
        put(host, &entries)
    }
}

/// A host's value and, for sums and averages, its state.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub value: Value<'static>,
    pub state: Option<Doc<'static>>,
}

impl TallyProgram {
    pub fn new(rule: &Arc<Rule>) -> Result<TallyProgram> {
        let Upkeep::Link(link) = &rule.upkeep else { return Err(no_tally(rule)) };
        let Fold::Tally(tally) = &link.fold else { return Err(no_tally(rule)) };
        let summed = match tally {
            Tally::Count => None,
            Tally::Sum(path) => Some((Shown::Sum, path.clone())),
            Tally::Avg(path) => Some((Shown::Mean, path.clone())),
        };
        let owned = Owned { field: rule.field.clone(), state: rule.state_path() };
        let (name, variable) = (rule.field.dotted(), variable(&rule.field));
        let (first_stage, second_stage) = match (&summed, &owned.state) {
            (Some((shown, _)), Some(state)) => {
                let state = state.dotted();
                // The field is made first, so that a new state comes at the end of the host.
                let place = call_with("$ifNull", [field(&name), Value::Null]);
                let next = next_state(field(&state), &variable, &rule.name);
                let shown = visible_expression(*shown, field(&state));
                (vec![(name.clone(), place), (state, next)], Some((name.clone(), shown)))
            }
            _ => {
                let amount = Value::string(format!("$${variable}"));
                (vec![(name.clone(), call_with("$add", [count_or_zero(&name), amount]))], None)
            }
        };
        let step = |n: i64| match summed {
            None => increment(document([(&*name, count(n))])).map(Some),
            Some(_) => Ok(None),
        };
        let mut program = TallyProgram {
            one_more: step(1)?,
            one_less: step(-1)?,
            watched_source: watched_source(link, summed.as_ref().map(|(_, path)| path)),
            watched_host: [vec![link.local.path.clone()], rule.owned()].concat(),
            rule: Arc::clone(rule),
            link: link.clone(),
            summed,
            owned,
            field: name,
            variable,
            first_stage,
            second_stage,
            stages: Array::empty(),
            grouping: Pipeline::default(),
        };
        program.stages = merged(std::iter::once(&program));
        let grouping = list(program.grouping());
        if let Value::Array(grouping) = &grouping {
            program.grouping = Pipeline::parse(grouping, &mut Names::new())?;
        }
        Ok(program)
    }

    pub fn rule(&self) -> &Arc<Rule> {
        &self.rule
    }

    pub fn name(&self) -> &str {
        &self.rule.name
    }

    pub fn watched_source(&self) -> &Capture {
        &self.watched_source
    }

    pub fn watched_host(&self) -> &[Path] {
        &self.watched_host
    }

    pub(super) fn watched(&self) -> &Owned {
        &self.owned
    }

    pub(super) fn field(&self) -> &str {
        &self.field
    }

    pub(super) fn variable(&self) -> &str {
        &self.variable
    }

    pub(super) fn first_stage(&self) -> &[(String, Value<'static>)] {
        &self.first_stage
    }

    pub(super) fn second_stage(&self) -> &Option<(String, Value<'static>)> {
        &self.second_stage
    }

    pub(super) fn stages(&self) -> &Array<'static> {
        &self.stages
    }

    /// `{ $inc: { field: n } }`
    pub(super) fn increment(&self, n: i64) -> Result<Update> {
        match (n, &self.one_more, &self.one_less) {
            (1, Some(update), _) | (-1, _, Some(update)) => Ok(update.clone()),
            _ => increment(document([(&*self.field, count(n))])),
        }
    }

    pub(super) fn visible(&self, state: &Numbers) -> Value<'static> {
        self.summed.as_ref().map_or(Value::Null, |(shown, _)| visible(*shown, state))
    }

    /// What a change of a source document means for hosts. Refuses an array in the link of `after` unless the rule says `each`.
    pub fn deltas(&self, before: Option<&Doc<'_>>, after: Option<&Doc<'_>>, env: &Env) -> Result<Deltas> {
        let mut deltas = Deltas::new();
        if let Some(after) = after {
            self.contribute(after, env, true, &mut deltas)?;
        }
        if let Some(before) = before {
            let mut earlier = Deltas::new();
            self.contribute(before, env, false, &mut earlier)?;
            for (key, amount) in earlier {
                let amount = amount.negated();
                match deltas.iter_mut().find(|(other, _)| order::equal(other, &key)) {
                    Some((_, sum)) => *sum = sum.plus(&amount, self.name())?,
                    None => deltas.push((key, amount)),
                }
            }
        }
        deltas.retain(|(_, amount)| !amount.is_zero());
        Ok(deltas)
    }

    fn contribute(&self, doc: &Doc<'_>, env: &Env, refusing: bool, deltas: &mut Deltas) -> Result<()> {
        let linked = key::linked(doc, &self.link.foreign);
        if linked.refused && refusing {
            return Err(key::refused(&self.rule, &self.link.foreign.path));
        }
        if linked.values.is_empty() {
            return Ok(());
        }
        if let Some(filter) = &self.link.filter
            && !filter.matches(doc, env)?
        {
            return Ok(());
        }
        let amount = match &self.summed {
            None => Amount::Count(1),
            Some((_, path)) => Amount::Numbers(Numbers::of(&field_of_document(doc, &path.parts))),
        };
        deltas.extend(linked.values.into_iter().map(|key| (key, amount)));
        Ok(())
    }

    /// The host keys that a source document counts for: known before an insert, for hot parents (R12).
    pub fn keys(&self, source: &Doc<'_>, env: &Env) -> Result<key::Values> {
        match &self.link.filter {
            Some(filter) if !filter.matches(source, env)? => Ok(key::Values::new()),
            _ => Ok(key::linked(source, &self.link.foreign).values),
        }
    }

    /// The hosts of a key: `{ _id: key }`.
    pub fn hosts(&self, key: &Value<'_>) -> Filter {
        Filter::equality(&self.link.local.path.dotted(), key)
    }

    /// The key under which a host collects; nothing if it links to nothing.
    pub fn host_key(&self, host: &Doc<'_>) -> Option<Value<'static>> {
        key::linked(host, &self.link.local).values.into_iter().next()
    }

    /// Evaluates some hosts from their children: one row `{ _id: key, expected, expectedState }` per key that has any; see
    /// [`TallyProgram::evaluated`].
    pub fn children(&self, keys: &[Value<'_>]) -> Result<Query> {
        let by = self.link.foreign.path.dotted();
        let mut stages = vec![key::any_of(&self.link.foreign.path, keys)];
        if self.link.each_foreign() {
            // The elements that were not asked for are taken out behind `$unwind`.
            stages.extend(self.unwinding(&by));
            stages.push(key::any_of(&Path::new("_pleach_key"), keys));
        }
        let Value::Array(stages) = list(stages) else { return Err(no_tally(&self.rule)) };
        let head = Pipeline::parse(&stages, &mut Names::new())?;
        Ok(Query { ns: self.link.source.clone(), pipeline: head.then(self.grouping.clone()) })
    }

    /// What makes a row of the children of a key: the stages behind a `$match` on it.
    pub fn definition(&self) -> Array<'static> {
        self.grouping().into_iter().collect()
    }

    /// Each key of a child's array once.
    fn unwinding(&self, by: &str) -> [Value<'static>; 2] {
        let once = call_with("$setUnion", [field(by), list([])]);
        let keys = cond(call("$isArray", field(by)), once, list([field(by)]));
        [call("$set", object([("_pleach_key", keys)])), call("$unwind", Value::from("$_pleach_key"))]
    }

    fn grouping(&self) -> Vec<Value<'static>> {
        let by = if self.link.each_foreign() { "_pleach_key".to_owned() } else { self.link.foreign.path.dotted() };
        let mut stages = Vec::new();
        if let Some(filter) = &self.link.filter {
            stages.push(call("$match", Value::Document(filter.source.clone())));
        }
        stages.push(call("$group", object(self.group(field(&by)))));
        match &self.summed {
            None => stages.push(call("$project", object([("expected", Value::from("$n"))]))),
            Some((shown, _)) => {
                let state = grouped_state(Value::from("$$ROOT"));
                stages.push(call("$project", object([("expectedState", state)])));
                let value = visible_expression(*shown, Value::from("$expectedState"));
                stages.push(call("$set", object([("expected", value)])));
            }
        }
        stages
    }

    fn group(&self, by: Value<'static>) -> Vec<(&'static str, Value<'static>)> {
        let mut fields = vec![("_id", by)];
        match &self.summed {
            None => fields.push(("n", call("$sum", Value::Int32(1)))),
            Some((_, path)) => fields.extend(accumulators(&path.dotted())),
        }
        fields
    }

    /// What a row of [`TallyProgram::children`] (or of `expected`) says; no row means no children.
    pub fn evaluated(&self, row: Option<&Doc<'_>>) -> Result<Evaluated> {
        let Some(row) = row else {
            let empty = Numbers::default();
            return Ok(match self.summed {
                None => Evaluated { value: Value::Int32(0), state: None },
                Some(_) => Evaluated { value: self.visible(&empty), state: Some(empty.to_state()) },
            });
        };
        let value = row.get("expected").map_or(Value::Missing, Value::into_owned);
        let state = match row.get("expectedState") {
            Some(Value::Document(state)) => Some(state.into_owned()),
            _ => None,
        };
        Ok(Evaluated { value, state })
    }

    /// The host with its field (and state) as evaluated: for an insert, so that it stays one statement.
    pub fn place(&self, host: &Doc<'_>, evaluated: &Evaluated) -> Doc<'static> {
        self.owned.place(host, evaluated)
    }

    /// What leaves no room for the value.
    pub fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        Obstacle::on_way(host, &self.owned.field.parts, Arrays::Obstruct)
    }

    /// The same as an update.
    pub fn set(&self, evaluated: &Evaluated) -> Result<Update> {
        let mut fields = vec![(self.field.clone(), literal(evaluated.value.borrow()))];
        if let (Some(path), Some(state)) = (&self.owned.state, &evaluated.state) {
            fields.push((path.dotted(), literal(Value::Document(state.borrow()))));
        }
        let stage = call("$set", object(fields.iter().map(|(path, value)| (&**path, value.borrow()))));
        let stages: Array<'static> = std::iter::once(stage).collect();
        let program = Placing { owned: self.owned.clone(), evaluated: evaluated.clone() };
        Ok(Update::native(stages, None, Arc::new(program)))
    }

    /// What a host has now: its field and its state.
    pub fn stored(&self, host: &Doc<'_>) -> Evaluated {
        let value = field_of_document(host, &self.owned.field.parts).into_owned();
        let state = self.owned.state.as_ref().map(|path| field_of_document(host, &path.parts));
        let state = match state {
            Some(Value::Document(state)) => Some(state.into_owned()),
            _ => None,
        };
        Evaluated { value, state }
    }

    /// Whether both are the same: equal values of the same type, equal states.
    pub fn same(&self, left: &Evaluated, right: &Evaluated) -> bool {
        let numbers = |evaluated: &Evaluated| match &evaluated.state {
            Some(state) => Numbers::from_state(&Value::Document(state.borrow())),
            None => None,
        };
        let states = match (&self.owned.state, numbers(left), numbers(right)) {
            (None, ..) => true,
            (Some(_), Some(left), Some(right)) => left.equals(&right),
            _ => false,
        };
        states && left.value.kind() == right.value.kind() && order::equal(&left.value, &right.value)
    }

    /// See [`crate::fields::Program::expected`].
    pub fn expected(&self, only_differences: bool) -> Array<'static> {
        let found = "_pleach_found";
        let local = self.link.local.path.dotted();
        let by = self.link.foreign.path.dotted();
        let mut inner = Vec::new();
        if let Some(filter) = &self.link.filter {
            inner.push(call("$match", Value::Document(filter.source.clone())));
        }
        if !self.link.each_foreign() {
            // A `$lookup` would join per element.
            let single = call_with("$not", [call("$isArray", field(&by))]);
            inner.push(call("$match", object([("$expr", single)])));
        }
        inner.push(call("$group", object(self.group(Value::Null))));
        let lookup = object([
            ("from", Value::from(&*self.link.source.collection)),
            ("localField", Value::from(&*local)),
            ("foreignField", Value::from(&*by)),
            ("pipeline", list(inner)),
            ("as", Value::from(found)),
        ]);
        // Null and missing never link, although they are joined.
        let unlinked = ["missing", "null", "undefined", "array"].map(Value::from);
        let links = call_with("$not", [call_with("$in", [call("$type", field(&local)), list(unlinked)])]);
        let row = cond(links, call_with("$arrayElemAt", [field(found), Value::Int32(0)]), Value::Null);
        let mut shown = vec![("stored", field(&self.field))];
        match (&self.summed, &self.owned.state) {
            (Some(_), Some(state)) => {
                shown.push(("state", field(&state.dotted())));
                shown.push(("expectedState", grouped_state(row)));
            }
            _ => {
                let n = crate::mql::with([("g", row)], call_with("$ifNull", [Value::from("$$g.n"), Value::Int32(0)]));
                shown.push(("expected", n));
            }
        }
        let mut stages = vec![call("$lookup", lookup), call("$project", object(shown))];
        if let Some((shown, _)) = &self.summed {
            let value = visible_expression(*shown, Value::from("$expectedState"));
            stages.push(call("$set", object([("expected", value)])));
        }
        if only_differences {
            stages.push(self.differing());
        }
        stages.into_iter().collect()
    }

    /// As [`TallyProgram::expected`], in one pass over hosts and children: for who may not make the index that the other form
    /// needs. Gives hosts whose value differs.
    pub fn differing_without_index(&self) -> Result<Array<'static>> {
        let differ = call_with("$ne", [field("stored"), field("expected")]);
        let stages = self.meeting()?;
        Ok(stages.iter().map(Value::into_owned).chain([call("$match", object([("$expr", differ)]))]).collect())
    }

    /// The same with `{ _id, stored, expected }` of every host.
    pub fn meeting(&self) -> Result<Array<'static>> {
        let by = self.link.foreign.path.dotted();
        let mut children = Vec::new();
        if self.link.each_foreign() {
            children.extend(self.unwinding(&by));
        } else {
            let links = ["missing", "null", "undefined", "array"].map(Value::from);
            let links = call_with("$not", [call_with("$in", [call("$type", field(&by)), list(links)])]);
            children.push(call("$match", object([("$expr", links)])));
        }
        children.extend(self.grouping());
        let row = [("_id", Value::Int32(0)), ("key", Value::from("$_id")), ("expected", Value::Int32(1))];
        children.push(call("$project", object(row)));
        let host = object([("id", field("_id")), ("stored", field(&self.field))]);
        let shown = [("_id", Value::Int32(0)), ("key", field(&self.link.local.path.dotted())), ("host", host)];
        let union = object([("coll", Value::from(&*self.link.source.collection)), ("pipeline", list(children))]);
        let met = object([
            ("_id", Value::from("$key")),
            ("hosts", call("$push", Value::from("$host"))),
            ("expected", call("$max", Value::from("$expected"))),
        ]);
        let empty = literal(self.evaluated(None)?.value);
        let told = object([
            ("_id", Value::from("$hosts.id")),
            ("stored", Value::from("$hosts.stored")),
            ("expected", call_with("$ifNull", [Value::from("$expected"), empty])),
        ]);
        let stages = [
            call("$project", object(shown)),
            call("$unionWith", union),
            call("$group", met),
            call("$unwind", Value::from("$hosts")),
            call("$project", told),
        ];
        Ok(stages.into_iter().collect())
    }

    fn differing(&self) -> Value<'static> {
        let differs = |left: &str, right: &str| call_with("$ne", [field(left), field(right)]);
        let type_of = |path: &str| call("$type", field(path));
        let types = call_with("$ne", [type_of("stored"), type_of("expected")]);
        let mut reasons = vec![differs("stored", "expected"), types];
        if self.summed.is_some() {
            reasons.push(differs("state", "expectedState"));
        }
        call("$match", object([("$expr", call_with("$or", reasons))]))
    }
}

fn no_tally(rule: &Rule) -> Error {
    Error::bad_value(format!("rule {} keeps no count, sum or average", rule.name))
}

/// A name for the rule's amounts that no other field of the host has: variables are letters, digits and underscores.
fn variable(path: &Path) -> String {
    let mut name = "of_".to_owned();
    for letter in path.dotted().chars() {
        match letter {
            '_' => name.push_str("__"),
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            other => name.push_str(&format!("_{:x}_", u32::from(other))),
        }
    }
    name
}

fn watched_source(link: &Link, summed: Option<&Path>) -> Capture {
    let mut paths = vec![link.foreign.path.clone()];
    paths.extend(summed.cloned());
    if let Some(filter) = &link.filter {
        match filter.root.reads() {
            Some(read) => paths.extend(read),
            None => return Capture::Everything,
        }
    }
    Capture::Paths(paths)
}

/// [`TallyProgram::set`] as code.
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
