//! What a shape's changes come to, as plain MQL that a person could run: for `plan`.

use crate::life::install::{self, PlannedIndex};
use crate::life::relocate::change::{RelocationPlan, name};
use crate::life::relocate::{record, stored};
use crate::mql;
use crate::rule::Rule;
use crate::rule::read::Dialect;
use crate::rule::shape::Place;
use document::op::Namespace;
use document::{Doc, Result, Value};

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct PlanCommand {
    pub(crate) kind: &'static str,
    pub(crate) namespace: Namespace,
    pub(crate) command: Doc<'static>,
}

/// What a declared shape asks for.
pub(crate) fn declared(rule: &Rule, change: &RelocationPlan, dialect: Dialect) -> Result<Vec<PlanCommand>> {
    let switchover = &change.switchover;
    let places = record::places(&switchover.places, &rule.host.db)?;
    let mut steps = Vec::new();
    let mut add = |kind, namespace: &Namespace, command| {
        steps.push(PlanCommand { kind, namespace: namespace.clone(), command });
    };
    for (from, to) in &switchover.renames {
        let (from, to) = (Namespace::new(&rule.host.db, from), Namespace::new(&rule.host.db, to));
        add("rename", &from, mql::document([("renameCollection", name(&from)), ("to", name(&to))]));
    }
    let needs = rule.needs();
    for (ns, options) in &needs.collections {
        add("create", ns, install::creation(ns, options));
    }
    for planned in needs.indexes.into_iter().map(PlannedIndex::new) {
        add("index", planned.ns(), planned.command());
    }
    let view_command = |places: &[Place], is_there: bool| {
        let view = stored::view(&rule.host, places, dialect);
        view.map_or_else(Doc::empty, |view| install::view_command(&view, is_there))
    };
    add("view", &rule.host, view_command(&places, change.view_is_there));
    if let [to, others @ ..] = places.as_slice()
        && !others.is_empty()
    {
        for from in others {
            add("move", &from.stored, moving(from, to, dialect));
        }
        let only = std::slice::from_ref(to);
        add("view", &rule.host, view_command(only, true));
        for from in others {
            add("drop", &from.stored, mql::document([("drop", Value::from(&*from.stored.collection))]));
        }
    }
    Ok(steps)
}

/// What removing it comes to: its documents as they are, under their own name.
pub(crate) fn removed(rule: &Rule, from: &Place, dialect: Dialect) -> Vec<PlanCommand> {
    let (logical, stored) = (&rule.host, &from.stored);
    let aside = crate::rule::names::aside(logical);
    let to = Place::plain(aside.clone());
    let dropped = |ns: &Namespace| mql::document([("drop", Value::from(&*ns.collection))]);
    let step = |kind, ns: &Namespace, command| PlanCommand { kind, namespace: ns.clone(), command };
    vec![
        step("move", stored, moving(from, &to, dialect)),
        step("drop", logical, dropped(logical)),
        step("rename", &aside, mql::document([("renameCollection", name(&aside)), ("to", name(logical))])),
        step("drop", stored, dropped(stored)),
    ]
}

/// All documents of one place, written to another in one command: what the moves come to.
fn moving(from: &Place, to: &Place, dialect: Dialect) -> Doc<'static> {
    let mut stages: Vec<Value<'static>> = from.shape.view(dialect).iter().collect();
    stages.extend(to.shape.conversion(&*from.shape, &to.stored));
    let pipeline = Value::Array(stages.into_iter().collect());
    let source = ("aggregate", Value::from(&*from.stored.collection));
    let cursor = ("cursor", Value::Document(Doc::empty()));
    mql::document([source, ("pipeline", pipeline), cursor, ("allowDiskUse", Value::Bool(true))])
}
