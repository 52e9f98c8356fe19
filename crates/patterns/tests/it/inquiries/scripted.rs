//! A fold whose children say themselves what they mean for their host: `does` names the effect, `gives` what comes of it. So plans
//! can be looked at without the meaning of any real fold.

use crate::harness::*;
use document::backend::Mode;
use document::op::Capture;
use document::value::Path;
use document::{Doc, Result, Value};
use pleach_patterns::fields::FoldField;
use pleach_patterns::fields::fold::{ChildChange, Fold, Grouping, HostExpressions, Next};
use pleach_patterns::mql::{call, field};
use pleach_patterns::rule::field::Samples;
use pleach_patterns::rule::numbers::{Numbers, StateForm};
use pleach_patterns::rule::{Delta, Effect, Field, Inquiry, Item, Items, Kind, Question, State};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The effects that a child may have: `update`, `look`, `ask` (exclusively), `share` (an inquiry that shares its fence).
#[derive(Debug)]
pub(super) struct Scripted;

/// The products of the shop with a scripted `note` by `productId`, in a state, and more rules.
pub(super) fn world(more: &str, state: State) -> World {
    let world = World::new("{}");
    put_in_force(&world, "_id", more, state);
    world
}

/// Products that are made by their reviews.
pub(super) fn rolled_up() -> World {
    let world = World::new("{}");
    rolled_up_in(&world, State::On);
    world
}

pub(super) fn rolled_up_in(world: &World, state: State) {
    declare(world, "{ count: reviews, by: productId, create: true }", "_id", "", state);
}

/// The same for products that are found by another path.
pub(super) fn put_in_force(world: &World, local: &str, more: &str, state: State) {
    declare(world, "{ count: reviews, by: productId }", local, more, state);
}

fn declare(world: &World, rule: &str, local: &str, more: &str, state: State) {
    let collections = format!("\n  products:\n    computed:\n      note: {rule}\n{more}");
    let rules = testing::declared("shop", &collections).rules.into_iter().map(|mut rule| {
        if &*rule.name != "products.note" {
            return (Arc::new(rule), State::On);
        }
        let counted = rule.kept_field().unwrap().clone();
        let (target, mut link) = (counted.target().clone(), counted.link().unwrap().clone());
        link.local.path = Path::new(local);
        rule.kind = Kind::Field(Arc::new(FoldField::of(target, link, Scripted).unwrap()) as Arc<dyn Field>);
        (Arc::new(rule), state.clone())
    });
    world.layer.set_rules(rules.collect()).unwrap();
}

fn told(delta: &Delta) -> String {
    match delta {
        Delta::Items { came, .. } => came.iter().filter_map(|item| item.value.as_str()).collect::<Vec<_>>().join("+"),
        other => format!("{other:?}"),
    }
}

impl Fold for Scripted {
    fn describe(&self, source: &str) -> String {
        format!("script of {source}")
    }

    fn reads(&self) -> Capture {
        Capture::Everything
    }

    fn empty(&self) -> Value<'static> {
        Value::Int32(0)
    }

    fn grouping(&self, form: StateForm) -> Grouping {
        Grouping::of(vec![("n", call("$sum", Value::Int32(1)))], field("n"), form)
    }

    fn react(&self, change: &ChildChange<'_>) -> SmallVec<[Effect; 2]> {
        let child = change.after.or(change.before).unwrap();
        let id = change.id.clone().into_owned();
        let value = child.get("gives").unwrap_or(Value::Null).into_owned();
        let came = [Item { id, order: SmallVec::new(), value }].into_iter().collect();
        let delta = Delta::Items { came, left: Items::new(), children: change.children() };
        let about = child.get("about").unwrap_or(Value::Missing).into_owned();
        smallvec![match child.get("does").as_ref().and_then(Value::as_str) {
            Some("look") => Effect::Look(delta),
            Some("ask") => Effect::Ask(Inquiry { about, delta, mode: Mode::Exclusive }),
            Some("share") => Effect::Ask(Inquiry { about, delta, mode: Mode::Shared }),
            _ => Effect::Update(delta),
        }]
    }

    fn is_blind(&self) -> bool {
        false
    }

    fn decide(&self, _stored: &Value<'_>, delta: Delta) -> Effect {
        match &*told(&delta) {
            "nothing" => Effect::Nothing,
            "ask" => Effect::Ask(Inquiry { about: Value::Missing, delta, mode: Mode::Exclusive }),
            _ => Effect::Update(delta),
        }
    }

    fn combine(&self, first: Delta, second: &Delta) -> Delta {
        match (first, second) {
            (Delta::Items { mut came, left, children }, Delta::Items { came: more, children: added, .. }) => {
                more.iter().cloned().for_each(|item| came.push(item));
                Delta::Items { came, left, children: children + added }
            }
            (first, _) => first,
        }
    }

    fn next(&self, host: &HostExpressions) -> Next {
        Next::OfStored(Value::string(format!("$${}", host.delta)))
    }

    fn constant(&self, delta: &Delta, _: StateForm) -> Value<'static> {
        Value::string(told(delta))
    }

    fn apply(&self, delta: &Delta, _: Value<'_>, _: &Numbers) -> Result<Value<'static>> {
        Ok(Value::string(told(delta)))
    }

    /// `none` leaves the host alone, `=x` gives `x`, anything else also how many children were read.
    fn answer(&self, question: &Question, row: Option<&Doc<'_>>) -> Option<Delta> {
        let said = told(&question.delta);
        let value = match said.strip_prefix('=') {
            _ if said == "none" => return None,
            Some(exactly) => exactly.to_owned(),
            None => match row.and_then(|row| row.get("expected")).and_then(|n| n.as_i64_exact()) {
                Some(n) => format!("{said}:{n}"),
                None => format!("{said}:-"),
            },
        };
        Some(Delta::Set { value: Value::string(value), appeared: false, children: question.delta.children() })
    }

    fn samples(&self, _: &[Doc<'static>]) -> Samples {
        Samples::default()
    }
}
