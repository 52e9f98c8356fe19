//! The life of an outlier array: kept by writers from the first moment on, arrays that are there are divided in place, on; at the end
//! all items come back.

use crate::execute::access::Access;
use crate::execute::outlier::depends_on_places;
use crate::execute::rights::Rights;
use crate::life::audit::{AuditedRule, Figures, Report};
use crate::life::catalog::Row;
use crate::life::lifecycle::Lifecycle;
use crate::life::outlier::{audit, convert, health, repair, way_back};
use crate::life::plan::{ApplyStep, Work};
use crate::life::reconcile::set_state;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::plan::PlanCommand;
use crate::life::relocate::switchover;
use crate::life::repair::RepairMode;
use crate::life::verbs::{RequiredPrivileges, Resource};
use crate::life::{CatalogRule, Life, install, plan, retire};
use crate::mql::{call, call_with, field, list, object};
use crate::rule::state::State;
use crate::rule::{Outlier, Rule};
use document::backend::{Answer, Session};
use document::filter::{Filter, Node, Test};
use document::op::Find;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

pub(super) struct OfOutlier;

fn of(rule: &Rule) -> Result<&Arc<Outlier>> {
    let none = || Error::new(Code::InternalError, format!("rule {} is about no array", rule.name));
    rule.outlier().ok_or_else(none)
}

impl Lifecycle for OfOutlier {
    fn plan<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        entry: Option<&'a CatalogRule>,
        rule: &'a Rule,
        _: Work,
    ) -> Answer<'a, Work> {
        Box::pin(async move {
            let outlier = of(rule)?;
            let kept = entry.filter(|entry| entry.row.state.is_kept()).and_then(|entry| entry.rule.outlier());
            if let Some(kept) = kept {
                refuse_other_names(rule, kept, outlier)?;
            }
            let longer = Node::field(&format!("{}.{}", outlier.field, outlier.keep), Test::Exists);
            let longer = Find { limit: Some(1), ..Find::matching(outlier.host.clone(), Filter::from_node(longer)) };
            let rewrites = kept.is_some() || !at.find(longer).await?.is_empty();
            Ok(Work::Convert { steps: steps(outlier), rewrites })
        })
    }

    fn steps(&self, _: &Access<'_>, rule: &Rule, work: &Work) -> Result<Option<Vec<PlanCommand>>> {
        Ok(match work {
            Work::Convert { steps, .. } => Some(steps.clone()),
            Work::Remove => Some(vec![returned(of(rule)?)]),
            _ => None,
        })
    }

    fn begin<'a>(
        &'a self,
        at: &'a mut Access<'_>,
        _: Option<&'a CatalogRule>,
        step: &'a ApplyStep,
        row: &'a mut Row,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            row.total = plan::documents(at, &step.rule.host).await?;
            // Writers fill it from now on: its index says which place is the next.
            install::install(at, &step.rule, &step.rule.needs()).await
        })
    }

    fn take_over(&self, now: &Row, row: &mut Row) {
        row.state = now.state.clone();
        (row.done, row.total) = (now.done, now.total);
    }

    fn advance<'a>(&'a self, life: &'a Life, entry: &'a CatalogRule) -> Answer<'a, ()> {
        Box::pin(async move {
            let outlier = of(&entry.rule)?;
            match &entry.row.state {
                State::Maintaining | State::Gathering { .. } => {
                    // No process may still write without knowing the rule.
                    life.settled_everywhere(&entry.db).await?;
                    let (mut session, context) = (Session::default(), life.context());
                    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
                    install::install(&mut at, &entry.rule, &entry.rule.needs()).await?;
                    set_state(life, entry, State::Seeding { position: None }).await
                }
                State::Seeding { .. } => {
                    convert::convert(life, entry, outlier).await?;
                    seed_again(life, outlier).await?;
                    set_state(life, entry, State::On).await?;
                    tracing::info!(rule = &*entry.rule.name, "on");
                    Ok(())
                }
                State::On | State::Restoring => Ok(()),
                State::Retiring => way_back::bring_back(life, entry, outlier).await,
            }
        })
    }

    fn audit<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move { audit::audit(life, asked, of(&asked.rule)?, figures, report).await })
    }

    fn repair<'a>(
        &'a self,
        life: &'a Life,
        asked: &'a AuditedRule,
        _: RepairMode,
        figures: &'a mut Figures,
        report: &'a mut Report,
    ) -> Answer<'a, ()> {
        Box::pin(async move { repair::repair(life, asked, of(&asked.rule)?, figures, report).await })
    }

    fn refuse_once(&self, rule: &Rule) -> Option<Error> {
        let message = format!("`{}` divides arrays, which nobody would keep so afterwards", rule.name);
        Some(Error::new(Code::OperationFailed, message).with_hint("--rule RULE names a rule of a field"))
    }

    /// What was there before is there again: the arrays are whole, and with `--restore` the count goes too.
    fn drop<'a>(
        &'a self,
        life: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
        leaving: Leaving,
    ) -> Answer<'a, ()> {
        let with_data = leaving.with_data || leaving.restore;
        Box::pin(async move {
            refuse_if_read(life, entry)?;
            retire::begin(life, at, entry, Leaving { with_data, restore: false, ..leaving }).await
        })
    }

    fn restore<'a>(&'a self, at: &'a mut Access<'_>, entry: &'a CatalogRule, row: &'a mut Row) -> Answer<'a, ()> {
        Box::pin(async move {
            install::install(at, &entry.rule, &entry.rule.needs()).await?;
            row.total = plan::documents(at, &entry.rule.host).await?;
            Ok(())
        })
    }

    fn status<'a>(
        &'a self,
        _: &'a Life,
        at: &'a mut Access<'_>,
        entry: &'a CatalogRule,
    ) -> Answer<'a, Option<Doc<'static>>> {
        Box::pin(async move { Ok(Some(health::health(at, of(&entry.rule)?).await?)) })
    }

    fn need_to_change(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need_for_rule(rights, Resource::MovedCollections, rule)
    }

    fn need_to_repair(&self, needed: RequiredPrivileges, rights: &Rights, rule: &Rule) -> Result<()> {
        needed.need(rights, Resource::Host, &rule.host)?;
        needed.need(rights, Resource::Buckets, &of(rule)?.overflow)
    }
}

/// The fields in force that are kept from the items.
fn readers(life: &Life, outlier: &Outlier) -> Vec<CatalogRule> {
    let items = outlier.items();
    let reads = |entry: &CatalogRule| entry.rule.link().is_some_and(|link| link.source == items);
    life.entries().into_iter().filter(|entry| reads(entry) && entry.row.state.is_kept()).collect()
}

/// Where another limit has brought items back they have other places in the array: fields that depend on that are seeded again.
async fn seed_again(life: &Life, outlier: &Outlier) -> Result<()> {
    if !depends_on_places(&life.patterned.rules(), &outlier.items()) {
        return Ok(());
    }
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    for reader in readers(life, outlier).into_iter().filter(|reader| reader.row.state != State::Maintaining) {
        let mut row = reader.row.clone();
        (row.state, row.done) = (State::Maintaining, 0);
        switchover::save(life, &mut at, CatalogRule { row, reached: None, ..reader }).await?;
    }
    Ok(())
}

/// The items are no collection any more when the rule is gone.
fn refuse_if_read(life: &Life, entry: &CatalogRule) -> Result<()> {
    let Some(reader) = readers(life, of(&entry.rule)?).into_iter().next() else { return Ok(()) };
    let (rule, reader, described) = (&entry.rule.name, &reader.rule.name, reader.rule.described());
    let message = format!("rule {rule} is not dropped: rule {reader} ({described}) reads the items of its array");
    Err(Error::new(Code::OperationFailed, message).with_hint(format!("drop {reader} first")))
}

/// Items that are in one overflow are not moved to another.
fn refuse_other_names(rule: &Rule, kept: &Outlier, declared: &Outlier) -> Result<()> {
    let names = |outlier: &Outlier| {
        let Outlier { overflow, owner, item, flag, count, .. } = outlier.clone();
        (overflow, owner, item, flag, count)
    };
    if names(kept) == names(declared) {
        return Ok(());
    }
    let message = format!("rule {} cannot change the names under which items are stored", rule.name);
    let hint = format!("`pleach drop {}` brings the items back; then apply the new declaration", rule.name);
    Err(Error::new(Code::OperationFailed, message).with_hint(hint))
}

/// What a person would run: items past the limit are copied to the overflow, then cut.
fn steps(outlier: &Outlier) -> Vec<PlanCommand> {
    let keep = Value::Int64(i64::try_from(outlier.keep).unwrap_or(i64::MAX));
    let array = || call_with("$ifNull", [field(&outlier.field), list([])]);
    let host = |kind, command| PlanCommand { kind, namespace: outlier.host.clone(), command };
    let past = object([(&*format!("{}.{}", outlier.field, outlier.keep), call("$exists", Value::Bool(true)))]);
    let unwind = object([("path", field(&outlier.field)), ("includeArrayIndex", Value::from("index"))]);
    let row = object([
        ("_id", Value::Int32(0)),
        (&*outlier.owner, field("_id")),
        (&*outlier.item, field(&outlier.field)),
        ("index", Value::Int32(1)),
    ]);
    let stages = list([
        call("$match", past.borrow()),
        call("$unwind", unwind),
        call("$match", object([("index", call("$gte", keep.borrow()))])),
        call("$project", row),
        call("$merge", object([("into", Value::from(&*outlier.overflow.collection))])),
    ]);
    let copy = plan::piped(&outlier.host, stages);
    let count = object([(&*outlier.count, call("$size", array()))]);
    let flag = object([(&*outlier.flag, Value::Bool(true)), (&*outlier.field, call_with("$slice", [array(), keep]))]);
    let set = |filter: Value<'static>, stage: Value<'static>| {
        object([("q", filter), ("u", list([call("$set", stage)])), ("multi", Value::Bool(true))])
    };
    let updates = list([set(object([]), count), set(past, flag)]);
    let cut = plan::updated(&outlier.host, updates);
    vec![host("copy", copy), host("convert", cut)]
}

/// What a person would run to have the arrays whole again.
fn returned(outlier: &Outlier) -> PlanCommand {
    let sorted = list([call("$sort", object([("index", Value::Int32(1))]))]);
    let lookup = object([
        ("from", Value::from(&*outlier.overflow.collection)),
        ("localField", Value::from("_id")),
        ("foreignField", Value::from(&*outlier.owner)),
        ("pipeline", sorted),
        ("as", Value::from("_overflow")),
    ]);
    let items = field(&format!("_overflow.{}", outlier.item));
    let whole = object([(&*outlier.field, call_with("$concatArrays", [field(&outlier.field), items]))]);
    let stages = list([
        call("$match", object([(&*outlier.flag, Value::Bool(true))])),
        call("$lookup", lookup),
        call("$set", whole),
        call("$unset", list([Value::from("_overflow"), Value::from(&*outlier.flag)])),
        call(
            "$merge",
            object([("into", Value::from(&*outlier.host.collection)), ("whenMatched", Value::from("replace"))]),
        ),
    ]);
    let command = plan::piped(&outlier.host, stages);
    PlanCommand { kind: "remove", namespace: outlier.host.clone(), command }
}
