//! What `apply` would do: the difference between the catalog and a declaration, as steps that a person could run.

use crate::declare::{RuleChange, RuleDifference, diff};
use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::expiry::Expiry;
use crate::life::install::PlannedIndex;
use crate::life::lift::item::Lift;
use crate::life::preview::Preview;
use crate::life::relocate::moved::Moved;
use crate::life::relocate::plan::PlanCommand;
use crate::life::verbs::{APPLY, RequiredPrivileges, Resource};
use crate::life::{CatalogRule, Life, expiry, install, lifecycle, relocate, versions};
use crate::mql::{call, call_with, document, field, list, object};
use crate::rule::Rule;
use crate::rule::names;
use document::op::{AdminOp, Namespace};
use document::{Array, ArrayWriter, Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// What happens to one rule.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Index(PlannedIndex),
    /// A real MongoDB no longer expires documents that the rule reads: Pleach does (SEMANTICS R7).
    Expiry(Expiry),
    /// Every host's field is made right.
    Seed,
    /// The same, when the items of an array have become documents.
    Lift,
    /// Every host's field is made right, since the rule was changed.
    Rebuild,
    /// The collection is stored in this form from now on.
    Shape(Box<relocate::change::RelocationPlan>),
    /// The collection refuses documents that are not as declared.
    Constrain(Vec<PlanCommand>),
    /// Documents are brought into the declared form where they are. `rewrites`: some of them are others afterwards.
    Convert {
        steps: Vec<PlanCommand>,
        rewrites: bool,
    },
    /// Only the upkeep changes; no value does.
    Keep,
    Remove,
}

#[derive(Clone, Debug)]
pub(crate) struct ApplyStep {
    pub(crate) rule: Arc<Rule>,
    pub(crate) work: Work,
}

/// What a declaration asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplyPlan {
    pub(crate) steps: Vec<ApplyStep>,
}

impl ApplyPlan {
    /// The steps from what is kept in the declaration's database to what it declares, in the order of their dependencies.
    pub(crate) async fn find(
        at: &mut Access<'_>,
        entries: &[CatalogRule],
        db: &str,
        rules: &[Rule],
    ) -> Result<ApplyPlan> {
        // A rule on its way out is as good as gone, and what `create` made is no declaration's.
        let kept = entries.iter().filter(|entry| *entry.db == *db && entry.row.state.is_kept() && entry.is_declared());
        let old: Vec<Rule> = kept.map(|entry| (*entry.rule).clone()).collect();
        let differences = diff(&old, rules);
        let mut steps: Vec<ApplyStep> = Vec::new();
        for rule in rules {
            let work = differences.iter().find_map(|difference| match difference {
                RuleDifference::Added(new) if std::ptr::eq(*new, rule) => Some(Work::Seed),
                RuleDifference::Changed { new, change: RuleChange::Rebuild, .. } if std::ptr::eq(*new, rule) => {
                    Some(Work::Rebuild)
                }
                RuleDifference::Changed { new, change: RuleChange::Policy, .. } if std::ptr::eq(*new, rule) => {
                    Some(Work::Keep)
                }
                _ => None,
            });
            let declared = Arc::new(rule.clone());
            let work = match work {
                Some(work @ (Work::Seed | Work::Rebuild)) => {
                    let entry = entries.iter().find(|entry| *entry.db == *db && entry.rule.name == rule.name);
                    Some(lifecycle::of(rule).plan(at, entry, rule, work).await?)
                }
                other => other,
            };
            if let Some(work @ Work::Shape(_)) = work {
                // The move makes what it needs.
                steps.push(ApplyStep { rule: declared, work });
                continue;
            }
            let planned = steps.iter().filter_map(|step| match &step.work {
                Work::Index(needed) => Some(needed),
                _ => None,
            });
            let planned: Vec<&PlannedIndex> = planned.collect();
            let missing = install::missing_beside(at, rule, rules, &planned).await?;
            steps.extend(
                missing.into_iter().map(|needed| ApplyStep { rule: declared.clone(), work: Work::Index(needed) }),
            );
            for ns in rule.needs().expires {
                for expiry in expiry::live(at, &ns).await? {
                    let twice = |step: &ApplyStep| matches!(&step.work, Work::Expiry(other) if *other == expiry);
                    if !steps.iter().any(twice) {
                        steps.push(ApplyStep { rule: declared.clone(), work: Work::Expiry(expiry) });
                    }
                }
            }
            if let Some(work) = work {
                steps.push(ApplyStep { rule: declared, work });
            }
        }
        let removed = differences.iter().filter_map(|difference| match difference {
            RuleDifference::Removed(old) => Some(Arc::new((*old).clone())),
            _ => None,
        });
        let mut removed: Vec<Arc<Rule>> = removed.collect();
        // An array goes after the fields that are kept from its items.
        removed.sort_by_key(|rule| rule.outlier().is_some());
        steps.extend(removed.into_iter().map(|rule| ApplyStep { rule, work: Work::Remove }));
        let mut plan = ApplyPlan { steps };
        versions::readers::add(&mut plan, entries, rules);
        Ok(plan)
    }

    /// The client must be able to read what the steps are about: rules that the declaration lacks are shown too.
    pub(crate) fn need_to_see(&self, needed: RequiredPrivileges, rights: &Rights) -> Result<()> {
        let mut rules = self.steps.iter().map(|step| &step.rule);
        rules.try_for_each(|rule| needed.need_for_rule(rights, Resource::RuleCollections, rule))
    }

    /// What the client would need to do the same by commands of its own.
    pub(crate) fn need_to_make(&self, rights: &Rights, db: &str) -> Result<()> {
        self.need_to_see(APPLY, rights)?;
        APPLY.need(rights, Resource::Catalog, &names::catalog(db))?;
        for step in &self.steps {
            match &step.work {
                Work::Index(needed) => APPLY.need(rights, Resource::IndexedCollection, needed.ns())?,
                Work::Expiry(expiry) => APPLY.need(rights, Resource::ExpiringCollection, &expiry.ns)?,
                Work::Keep => {}
                Work::Shape(_) | Work::Constrain(_) | Work::Convert { .. } | Work::Seed | Work::Remove => {
                    lifecycle::of(&step.rule).need_to_change(APPLY, rights, &step.rule)?;
                }
                Work::Lift | Work::Rebuild => {
                    lifecycle::of(&step.rule).need_to_change(APPLY, rights, &step.rule)?;
                    lifecycle::of(&step.rule).need_to_lift(APPLY, rights, &step.rule)?;
                }
            }
        }
        Ok(())
    }

    /// The indexes that are made, each with the rule that needs it.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = (&Rule, &PlannedIndex)> {
        self.steps.iter().filter_map(|step| match &step.work {
            Work::Index(planned) => Some((&*step.rule, planned)),
            _ => None,
        })
    }

    pub(crate) fn removed(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.steps.iter().filter(|step| matches!(step.work, Work::Remove)).map(|step| &step.rule)
    }

    /// Whether both do the same to the same rules. Indexes are looked at where they are made.
    pub(crate) fn is_same(&self, other: &ApplyPlan) -> bool {
        let shown = |changes: &ApplyPlan| -> Vec<(Arc<str>, &'static str)> {
            let steps = changes.steps.iter().filter(|step| !matches!(step.work, Work::Index(_) | Work::Expiry(_)));
            steps.map(|step| (step.rule.name.clone(), step.kind())).collect()
        };
        shown(self) == shown(other)
    }

    /// Without the steps of some rules.
    pub(crate) fn without(mut self, names: &[Arc<str>]) -> ApplyPlan {
        self.steps.retain(|step| !names.contains(&step.rule.name));
        self
    }

    /// Only what adds: indexes and new rules.
    pub(crate) fn additions(mut self) -> ApplyPlan {
        let seeded =
            |rule: &Arc<Rule>, steps: &[ApplyStep]| steps.iter().any(|step| step.rule.name == rule.name && step.adds());
        let steps = std::mem::take(&mut self.steps);
        self.steps = steps.iter().filter(|step| seeded(&step.rule, &steps)).cloned().collect();
        self
    }

    /// `{ rules, steps: [ { rule, kind, namespace, command } ], fences, deferred, cost }`.
    pub(crate) async fn show(&self, at: &mut Access<'_>, preview: &Preview) -> Result<Doc<'static>> {
        let (mut steps, mut read, mut written) = (ArrayWriter::new(), 0, 0);
        for step in &self.steps {
            let moved = lifecycle::of(&step.rule).moves(at, &step.rule, &step.work).await?;
            for PlanCommand { kind, namespace, command } in step.commands(at)? {
                let mut doc = DocWriter::new();
                doc.append("rule", &Value::from(&*step.rule.name)).append("kind", &Value::from(kind));
                doc.append("namespace", &Value::string(namespace.to_string()));
                doc.append("command", &Value::Document(command));
                if let Some(moved) = moved.iter().find(|moved| kind == "move" && moved.from == namespace) {
                    moved.write(&mut doc);
                }
                steps.push(&Value::Document(doc.finish()));
            }
            read += moved.iter().map(Moved::read).sum::<i64>();
            written += moved.iter().map(|moved| moved.readings).sum::<i64>();
            if !moved.is_empty() {
                continue;
            }
            let documents = documents(at, step.namespace()).await?;
            match &step.work {
                Work::Shape(_) | Work::Constrain(_) => {}
                Work::Index(_) => read += documents,
                Work::Convert { .. } => {
                    read += documents;
                    written += documents;
                }
                Work::Seed | Work::Lift | Work::Rebuild => {
                    read += documents;
                    written += documents;
                    if let Some(link) = step.rule.link() {
                        read += self::documents(at, &link.source).await?;
                    }
                }
                Work::Remove => read += documents,
                Work::Keep | Work::Expiry(_) => {}
            }
        }
        let mut plan = DocWriter::new();
        plan.append("rules", &preview.show()).append("steps", &Value::Array(steps.finish()));
        plan.append("fences", &Value::Array(Array::empty())).append("deferred", &Value::Array(Array::empty()));
        plan.start_document("cost");
        plan.append("read", &Value::Int64(read)).append("written", &Value::Int64(written)).end();
        Ok(plan.finish())
    }
}

impl ApplyStep {
    /// Whether it changes nothing that is there.
    fn adds(&self) -> bool {
        match &self.work {
            Work::Seed | Work::Constrain(_) => true,
            Work::Shape(change) => !change.rewrites(),
            Work::Convert { rewrites, .. } => !rewrites,
            Work::Index(_) | Work::Expiry(_) | Work::Lift | Work::Rebuild | Work::Keep | Work::Remove => false,
        }
    }

    /// What a person should know about it.
    pub(crate) fn note(&self) -> Option<String> {
        match &self.work {
            Work::Index(needed) => needed.note(),
            _ => None,
        }
    }

    /// As steps that a person could run.
    fn commands(&self, at: &Access<'_>) -> Result<Vec<PlanCommand>> {
        if let Some(steps) = lifecycle::of(&self.rule).steps(at, &self.rule, &self.work)? {
            return Ok(steps);
        }
        let (kind, namespace) = (self.kind(), self.namespace().clone());
        Ok(vec![PlanCommand { kind, namespace, command: self.command()? }])
    }

    pub(crate) fn kind(&self) -> &'static str {
        match &self.work {
            Work::Index(_) => "index",
            Work::Expiry(_) => "expiry",
            Work::Seed => "seed",
            Work::Lift => "lift",
            Work::Rebuild => "rebuild",
            Work::Shape(_) => "move",
            Work::Constrain(_) => "constrain",
            Work::Convert { .. } => "convert",
            Work::Keep => "upkeep",
            Work::Remove => "remove",
        }
    }

    fn namespace(&self) -> &Namespace {
        match &self.work {
            Work::Index(needed) => needed.ns(),
            Work::Expiry(expiry) => &expiry.ns,
            _ => &self.rule.host,
        }
    }

    /// As plain MQL.
    fn command(&self) -> Result<Doc<'static>> {
        match &self.work {
            Work::Index(needed) => Ok(needed.command()),
            Work::Expiry(expiry) => Ok(expiry.putting_off()),
            Work::Seed | Work::Lift | Work::Rebuild => Ok(seeding(&self.rule)),
            Work::Keep | Work::Shape(_) | Work::Constrain(_) | Work::Convert { .. } => Ok(Doc::empty()),
            Work::Remove => Ok(forgetting(&self.rule, false)),
        }
    }
}

/// The definition of the field, merged into the hosts: what seeding comes to, in one command.
fn seeding(rule: &Rule) -> Doc<'static> {
    let mut command = DocWriter::new();
    let collection = Value::from(&*rule.host.collection);
    let Some(field) = rule.kept_field() else { return Doc::empty() };
    match field.own_stage() {
        Some(own) => {
            command.append("update", &collection);
            command.start_array("updates").start_document_at(0).start_document("q").end();
            command.start_array("u").append_at(0, &own.stage).end();
            command.append("multi", &Value::Bool(true)).end().end();
        }
        None => {
            command.append("aggregate", &collection);
            command.append("pipeline", &Value::Array(field.expected(true)));
            command.start_document("cursor").end();
        }
    }
    command.finish()
}

/// A lift, as a person would do it: moves the items, takes the array away and makes the window.
pub(super) fn lifting(rule: &Rule) -> Vec<PlanCommand> {
    let Some(lift) = Lift::of(rule) else { return Vec::new() };
    let command = |kind, command| PlanCommand { kind, namespace: rule.host.clone(), command };
    vec![command("lift", moving(&lift)), command("lift", taking(&lift)), command("seed", seeding(rule))]
}

/// `{ aggregate, pipeline: [ $unwind, $replaceWith, $merge ] }`.
fn moving(lift: &Lift<'_>) -> Doc<'static> {
    let array = lift.array.dotted();
    let key = field(&lift.link.local.path.dotted());
    let nested = lift.by.parts.iter().rev().fold(key, |inner, part| object([(&*part.name, inner)]));
    let child = call_with("$mergeObjects", [field(&array), nested]);
    let into = object([("into", Value::from(&*lift.source().collection)), ("whenMatched", Value::from("fail"))]);
    let stages = [call("$unwind", field(&array)), call("$replaceWith", child), call("$merge", into)];
    let mut command = DocWriter::new();
    command.append("aggregate", &Value::from(&*lift.host().collection)).append("pipeline", &list(stages));
    command.start_document("cursor").end();
    command.finish()
}

/// `{ update, updates: [ { $unset } ] }`.
fn taking(lift: &Lift<'_>) -> Doc<'static> {
    let array = lift.array.dotted();
    let statement = object([
        ("q", object([(&*array, call("$exists", Value::Bool(true)))])),
        ("u", call("$unset", object([(&*array, Value::from(""))]))),
        ("multi", Value::Bool(true)),
    ]);
    document([("update", Value::from(&*lift.host().collection)), ("updates", list([statement]))])
}

/// Takes the field (if asked) and its state away.
pub(crate) fn forgetting(rule: &Rule, with_data: bool) -> Doc<'static> {
    let mut command = DocWriter::new();
    command.append("update", &Value::from(&*rule.host.collection));
    command.start_array("updates").start_document_at(0).start_document("q").end();
    command.start_document("u").start_document("$unset");
    if with_data {
        command.append(&rule.field.dotted(), &Value::from(""));
    }
    command.append(&format!("_pleach.{}", rule.field.dotted()), &Value::from(""));
    command.end().end().append("multi", &Value::Bool(true));
    command.finish()
}

/// Stages over a collection, as a command.
pub(crate) fn piped(ns: &Namespace, stages: Value<'_>) -> Doc<'static> {
    let mut command = DocWriter::new();
    command.append("aggregate", &Value::from(&*ns.collection)).append("pipeline", &stages);
    command.start_document("cursor").end();
    command.finish()
}

/// Update statements on a collection, as a command.
pub(crate) fn updated(ns: &Namespace, statements: Value<'_>) -> Doc<'static> {
    let mut command = DocWriter::new();
    command.append("update", &Value::from(&*ns.collection)).append("updates", &statements);
    command.finish()
}

/// About how many documents a collection has.
pub(crate) async fn documents(at: &mut Access<'_>, ns: &Namespace) -> Result<i64> {
    let op = AdminOp::CollStats { ns: ns.clone(), scale: 1 };
    let stats = match at.backend.admin(at.session, at.context, op).await {
        Ok(stats) => stats,
        // Figures are for people; a user who may not have them does without.
        Err(_) => return Ok(0),
    };
    Ok(stats.first().map_or(0, |stats| crate::life::catalog::long(stats.get("count"))))
}

impl Life {
    /// What `apply` would do.
    pub(crate) async fn plan(&self, at: &mut Access<'_>, db: &str, rules: &[Rule]) -> Result<ApplyPlan> {
        ApplyPlan::find(at, &self.applied(Some(db)).await?, db, rules).await
    }
}
