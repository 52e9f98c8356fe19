//! `audit`: is every derived value what it should be? Streams stored against expected and gives only the differences.
//!
//! Hosts are read part by part, each part with what its values come from in one snapshot, so that clients may go on writing. What
//! is still in the outbox is no drift, and what seeding has not reached is not looked at; both are counted as not checked.

mod absent;
mod note;
mod presence;
mod report;

pub(crate) use note::{Coverage, Note};
pub(crate) use presence::Presence;
pub(crate) use report::{Drift, Figures, Report};

use crate::declare::RuleChange;
use crate::execute::access::{Access, aggregate, find};
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::execute::rights::Rights;
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, walk};
use crate::life::{Life, audit_upstream, catalog, lifecycle};
use crate::mql;
use crate::rule::names;
use crate::rule::state::State;
use crate::rule::{Rule, key};
use crate::shapes::Place;
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::op::{Count, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Doc, Result, Value};
use hashbrown::HashSet;
use std::sync::Arc;
use std::time::Instant;

/// How many hosts are compared at a time.
const PACE: Pace = Pace::even(4_000);

/// A rule to compare by.
#[derive(Clone)]
pub(crate) struct AuditedRule {
    /// In the form of the declaration if one was sent.
    pub(crate) rule: Arc<Rule>,
    /// Where the applied rule of this name is in its life; `None` if it is not applied.
    pub(crate) state: Option<State>,
    /// How the applied rule differs from this one.
    pub(crate) differs: Option<RuleChange>,
    /// Of a shape that is applied in this form: where its documents are.
    pub(crate) places: Vec<Place>,
    /// The rules are switched off for this run.
    pub(crate) raw: bool,
}

impl AuditedRule {
    /// Where the rule is in its life; `None` if values of this form are kept by nobody.
    pub(crate) fn kept(&self) -> Option<&State> {
        self.state.as_ref().filter(|_| self.differs != Some(RuleChange::Rebuild))
    }

    fn is_retiring(&self) -> bool {
        matches!(self.state, Some(State::Retiring))
    }

    /// Whether documents may be ahead of seeding.
    pub(crate) fn is_seeding(&self) -> bool {
        matches!(
            self.kept(),
            Some(State::Maintaining | State::Restoring | State::Gathering { .. } | State::Seeding { .. })
        )
    }

    /// What is known before anything is compared.
    fn notes(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        if self.differs.is_some() {
            notes.push(Note::Differs);
        }
        if self.is_retiring() {
            notes.push(Note::Retiring);
        }
        if self.raw {
            notes.push(Note::Raw);
        }
        notes
    }
}

impl Life {
    /// Compares every host of the rules.
    pub(crate) async fn audit(&self, asked: &[AuditedRule], examples: usize, rights: &Rights) -> Result<Report> {
        let mut report = Report::of_audit(examples);
        let mut known = Vec::new();
        for asked in asked {
            let (began, mut figures) = (Instant::now(), Figures::new(asked));
            if self.is_comparable(asked, &mut figures, rights, &mut known).await? {
                lifecycle::of(&asked.rule).audit(self, asked, &mut figures, &mut report).await?;
            }
            figures.is_idle = figures.extent() == Coverage::Partial && !self.is_worked_on(&asked.rule.host.db).await?;
            figures.time = began.elapsed();
            report.rules.push(figures);
        }
        Ok(report)
    }

    pub(crate) async fn compare(&self, asked: &AuditedRule, figures: &mut Figures, report: &mut Report) -> Result<()> {
        let hosts = Hosts::of(self, asked)?;
        let waiting = hosts.compare(self, &mut ReportDifferences { figures, report }).await?;
        figures.note_waiting(waiting);
        self.report_absent(asked, &hosts.evaluator, figures, report).await
    }

    /// Whether what is compared is read at one moment; a real MongoDB compares while clients write.
    pub(crate) fn audits_in_snapshots(&self) -> bool {
        self.backend.facts().runs_our_code
    }

    /// Adds the documents that do not exist and should.
    pub(crate) async fn report_absent(
        &self,
        asked: &AuditedRule,
        evaluator: &Evaluator,
        figures: &mut Figures,
        report: &mut Report,
    ) -> Result<()> {
        for absent in self.find_absent_hosts(asked, evaluator).await? {
            figures.checked += 1;
            report.add(figures, absent);
        }
        Ok(())
    }

    /// Notes what of the rule does not exist; says whether there is something to compare.
    pub(crate) async fn is_comparable(
        &self,
        asked: &AuditedRule,
        figures: &mut Figures,
        rights: &Rights,
        known: &mut Vec<Presence>,
    ) -> Result<bool> {
        let db = &*asked.rule.host.db;
        if asked.is_retiring() {
            return Ok(false);
        }
        if !known.iter().any(|presence| presence.is_of(db)) {
            let (mut session, context) = (Session::default(), self.context());
            let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
            known.push(Presence::of(&mut at, db, rights).await?);
        }
        let presence = known.iter().find(|presence| presence.is_of(db));
        let missing = presence.and_then(|presence| presence.missing(asked, rights));
        let is_comparable = matches!(missing, None | Some(Note::NoSource { .. }));
        figures.notes.extend(missing);
        Ok(is_comparable)
    }
}

/// How many documents a collection has.
pub(crate) async fn count(at: &mut Access<'_>, ns: &Namespace) -> Result<u64> {
    let count = Count { ns: ns.clone(), filter: Filter::all(), skip: 0, limit: None, hint: None };
    let counted = at.all(ReadOp::Count(count)).await?;
    Ok(number(counted.first().and_then(|row| row.get("n"))))
}

/// How many of its documents come before an `_id`.
pub(crate) async fn count_before(at: &mut Access<'_>, ns: &Namespace, position: &Value<'static>) -> Result<u64> {
    let before = mql::call_with("$lt", [Value::from("$_id"), mql::literal(position.borrow())]);
    let stages = [mql::call("$match", mql::object([("$expr", before)])), mql::call("$count", Value::from("n"))];
    let pipeline = Pipeline::parse(&stages.into_iter().collect(), &mut Names::new())?;
    let counted = at.all(aggregate(ns, pipeline)).await?;
    Ok(number(counted.first().and_then(|row| row.get("n"))))
}

fn number(value: Option<Value<'_>>) -> u64 {
    u64::try_from(catalog::long(value)).unwrap_or(0)
}

/// The hosts of a rule, compared part by part.
pub(crate) struct Hosts {
    pub(crate) evaluator: Evaluator,
    /// Where seeding is: what lies behind is not looked at.
    until: Option<Value<'static>>,
    /// Seeding has not begun: no host is looked at.
    unseeded: bool,
    kept: bool,
}

/// What becomes of the differences that are found.
pub(crate) trait Differences: Send {
    fn add<'a>(
        &'a mut self,
        evaluator: &'a Evaluator,
        checked: u64,
        differences: Vec<HostDifference>,
    ) -> Answer<'a, ()>;
}

/// They are reported.
struct ReportDifferences<'a> {
    figures: &'a mut Figures,
    report: &'a mut Report,
}

impl Differences for ReportDifferences<'_> {
    fn add<'a>(&'a mut self, _: &'a Evaluator, checked: u64, differences: Vec<HostDifference>) -> Answer<'a, ()> {
        self.figures.checked += checked;
        differences.into_iter().for_each(|difference| self.report.add(self.figures, difference));
        Box::pin(async { Ok(()) })
    }
}

impl Hosts {
    pub(crate) fn of(life: &Life, asked: &AuditedRule) -> Result<Hosts> {
        let (until, unseeded) = match asked.kept() {
            None | Some(State::On | State::Seeding { position: Some(Value::MaxKey) }) => (None, false),
            Some(State::Seeding { position: Some(position) }) => (Some(position.clone()), false),
            Some(
                State::Maintaining
                | State::Gathering { .. }
                | State::Retiring
                | State::Restoring
                | State::Seeding { position: None },
            ) => (None, true),
        };
        let evaluator = Evaluator::new(&asked.rule)?.through(&life.patterned.executor);
        Ok(Hosts { evaluator, until, unseeded, kept: asked.kept().is_some() })
    }

    /// Those of a rule that nobody keeps: only what clients see is compared and made right.
    pub(crate) fn once(asked: &AuditedRule) -> Result<Hosts> {
        let evaluator = Evaluator::without_state(&asked.rule)?;
        Ok(Hosts { evaluator, until: None, unseeded: false, kept: false })
    }

    /// Compares all of them; returns how many differ because their job is still in the outbox.
    pub(crate) async fn compare(&self, life: &Life, found: &mut dyn Differences) -> Result<u64> {
        let mut comparing = Comparing { life, hosts: self, waiting: 0, found };
        if !self.unseeded {
            walk(life, PACE, None, &mut comparing).await?;
        }
        Ok(comparing.waiting)
    }
}

struct Comparing<'a> {
    life: &'a Life,
    hosts: &'a Hosts,
    waiting: u64,
    found: &'a mut dyn Differences,
}

impl PartWork for Comparing<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(async move {
            let Hosts { evaluator, until, kept, .. } = self.hosts;
            let (life, context) = (self.life, self.life.context());
            // A transaction that writes nothing: one snapshot for the hosts, what they come from, and the outbox.
            let mut began = OwnTransaction::begin_for(life, &context, evaluator.rule()).await?;
            let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
            let (hosts, next) = walk::read(&mut at, &evaluator.rule().host, part, until.as_ref()).await?;
            let mut differences = evaluator.differences(&mut at, &hosts).await?;
            if !kept {
                differences.retain(audit_upstream::is_visible);
            } else if !differences.is_empty() {
                self.waiting += leave_pending(&mut at, evaluator.rule(), &mut differences).await?;
            }
            drop(began);
            self.found.add(evaluator, hosts.len() as u64, differences).await?;
            Ok(Some(PartDone::of(&hosts, next)))
        })
    }
}

/// Takes out what the outbox will make right; says how many that were.
pub(crate) async fn leave_pending(
    at: &mut Access<'_>,
    rule: &Rule,
    differences: &mut Vec<HostDifference>,
) -> Result<u64> {
    let (pending, before) = (pending(at, rule).await?, differences.len());
    differences.retain(|difference| !difference.keys.iter().any(|value| pending.contains(&key::bytes(value))));
    Ok((before - differences.len()) as u64)
}

/// The keys of a rule that are in the outbox.
async fn pending(at: &mut Access<'_>, rule: &Rule) -> Result<HashSet<Vec<u8>>> {
    let jobs = Filter::equality("_id.rule", &Value::from(&*rule.name));
    let rows = at.find(find(&names::outbox(&rule.host.db), jobs)).await?;
    let key = |row: &Doc<'static>| match row.get("_id") {
        Some(Value::Document(id)) => Some(key::bytes(&id.get("key")?)),
        _ => None,
    };
    Ok(rows.iter().filter_map(key).collect())
}
