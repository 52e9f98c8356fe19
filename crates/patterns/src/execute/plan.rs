//! What a client's write becomes: steps as data. The runner executes them one after the other; `plan` and `explain` print them as
//! MQL, with what they cost. Steps on one document are merged where they are made: [`crate::fields::HostUpdate`].

use crate::mql::{list, object};
use crate::rule::Rule;
use document::backend::{FenceKey, Mode};
use document::op::{Change, Namespace, ReadOp, WriteError, WriteOp, Written};
use document::{Doc, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The rules it is for: none for the client's own statement, several where steps on one document were merged.
    pub rules: Vec<Arc<Rule>>,
    pub action: Action,
    /// How many documents it changed when it was rehearsed; of a job, how many it will change. `None` before that.
    pub documents: Option<u64>,
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "made for explain and tests; a box would save nothing")]
pub enum Action {
    Fence {
        key: FenceKey,
        /// The link value that is fenced, for people.
        value: Value<'static>,
        mode: Mode,
    },
    Read(ReadOp),
    /// The client's own statement.
    Write(WriteOp),
    /// A derived statement: it counts in no reply.
    Derive(WriteOp),
    /// Deferred work (R13): make everything that depends on this key true again.
    Job {
        key: Value<'static>,
    },
}

/// The steps of one transaction, in order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// The documents that the steps changed when they were rehearsed …
    changed: Documents,
    /// … and those that jobs will change afterwards.
    later: Documents,
    /// The client's statements that would fail, and why; the steps are of the others.
    pub errors: Vec<WriteError>,
}

/// Documents, each once: namespace and `_id`.
type Documents = HashSet<(Namespace, Vec<u8>)>;

/// What a plan costs: statements that read, documents that are written, each counted once, and the bytes of all commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub read: u64,
    /// In the transaction and by the jobs that it leaves; bookkeeping is not counted.
    pub written: u64,
    /// How many of them jobs write afterwards.
    pub deferred: u64,
    pub bytes: u64,
}

impl From<Action> for Step {
    fn from(action: Action) -> Step {
        Step { rules: Vec::new(), action, documents: None }
    }
}

impl Step {
    /// `fence`, `read`, `write`, `derived`, `job`.
    pub fn kind(&self) -> &'static str {
        match &self.action {
            Action::Fence { .. } => "fence",
            Action::Read(_) => "read",
            Action::Write(_) => "write",
            Action::Derive(_) => "derived",
            Action::Job { .. } => "job",
        }
    }

    /// What it reads or writes; nothing for fences and jobs.
    pub fn namespace(&self) -> Option<&Namespace> {
        match &self.action {
            Action::Read(op) => Some(op.ns()),
            Action::Write(op) | Action::Derive(op) => Some(op.ns()),
            Action::Fence { .. } | Action::Job { .. } => None,
        }
    }

    /// The statement as a client would send it.
    pub fn command(&self) -> Option<Doc<'static>> {
        match &self.action {
            Action::Read(op) => Some(op.to_command()),
            Action::Write(op) | Action::Derive(op) => Some(op.to_command()),
            Action::Fence { .. } | Action::Job { .. } => None,
        }
    }

    /// `{ rule, kind, namespace, command }`, the command as plain MQL; of a fence `{ rule, kind, key, mode }`, of a job
    /// `{ rule, kind, key }`.
    pub fn to_mql(&self) -> Doc<'static> {
        let names: Vec<&str> = self.rules.iter().map(|rule| &*rule.name).collect();
        let rule = if names.is_empty() { Value::Null } else { Value::string(names.join(", ")) };
        let (key, mode) = match &self.action {
            Action::Fence { value, mode: Mode::Shared, .. } => (value.borrow(), Value::from("shared")),
            Action::Fence { value, mode: Mode::Exclusive, .. } => (value.borrow(), Value::from("exclusive")),
            Action::Job { key } => (key.borrow(), Value::Missing),
            _ => (Value::Missing, Value::Missing),
        };
        crate::mql::document([
            ("rule", rule),
            ("kind", Value::from(self.kind())),
            ("namespace", self.namespace().map_or(Value::Missing, |ns| Value::string(ns.to_string()))),
            ("command", self.command().map_or(Value::Missing, Value::Document)),
            ("documents", self.documents.map_or(Value::Missing, number)),
            ("key", key),
            ("mode", mode),
        ])
    }
}

impl Plan {
    /// Steps that are not rehearsed.
    pub fn of(steps: Vec<Step>) -> Plan {
        Plan { steps, ..Plan::default() }
    }

    /// Notes what the last step changed when it was rehearsed. The images must be whole: a document that stays as it was is not
    /// written.
    pub(crate) fn note(&mut self, op: &WriteOp, written: &Written) {
        let mut ids: Vec<Vec<u8>> = Vec::new();
        if let WriteOp::Insert(insert) = op {
            // Those without `_id` are told with the one that they got.
            ids.extend(insert.documents.iter().filter_map(|doc| doc.get("_id")).map(|id| identity(&id)));
        }
        let changed = |change: &&Change| match (&change.before, &change.after) {
            (Some(before), Some(after)) => before.as_bytes() != after.as_bytes(),
            (None, None) => false,
            _ => true,
        };
        ids.extend(written.changes.iter().filter(changed).map(|change| identity(&change.id)));
        ids.extend(written.upserted.iter().map(|(_, id)| identity(id)));
        ids.sort_unstable();
        ids.dedup();
        self.documents(ids.len());
        self.changed.extend(ids.into_iter().map(|id| (op.ns().clone(), id)));
    }

    /// Notes which documents the job of the last step will change.
    pub(crate) fn note_later(&mut self, ns: &Namespace, ids: &[Value<'static>]) {
        self.documents(ids.len());
        self.later.extend(ids.iter().map(|id| (ns.clone(), identity(id))));
    }

    pub(crate) fn with_errors(self, errors: Vec<WriteError>) -> Plan {
        Plan { errors, ..self }
    }

    /// Adds the steps of another plan behind its own.
    pub(crate) fn join(&mut self, other: Plan) {
        self.steps.extend(other.steps);
        self.changed.extend(other.changed);
        self.later.extend(other.later);
        self.errors.extend(other.errors);
    }

    fn documents(&mut self, count: usize) {
        if let Some(step) = self.steps.last_mut() {
            step.documents = Some(count as u64);
        }
    }

    pub fn cost(&self) -> Cost {
        let deferred = self.later.difference(&self.changed).count() as u64;
        let mut cost = Cost { written: self.changed.len() as u64 + deferred, deferred, ..Cost::default() };
        for step in &self.steps {
            match (&step.action, step.documents) {
                (Action::Read(_), _) => cost.read += 1,
                (Action::Write(op) | Action::Derive(op), None) => cost.written += named(op),
                _ => {}
            }
            cost.bytes += step.command().map_or(0, |command| command.as_bytes().len() as u64);
        }
        cost
    }

    /// `{ rules, steps, fences, deferred, cost }`: what `explain` adds and `plan` prints (R25, F); `errors` if statements would fail.
    pub fn to_mql(&self) -> Doc<'static> {
        let mut rules: Vec<&str> =
            self.steps.iter().flat_map(|step| step.rules.iter().map(|rule| &*rule.name)).collect();
        rules.sort_unstable();
        rules.dedup();
        let of = |wanted: fn(&Action) -> bool| {
            let steps = self.steps.iter().filter(|step| wanted(&step.action));
            list(steps.map(|step| Value::Document(step.to_mql())))
        };
        let cost = self.cost();
        let cost = object([
            ("read", number(cost.read)),
            ("written", number(cost.written)),
            ("deferred", number(cost.deferred)),
            ("bytes", number(cost.bytes)),
        ]);
        crate::mql::document([
            ("rules", list(rules.into_iter().map(Value::from))),
            ("steps", of(|action| !matches!(action, Action::Fence { .. } | Action::Job { .. }))),
            ("fences", of(|action| matches!(action, Action::Fence { .. }))),
            ("deferred", of(|action| matches!(action, Action::Job { .. }))),
            ("cost", cost),
            ("errors", if self.errors.is_empty() { Value::Missing } else { list(self.errors.iter().map(failed)) }),
        ])
    }
}

/// `{ index, code, errmsg }`, as a reply has it.
fn failed(failed: &WriteError) -> Value<'static> {
    object([
        ("index", number(failed.index as u64)),
        ("code", Value::Int32(failed.error.code().number())),
        ("errmsg", Value::string(failed.error.message().to_owned())),
    ])
}

fn identity(id: &Value<'_>) -> Vec<u8> {
    crate::rule::key::bytes(id)
}

fn number(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

/// How many documents a statement names that was not rehearsed.
fn named(op: &WriteOp) -> u64 {
    let count = match op {
        WriteOp::Insert(op) => op.documents.len(),
        WriteOp::Update(op) => op.statements.len(),
        WriteOp::Delete(op) => op.statements.len(),
        WriteOp::FindAndModify(_) => 1,
    };
    count as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::testing::{rule, tally};
    use crate::fields::{HostUpdate, Tally};
    use crate::rule::{Delta, Field};
    use bson::doc;
    use document::op::{Insert, UpdateOp, UpdateStatement};

    #[test]
    fn a_plan_is_printed_as_commands() {
        let field: Arc<dyn Field> = tally("reviewCount", Tally::Count, |_| {});
        let rule = rule(field.clone());
        let mut host = HostUpdate::new();
        host.add(&field, Delta::Count(1)).unwrap();
        let review = Doc::from(doc! { "_id": 1, "productId": 5 });
        let insert = Insert {
            ns: Namespace::new("shop", "reviews"),
            documents: vec![review],
            ordered: true,
            bypass_validation: false,
            statement_ids: Vec::new(),
        };
        let statement = UpdateStatement {
            filter: field.hosts(&Value::Int32(5)),
            update: host.into_update().unwrap().unwrap(),
            multi: false,
            upsert: false,
            hint: None,
        };
        let update = UpdateOp::of(rule.host.clone(), vec![statement]);
        let fence = Action::Fence {
            key: crate::rule::fence::fence_key(&rule, &Value::Int32(5)),
            value: Value::Int32(5),
            mode: Mode::Shared,
        };
        let of = |action| Step { rules: vec![rule.clone()], ..Step::from(action) };
        let plan = Plan {
            steps: vec![
                Step::from(Action::Write(WriteOp::Insert(insert))),
                of(Action::Derive(WriteOp::Update(update))),
                of(fence),
                of(Action::Job { key: Value::Int32(5) }),
            ],
            ..Plan::default()
        };
        let insert = doc! { "insert": "reviews", "documents": [{ "_id": 1, "productId": 5 }] };
        let update = doc! { "update": "products", "updates": [{ "q": { "_id": { "$eq": 5 } }, "u": { "$inc": { "reviewCount": 1 } } }] };
        let bytes = insert.to_vec().unwrap().len() + update.to_vec().unwrap().len();
        let expected = doc! {
            "rules": ["products.reviewCount"],
            "steps": [
                { "rule": null, "kind": "write", "namespace": "shop.reviews", "command": insert },
                { "rule": "products.reviewCount", "kind": "derived", "namespace": "shop.products", "command": update },
            ],
            "fences": [{ "rule": "products.reviewCount", "kind": "fence", "key": 5, "mode": "shared" }],
            "deferred": [{ "rule": "products.reviewCount", "kind": "job", "key": 5 }],
            "cost": { "read": 0_i64, "written": 2_i64, "deferred": 0_i64, "bytes": i64::try_from(bytes).unwrap() },
        };
        assert_eq!(plan.to_mql(), Doc::from(expected));
    }
}
