//! What an audit or a repair found, as it is answered: never more than was looked at.

use crate::execute::evaluate::HostDifference;
use crate::life::audit::AuditedRule;
use crate::life::audit::note::{Coverage, Note};
use crate::mql;
use crate::rule::state::State;
use crate::rule::{Flaw, Rule, Violation};
use document::op::Namespace;
use document::value::order;
use document::{Array, ArrayWriter, Doc, DocWriter, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// At most as many as were asked for.
    pub(crate) examples: Vec<Drift>,
    pub(crate) rules: Vec<Figures>,
    /// What could not be repaired, and why.
    pub(crate) failures: Vec<(Drift, String)>,
    /// Applied rules that the declaration does not have.
    undeclared: Vec<Arc<str>>,
    /// Said if there are no rules because their database does not exist.
    pub(crate) missing: Option<String>,
    /// What drifted is right now.
    repairs: bool,
    most: usize,
}

/// A document whose value is not what it should be.
#[derive(Clone, Debug)]
pub(crate) struct Drift {
    pub(crate) rule: Arc<Rule>,
    pub(crate) collection: Arc<str>,
    pub(crate) id: Value<'static>,
    pub(crate) field: String,
    pub(crate) stored: Value<'static>,
    pub(crate) expected: Value<'static>,
    /// Of a stored document of a shape: all that is wrong with it.
    pub(crate) flaws: Vec<Flaw>,
    /// Of a document that is not as it must be: why.
    pub(crate) violations: Vec<Violation>,
}

/// The counts of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) rule: Arc<Rule>,
    state: Option<State>,
    pub(crate) checked: u64,
    pub(crate) unchecked: u64,
    pub(crate) drifted: u64,
    /// How many of these a repair cannot make right.
    unmendable: u64,
    pub(crate) notes: Vec<Note>,
    /// What was not compared yet waits, and no process works on it.
    pub(crate) is_idle: bool,
    pub(crate) time: Duration,
}

impl Figures {
    pub(crate) fn new(asked: &AuditedRule) -> Figures {
        Figures {
            rule: asked.rule.clone(),
            state: asked.state.clone(),
            checked: 0,
            unchecked: 0,
            drifted: 0,
            unmendable: 0,
            notes: asked.notes(),
            is_idle: false,
            time: Duration::default(),
        }
    }

    pub(crate) fn extent(&self) -> Coverage {
        // A rule in force keeps a collection from its first document on: one that does not exist yet is as good as empty. A name
        // that is near says that it may be misspelt.
        let is_in_force = self.state == Some(State::On) && !self.has("differs") && !self.has("raw");
        let extent = |note: &Note| if is_in_force && note.may_come() { Coverage::Whole } else { note.extent() };
        self.notes.iter().map(extent).max().unwrap_or_default()
    }

    fn has(&self, about: &str) -> bool {
        self.notes.iter().any(|note| note.about() == about)
    }

    /// Whether it was noted that what the values come from does not exist.
    pub(crate) fn lacks_source(&self) -> bool {
        self.has("no_source")
    }

    /// Notes that there was nothing to look at.
    pub(crate) fn note_if_empty(&mut self, collection: &Namespace) {
        if self.checked + self.unchecked + self.drifted == 0 {
            self.notes.push(Note::Empty { collection: collection.clone() });
        }
    }

    /// Documents that differ because their job is still in the outbox.
    pub(crate) fn note_waiting(&mut self, documents: u64) {
        if documents > 0 {
            self.checked = self.checked.saturating_sub(documents);
            self.unchecked += documents;
            self.notes.push(Note::Waiting { documents });
        }
    }

    fn show(&self) -> Doc<'static> {
        let mut row = DocWriter::new();
        row.append("rule", &Value::from(&*self.rule.name)).append("checked", &long(self.checked));
        row.append("drifted", &long(self.drifted));
        row.append("seconds", &Value::Double((self.time.as_secs_f64() * 1e3).round() / 1e3));
        row.append("database", &Value::from(&*self.rule.host.db));
        row.append("state", &Value::from(self.state.as_ref().map_or("not applied", State::name)));
        row.append("unchecked", &long(self.unchecked));
        if self.has("differs") {
            row.append("differs", &Value::Bool(true));
        }
        if !self.notes.is_empty() {
            let mut notes = ArrayWriter::new();
            for note in &self.notes {
                let mut entry = DocWriter::new();
                entry.append("about", &Value::from(note.about()));
                entry.append("text", &Value::from(&*note.text(&self.rule)));
                notes.push(&Value::Document(entry.finish()));
            }
            row.append("notes", &Value::Array(notes.finish()));
        }
        row.finish()
    }

    /// What helps next with what is wrong.
    fn next(&self) -> Vec<&'static str> {
        let mut next = Vec::new();
        if self.extent() == Coverage::Impossible && !self.has("not_in_buckets") {
            // By these names nothing should be written.
            return vec!["correct_names"];
        }
        if self.unmendable > 0 {
            next.push("by_hand");
        }
        let is_applied = self.state.is_some() && !self.has("differs");
        match self.drifted > self.unmendable {
            true if !is_applied => next.push("apply"),
            true if self.has("raw") => next.push("restart"),
            true => next.push("repair"),
            false => {}
        }
        match self.extent() {
            Coverage::Impossible => next.push("apply"),
            Coverage::Partial if self.has("raw") => next.push("restart"),
            Coverage::Partial => next.push(if self.is_idle { "resume" } else { "wait" }),
            Coverage::Whole => {}
        }
        next
    }
}

impl Report {
    pub(crate) fn of_audit(most: usize) -> Report {
        Report { most, ..Report::default() }
    }

    pub(crate) fn of_repair(most: usize) -> Report {
        Report { most, repairs: true, ..Report::default() }
    }

    pub(crate) fn add(&mut self, figures: &mut Figures, difference: HostDifference) {
        let drift = Drift::of(&figures.rule, difference);
        self.note(figures, drift);
    }

    pub(crate) fn note(&mut self, figures: &mut Figures, drift: Drift) {
        figures.drifted += 1;
        let is_by_hand = !drift.violations.is_empty() || drift.flaws.iter().any(|flaw| !flaw.mendable);
        figures.unmendable += u64::from(is_by_hand);
        if self.examples.len() < self.most {
            self.examples.push(drift);
        }
    }

    /// Notes what a repair leaves as it is. As many are named as drifted documents are.
    pub(crate) fn leave(&mut self, drift: Drift, why: &str) {
        if self.failures.len() < self.most.max(1) {
            self.failures.push((drift, why.to_owned()));
        }
    }

    /// Says which applied rules were not compared because the declaration does not have them.
    pub(crate) fn leaving_out(self, undeclared: Vec<Arc<str>>) -> Report {
        Report { undeclared, ..self }
    }

    fn drifted(&self) -> u64 {
        self.rules.iter().map(|figures| figures.drifted).sum()
    }

    /// `right`, `drift`, `incomplete` or `impossible`.
    fn outcome(&self) -> &'static str {
        let extent = self.rules.iter().map(Figures::extent).max().unwrap_or(Coverage::Impossible);
        let is_wrong = if self.repairs { !self.failures.is_empty() } else { self.drifted() > 0 };
        match extent {
            Coverage::Impossible => "impossible",
            _ if is_wrong => "drift",
            Coverage::Partial => "incomplete",
            Coverage::Whole => "right",
        }
    }

    /// Whether every value of every rule was compared and is right now.
    pub(crate) fn is_right(&self) -> bool {
        self.outcome() == "right"
    }

    /// `{ checked, drift, drifted, rules }`, and: `unchecked`, `outcome`, `next`; each rule's `state` and `notes`;
    /// a bucket's drift all its flaws.
    pub(crate) fn show(&self) -> Doc<'static> {
        let mut report = DocWriter::new();
        report.append("checked", &long(self.rules.iter().map(|figures| figures.checked).sum()));
        report
            .append("drift", &documents(self.examples.iter().map(|example| example.show(None))))
            .append("drifted", &long(self.drifted()));
        report.append("rules", &documents(self.rules.iter().map(Figures::show)));
        report.append("unchecked", &long(self.rules.iter().map(|figures| figures.unchecked).sum()));
        report.append("outcome", &Value::from(self.outcome()));
        if let Some(text) = &self.missing {
            let note = mql::object([("about", Value::from("no_database")), ("text", Value::from(&**text))]);
            report.append("notes", &Value::Array(std::iter::once(note).collect()));
        }
        if !self.undeclared.is_empty() {
            let names = self.undeclared.iter().map(|name| Value::from(&**name));
            report.append("undeclared", &Value::Array(names.collect()));
        }
        if !self.failures.is_empty() {
            report.append("failed", &documents(self.failures.iter().map(|(drift, why)| drift.show(Some(why)))));
        }
        if !self.repairs {
            report.append("next", &self.next());
        }
        report.finish()
    }

    /// `[ { action, rules: [ name ], database } ]`: what helps, by what is to be done in which database.
    fn next(&self) -> Value<'static> {
        let databases: BTreeSet<&str> = self.rules.iter().map(|figures| &*figures.rule.host.db).collect();
        let mut next = ArrayWriter::new();
        for action in ["correct_names", "apply", "repair", "restart", "by_hand", "resume", "wait"] {
            for db in &databases {
                let concerned = self
                    .rules
                    .iter()
                    .filter(|figures| &*figures.rule.host.db == *db && figures.next().contains(&action));
                let rules: Array<'static> =
                    concerned.map(|figures| Value::string(figures.rule.name.to_string())).collect();
                if !rules.is_empty() {
                    let mut entry = DocWriter::new();
                    entry.append("action", &Value::from(action)).append("rules", &Value::Array(rules));
                    entry.append("database", &Value::from(*db));
                    next.push(&Value::Document(entry.finish()));
                }
            }
        }
        Value::Array(next.finish())
    }
}

impl Drift {
    /// A host whose field is not what it should be.
    pub(crate) fn of(rule: &Arc<Rule>, difference: HostDifference) -> Drift {
        let HostDifference { id, stored, expected, .. } = difference;
        let (collection, field) = (rule.host.collection.clone(), rule.field.dotted());
        Drift { rule: rule.clone(), collection, id, field, stored, expected, flaws: Vec::new(), violations: Vec::new() }
    }

    /// A missing value is left out: null is a value.
    fn show(&self, problem: Option<&str>) -> Doc<'static> {
        let mut drift = DocWriter::new();
        drift.append("rule", &Value::from(&*self.rule.name));
        drift.append("collection", &Value::from(&*self.collection));
        drift.append("_id", &self.id).append("field", &Value::from(&*self.field));
        append_present(&mut drift, "stored", &self.stored);
        append_present(&mut drift, "expected", &self.expected);
        drift.append("database", &Value::from(&*self.rule.host.db));
        if let Some(only) = self.differs_only_in() {
            drift.append("only", &Value::from(only));
        }
        if !self.flaws.is_empty() {
            let mut flaws = ArrayWriter::new();
            for flaw in &self.flaws {
                let mut row = DocWriter::new();
                row.append("field", &Value::from(&*flaw.field));
                append_present(&mut row, "stored", &flaw.stored);
                append_present(&mut row, "expected", &flaw.expected);
                row.append("repairable", &Value::Bool(flaw.mendable));
                flaws.push(&Value::Document(row.finish()));
            }
            drift.append("flaws", &Value::Array(flaws.finish()));
        }
        if let Some(first) = self.violations.first() {
            append_present(&mut drift, "kind", &first.kind);
            let rows = self.violations.iter().map(|violation| {
                let field = ("field", Value::from(&*violation.field));
                mql::object([field, ("problem", Value::from(&*violation.problem))])
            });
            drift.append("violations", &Value::Array(rows.collect()));
        }
        let own = self.violations.first().map(|first| &*first.problem);
        if let Some(problem) = problem.or(own) {
            drift.append("problem", &Value::from(problem));
        }
        drift.finish()
    }

    /// Two values that look the same differ in their type, or in what the rule remembers in `_pleach`.
    fn differs_only_in(&self) -> Option<&'static str> {
        let is_equal = order::equal(&self.stored, &self.expected)
            && self.stored.is_missing() == self.expected.is_missing()
            && self.flaws.is_empty();
        match (is_equal, self.stored.kind() == self.expected.kind()) {
            (false, _) => None,
            (true, false) => Some("type"),
            (true, true) if self.rule.state_path().is_some() => Some("state"),
            (true, true) => None,
        }
    }
}

fn append_present(row: &mut DocWriter, name: &str, value: &Value<'static>) {
    if !value.is_missing() {
        row.append(name, value);
    }
}

fn documents(rows: impl Iterator<Item = Doc<'static>>) -> Value<'static> {
    Value::Array(rows.map(Value::Document).collect())
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}
