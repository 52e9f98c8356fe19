//! `audit`: is every derived value what it should be? Streams stored against expected and gives only the differences.
//!
//! Hosts are read part by part, each part with what its values come from in one snapshot, so that clients may go on writing. What
//! is still in the outbox is no drift, and what seeding has not reached is not looked at.

use super::evaluate::{Difference, Evaluator};
use super::records::{At, find};
use super::states::State;
use super::transient::{Began, is_transient};
use super::{Life, inside, names, shape, walk};
use crate::link::key;
use crate::rule::Rule;
use crate::shape::bucket::Flaw;
use document::filter::Filter;
use document::op::Find;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};
use hashbrown::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many hosts are compared at a time.
const PART: u64 = 4_000;

/// What is looked at.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) rule: Arc<Rule>,
    /// Where the rule is in its life; nothing if nobody keeps it.
    pub(crate) state: Option<State>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// At most as many as were asked for.
    pub(crate) examples: Vec<Drift>,
    pub(crate) rules: Vec<Figures>,
    /// What could not be repaired, and why.
    pub(crate) failures: Vec<(Drift, String)>,
    most: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Drift {
    pub(crate) rule: Arc<Rule>,
    pub(crate) collection: Arc<str>,
    pub(crate) id: Value<'static>,
    pub(crate) field: String,
    pub(crate) stored: Value<'static>,
    pub(crate) expected: Value<'static>,
    /// Of a bucket: all that is wrong with it.
    pub(crate) flaws: Vec<Flaw>,
}

#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) rule: Arc<Rule>,
    pub(crate) checked: u64,
    pub(crate) drifted: u64,
    pub(crate) time: Duration,
}

impl Report {
    pub(crate) fn new(most: usize) -> Report {
        Report { most, ..Report::default() }
    }

    pub(crate) fn add(&mut self, figures: &mut Figures, difference: Difference) {
        let drift = Drift::of(&figures.rule, difference);
        self.note(figures, drift);
    }

    pub(crate) fn note(&mut self, figures: &mut Figures, drift: Drift) {
        figures.drifted += 1;
        if self.examples.len() < self.most {
            self.examples.push(drift);
        }
    }

    pub(crate) fn drifted(&self) -> u64 {
        self.rules.iter().map(|figures| figures.drifted).sum()
    }

    /// `{ checked, drift, drifted, rules }` (SEMANTICS F); rules and drift also say their database, a bucket's drift all its flaws.
    pub(crate) fn show(&self) -> Doc<'static> {
        let mut report = DocWriter::new();
        report.append("checked", &long(self.rules.iter().map(|figures| figures.checked).sum()));
        let mut drift = ArrayWriter::new();
        self.examples.iter().for_each(|example| {
            drift.push(&Value::Document(example.show(self.over_several_databases(), None)));
        });
        report.append("drift", &Value::Array(drift.finish())).append("drifted", &long(self.drifted()));
        let mut rules = ArrayWriter::new();
        for figures in &self.rules {
            let mut rule = DocWriter::new();
            rule.append("rule", &Value::from(&*figures.rule.name)).append("checked", &long(figures.checked));
            rule.append("drifted", &long(figures.drifted));
            rule.append("seconds", &Value::Double((figures.time.as_secs_f64() * 1e3).round() / 1e3));
            rule.append("database", &Value::from(&*figures.rule.host.db));
            rules.push(&Value::Document(rule.finish()));
        }
        report.append("rules", &Value::Array(rules.finish()));
        if !self.failures.is_empty() {
            let mut failed = ArrayWriter::new();
            for (drift, why) in &self.failures {
                failed.push(&Value::Document(drift.show(self.over_several_databases(), Some(why))));
            }
            report.append("failed", &Value::Array(failed.finish()));
        }
        report.finish()
    }

    /// Then a rule's name alone does not say whose document an entry is.
    fn over_several_databases(&self) -> bool {
        let mut databases = self.rules.iter().map(|figures| &figures.rule.host.db);
        let first = databases.next();
        databases.any(|db| Some(db) != first)
    }
}

impl Drift {
    /// A host whose field is not what it should be.
    pub(crate) fn of(rule: &Arc<Rule>, difference: Difference) -> Drift {
        let Difference { id, stored, expected, .. } = difference;
        let (collection, field) = (rule.host.collection.clone(), rule.field.dotted());
        Drift { rule: rule.clone(), collection, id, field, stored, expected, flaws: Vec::new() }
    }

    fn show(&self, names_database: bool, problem: Option<&str>) -> Doc<'static> {
        let shown = |value: &Value<'static>| if value.is_missing() { Value::Null } else { value.clone() };
        let mut drift = DocWriter::new();
        drift.append("rule", &Value::from(&*self.rule.name));
        drift.append("collection", &Value::from(&*self.collection));
        drift.append("_id", &self.id).append("field", &Value::from(&*self.field));
        drift.append("stored", &shown(&self.stored)).append("expected", &shown(&self.expected));
        if names_database {
            drift.append("database", &Value::from(&*self.rule.host.db));
        }
        if !self.flaws.is_empty() {
            let mut flaws = ArrayWriter::new();
            for flaw in &self.flaws {
                let mut row = DocWriter::new();
                row.append("field", &Value::from(&*flaw.field));
                row.append("stored", &shown(&flaw.stored)).append("expected", &shown(&flaw.expected));
                row.append("repairable", &Value::Bool(flaw.mendable));
                flaws.push(&Value::Document(row.finish()));
            }
            drift.append("flaws", &Value::Array(flaws.finish()));
        }
        if let Some(problem) = problem {
            drift.append("problem", &Value::from(problem));
        }
        drift.finish()
    }
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

impl Life {
    /// Compares every host of the rules.
    pub(crate) async fn audit(&self, asked: &[Asked], examples: usize) -> Result<Report> {
        let mut report = Report::new(examples);
        for asked in asked {
            if shape::bucket_of(&asked.rule).is_some() {
                shape::audit::audit(self, asked, &mut report).await?;
                continue;
            }
            if self.backend.abilities().forwards {
                let figures = inside::audit(self, asked, &mut report).await?;
                report.rules.push(figures);
                continue;
            }
            let began = Instant::now();
            let mut figures = Figures::new(&asked.rule);
            let mut hosts = Hosts::of(asked)?;
            while let Some(part) = hosts.next(self).await? {
                figures.checked += part.checked;
                part.differences.into_iter().for_each(|difference| report.add(&mut figures, difference));
            }
            figures.time = began.elapsed();
            report.rules.push(figures);
        }
        Ok(report)
    }
}

impl Figures {
    pub(crate) fn new(rule: &Arc<Rule>) -> Figures {
        Figures { rule: rule.clone(), checked: 0, drifted: 0, time: Duration::default() }
    }
}

/// The hosts of a rule, compared part by part.
pub(crate) struct Hosts {
    pub(crate) evaluator: Evaluator,
    from: Option<Value<'static>>,
    /// Where seeding is: what lies behind is not looked at.
    until: Option<Value<'static>>,
    ended: bool,
    kept: bool,
}

pub(crate) struct Part {
    pub(crate) checked: u64,
    pub(crate) differences: Vec<Difference>,
}

impl Hosts {
    pub(crate) fn of(asked: &Asked) -> Result<Hosts> {
        let (until, ended) = match &asked.state {
            None | Some(State::On | State::Seeding { position: Some(Value::MaxKey) }) => (None, false),
            Some(State::Seeding { position: Some(position) }) => (Some(position.clone()), false),
            Some(State::Maintaining | State::Retiring | State::Seeding { position: None }) => (None, true),
        };
        let evaluator = Evaluator::new(&asked.rule)?;
        Ok(Hosts { evaluator, from: None, until, ended, kept: asked.state.is_some() })
    }

    /// The next part; nothing after the last.
    pub(crate) async fn next(&mut self, life: &Life) -> Result<Option<Part>> {
        if self.ended {
            return Ok(None);
        }
        loop {
            life.check_stopped()?;
            match self.look(life).await {
                Ok((part, next)) => {
                    self.ended = next.is_none();
                    self.from = next;
                    return Ok(Some(part));
                }
                Err(error) if is_transient(&error) => tokio::task::yield_now().await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn look(&self, life: &Life) -> Result<(Part, Option<Value<'static>>)> {
        let context = life.context();
        // A transaction that writes nothing: one snapshot for the hosts, what they come from, and the outbox.
        let mut began = Began::begin(life, &context).await?;
        let mut at = At { backend: &*life.backend, session: &mut began.session, context: &context };
        let host = &self.evaluator.rule().host;
        let range = walk::range(host, self.from.as_ref(), self.until.as_ref());
        let mut hosts = at.find(Find { limit: Some(PART + 1), ..range }).await?;
        let next = match hosts.len() as u64 > PART {
            true => hosts.pop().and_then(|host| host.get("_id")),
            false => None,
        };
        let mut differences = self.evaluator.differences(&mut at, &hosts).await?;
        if !self.kept {
            differences.retain(inside::is_visible);
        } else if !differences.is_empty() {
            let pending = pending(&mut at, self.evaluator.rule()).await?;
            differences.retain(|difference| !difference.keys.iter().any(|value| pending.contains(&key::bytes(value))));
        }
        Ok((Part { checked: hosts.len() as u64, differences }, next))
    }
}

/// The keys of a rule that are in the outbox.
pub(crate) async fn pending(at: &mut At<'_>, rule: &Rule) -> Result<HashSet<Vec<u8>>> {
    let jobs = Filter::equality("_id.rule", &Value::from(&*rule.name));
    let rows = at.find(find(&names::outbox(&rule.host.db), jobs)).await?;
    let key = |row: &Doc<'static>| match row.get("_id") {
        Some(Value::Document(id)) => Some(key::bytes(&id.get("key")?)),
        _ => None,
    };
    Ok(rows.iter().filter_map(key).collect())
}
