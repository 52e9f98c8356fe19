//! What all folds of child documents share: counts, sums, extremes, windows differ only in what a [`Fold`] says.
//!
//! [`children`] finds the children of keys and makes rows of them, [`definition`] computes the values of all hosts from scratch,
//! [`rows`] makes the same rows in this process, [`evaluated`] is what a host holds of the field, [`react`] what a changed child means for it, [`field`] is the
//! [`crate::rule::Field`].

pub(crate) mod children;
mod definition;
mod evaluated;
mod field;
mod react;
mod rows;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use children::KEY;
pub use children::Shortcut;
pub(crate) use children::elements;
pub use evaluated::Evaluated;
pub use rows::{KeyedRows, RowMaker};

use crate::fields::host_update::{count_or_zero, increment};
use crate::fields::ranked::is_about_others;
use crate::fields::tally::exact::next_state;
use crate::fields::variable;
use crate::mql::{call, call_with, document, field, object};
use crate::rule::field::{HostStages, Samples};
use crate::rule::numbers::{CHILDREN, Numbers, StateForm, count};
use crate::rule::{Delta, Effect, Fetch, HostField, Link, Lookup, Needs, Question, Reads, Recipe, owned};
use document::op::Capture;
use document::pipeline::expr::Names;
use document::pipeline::{Pipeline, Stage};
use document::update::Update;
use document::value::Path;
use document::{Array, Doc, Result, Value};
use evaluated::Owned;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::sync::Arc;

/// What one fold is. Everything else is common to all: [`FoldField`].
pub trait Fold: Debug + Send + Sync {
    /// What it keeps, without its key: `count of reviews`.
    fn describe(&self, source: &str) -> String;

    /// What it reads of a child, beside its key and `where`.
    fn reads(&self) -> Capture;

    /// Whether its state holds numbers (SEMANTICS R8).
    fn keeps_numbers(&self) -> bool {
        false
    }

    /// The value without children.
    fn empty(&self) -> Value<'static>;

    /// The value of children that are there.
    fn grouping(&self, form: StateForm) -> Grouping;

    /// The same behind `where` as one stage, for children that are read in this process, and have their keys at `key`; `None` if
    /// the stages are as good.
    fn rows(&self, _key: Path, _form: StateForm) -> Option<Arc<dyn Stage>> {
        None
    }

    /// How the children of one key are answered without reading all of them; `None` if all must be read.
    fn shortcut(&self) -> Option<Shortcut> {
        None
    }

    /// How its children are looked up again: see [`Lookup`].
    fn lookup(&self) -> Lookup {
        Lookup::Never
    }

    fn sameness(&self) -> Sameness {
        Sameness::Exact
    }

    fn needs(&self, host: &HostField, link: &Link) -> Needs {
        Needs::of_link(&host.host, link)
    }

    /// What a changed child means for the hosts of one key. Updates become one, and none if they cancel each other out.
    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]>;

    /// Whether what follows from an inserted child needs no answer.
    fn is_blind(&self) -> bool {
        false
    }

    /// See [`crate::rule::Field::stages_decide`].
    fn stages_decide(&self, _delta: &Delta) -> bool {
        false
    }

    /// What a delta means for a host that holds `stored`: see [`crate::rule::Field::decide`].
    fn decide(&self, _stored: &Value<'_>, delta: Delta) -> Effect {
        Effect::Update(delta)
    }

    /// Both deltas as one, where they are not numbers.
    fn combine(&self, first: Delta, _second: &Delta) -> Delta {
        first
    }

    /// What a delta of its own makes of the value, as an expression. Here: nothing, all deltas are looked at or asked about, and what
    /// is written is the value that they lead to.
    fn next(&self, host: &HostExpressions) -> Next {
        Next::OfStored(host.stored.clone())
    }

    /// What the variable of the delta holds.
    fn constant(&self, _delta: &Delta, _form: StateForm) -> Value<'static> {
        Value::Null
    }

    /// The same as [`Fold::next`], as code; `state` is what the host has then.
    fn apply(&self, _delta: &Delta, stored: Value<'_>, _state: &Numbers) -> Result<Value<'static>> {
        Ok(stored.into_owned())
    }

    /// The value that a state gives; `None` if it does not give one.
    fn of_state(&self, _state: &Numbers) -> Option<Value<'static>> {
        None
    }

    /// What some inquiries read, as stages on the source; `None`: the rows of the whole keys.
    fn ask(&self, _link: &Link, _questions: &[Question], _fetch: Fetch) -> Option<Array<'static>> {
        None
    }

    /// What follows from the answer: here the value that was read. Returns `None` if the hosts stay as they are.
    fn answer(&self, question: &Question, row: Option<&Doc<'_>>) -> Option<Delta> {
        if is_about_others(question, row) {
            return None;
        }
        let value = row.and_then(|row| row.get("expected")).map_or_else(|| self.empty(), Value::into_owned);
        Some(Delta::Set { value, appeared: false, children: question.delta.children() })
    }

    /// What values look like, by some children.
    fn samples(&self, sources: &[Doc<'static>]) -> Samples;

    /// Code that is shorter than an evaluation.
    fn recipe(&self, _link: &Link) -> Option<Recipe> {
        None
    }
}

/// How the children of a key become a row `{ _id: key, expected, expectedState? }`.
#[derive(Clone, Debug, Default)]
pub struct Grouping {
    /// The stages before the `$group`.
    pub before: Vec<Value<'static>>,
    /// The number of children is added to them, unless they have it.
    pub accumulators: Vec<(&'static str, Value<'static>)>,
    /// The stages behind it.
    pub behind: Vec<Value<'static>>,
}

impl Grouping {
    /// The row is this expression of the accumulators.
    pub fn of(
        accumulators: Vec<(&'static str, Value<'static>)>,
        expected: Value<'static>,
        form: StateForm,
    ) -> Grouping {
        let mut row = vec![("expected", expected)];
        if form.children {
            row.push(("expectedState", object([(CHILDREN, field(CHILDREN))])));
        }
        Grouping { before: Vec::new(), accumulators, behind: vec![call("$project", object(row))] }
    }
}

/// When two values are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// Of one type.
    Exact,
    /// Equal: 5 and 5.0.
    ByValue,
}

/// What a delta makes of the value.
#[derive(Debug)]
pub enum Next {
    /// It is added: [`Delta::Count`], and nothing of it is kept in a state.
    Counted,
    /// An expression of what is stored.
    OfStored(Value<'static>),
    /// An expression of the state that the delta has made.
    OfState(Value<'static>),
}

/// Where expressions find what they need.
#[derive(Debug)]
pub struct HostExpressions {
    pub stored: Value<'static>,
    pub state: Value<'static>,
    /// The variable that holds [`Fold::constant`], without `$$`.
    pub delta: String,
    pub form: StateForm,
}

/// How a changed child stands to one key: among its children before the change, after it, or both.
#[derive(Debug)]
pub struct ChildChange<'c> {
    pub id: &'c Value<'c>,
    pub before: Option<&'c Doc<'c>>,
    pub after: Option<&'c Doc<'c>>,
    pub form: StateForm,
}

impl ChildChange<'_> {
    /// How many children more the key has, where that is kept.
    pub fn children(&self) -> i64 {
        match self.form.children {
            true => i64::from(self.after.is_some()) - i64::from(self.before.is_some()),
            false => 0,
        }
    }
}

/// A fold of linked documents.
#[derive(Debug)]
pub struct FoldField<F> {
    target: HostField,
    link: Link,
    fold: F,
    /// What it keeps beside its value.
    form: StateForm,
    owned: Owned,
    /// The field, dotted.
    field: String,
    /// The name of the deltas in pipelines.
    variable: String,
    stages: HostStages,
    /// Those that take a value as it was read.
    set_stages: HostStages,
    /// Those that leave the value as it is, for a host that seeding comes to later.
    state_stages: HostStages,
    /// Of what is counted: the updates for one more and one less.
    one_more: Option<Update>,
    one_less: Option<Update>,
    /// What comes behind the `$match` on keys …
    grouping: Pipeline,
    /// … and what is run instead in this process.
    own_grouping: Option<Pipeline>,
    reads: Reads,
}

impl<F: Fold> FoldField<F> {
    pub fn of(target: HostField, link: Link, fold: F) -> Result<FoldField<F>> {
        let form = StateForm { children: link.create, numbers: fold.keeps_numbers() };
        let state = form.is_some().then(|| owned::state_path(&target.path));
        let (name, variable) = (target.path.dotted(), variable(&target.path));
        let host = HostExpressions {
            stored: field(&name),
            state: state.as_ref().map_or(Value::Null, |path| field(&path.dotted())),
            delta: variable.clone(),
            form,
        };
        let next = |path: String| (path, next_state(form, host.state.clone(), &variable, &target.rule));
        let state_next: Vec<(String, Value<'static>)> = state.iter().map(|path| next(path.dotted())).collect();
        // The field is made first, so that a new state comes at the end of the host.
        let value_and_state = |value: Value<'static>| {
            std::iter::once((name.clone(), value)).chain(state_next.iter().cloned()).collect::<Vec<_>>()
        };
        let next = fold.next(&host);
        let step = |n: i64| match next {
            Next::Counted => increment(document([(&*name, count(n))])).map(Some),
            _ => Ok(None),
        };
        let (one_more, one_less) = (step(1)?, step(-1)?);
        let stages = match next {
            Next::Counted => {
                let sum = call_with("$add", [count_or_zero(&name), Value::string(format!("$${variable}"))]);
                HostStages::new(vec![(name.clone(), sum)], None)
            }
            Next::OfStored(value) => HostStages::new(value_and_state(value), None),
            Next::OfState(value) => {
                let place = call_with("$ifNull", [field(&name), Value::Null]);
                HostStages::new(value_and_state(place), Some((name.clone(), value)))
            }
        };
        let set_stages = HostStages::new(value_and_state(Value::string(format!("$${variable}.value"))), None);
        let reads = Reads { source: watched_source(&link, fold.reads()), host: vec![link.local.path.clone()] };
        let rows: Array<'static> = children::grouped(&link, &fold, form).into_iter().collect();
        let grouping = Pipeline::parse(&rows, &mut Names::new())?;
        let own_grouping = match fold.rows(Path::new(&children::key_field(&link)), form) {
            Some(stage) => {
                let counted: Array<'static> = children::counted(&link).into_iter().collect();
                let mut own = Pipeline::parse(&counted, &mut Names::new())?;
                own.stages.push(stage);
                Some(Pipeline { source: grouping.source.clone(), ..own })
            }
            None => None,
        };
        Ok(FoldField {
            form,
            owned: Owned { field: target.path.clone(), state },
            field: name.clone(),
            stages,
            set_stages,
            state_stages: HostStages::new(state_next, None),
            one_more,
            one_less,
            grouping,
            own_grouping,
            reads,
            variable,
            target,
            link,
            fold,
        })
    }

    /// What a row says; no row means no children.
    pub(crate) fn evaluated(&self, row: Option<&Doc<'_>>) -> Evaluated {
        let Some(row) = row else {
            let state = self.owned.state.as_ref().map(|_| Numbers::default().to_state(self.form));
            return Evaluated { value: self.fold.empty(), state };
        };
        let value = row.get("expected").map_or(Value::Missing, Value::into_owned);
        Evaluated { value, state: evaluated::document_of(row.get("expectedState")) }
    }

    /// What a host has now: its field and its state.
    pub(crate) fn stored(&self, host: &Doc<'_>) -> Evaluated {
        self.owned.stored(host)
    }
}

fn watched_source(link: &Link, folded: Capture) -> Capture {
    let Capture::Paths(folded) = folded else { return Capture::Everything };
    let mut paths = link.foreign.paths().to_vec();
    paths.extend(folded);
    if let Some(filter) = &link.filter {
        match filter.root.reads() {
            Some(read) => paths.extend(read),
            None => return Capture::Everything,
        }
    }
    Capture::Paths(paths)
}
