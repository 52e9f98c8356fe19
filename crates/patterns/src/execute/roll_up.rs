//! Roll-ups (SEMANTICS R35): hosts that are made by their first child and go with their last.
//!
//! The number of children per rule is in the host's state. An added child makes the host if it is not there; one that is taken
//! away adds one guarded delete. While such a rule is being seeded, a change of a child counts exactly if the walk over the source has
//! passed the child (SEMANTICS R2): an addition, unlike a value, must not happen twice.

use crate::active::{ActiveRule, CollectionRules};
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::replaced::originals::catalog_row;
use crate::mql::{call, call_with, cond, document, list, object};
use crate::rule::numbers::CHILDREN;
use crate::rule::owned::STATE;
use crate::rule::{Rule, State};
use document::error::label;
use document::filter::Filter;
use document::op::{Capture, Delete, DeleteStatement, Namespace, WriteOp};
use document::pipeline::expr::{Names, field_of_document};
use document::value::Path;
use document::{Code, Doc, Error, Result, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What orders the walk over a rule's source against writers that change it: no key is null.
pub(crate) const WHOLE_RULE: Value<'static> = Value::Null;

/// Where the rule is in its life by what the transaction sees: while its source is walked, the position is read in it.
pub(super) async fn state(attempt: &mut Attempt<'_>, kept: &Arc<ActiveRule>) -> Result<State> {
    if !matches!(kept.state, State::Maintaining | State::Gathering { .. }) || kept.epoch == 0 {
        return Ok(kept.state.clone());
    }
    attempt.shared_later(kept, WHOLE_RULE);
    let row = catalog_row(attempt, kept).await?;
    // By a newer row nothing is counted until all writers know of it.
    let epoch = |row: &Doc<'static>| row.get("epoch").and_then(|epoch| epoch.as_i64_exact());
    let row = row.filter(|row| epoch(row) >= Some(kept.epoch));
    row.as_ref().and_then(State::of).ok_or_else(|| conflict("the rules changed meanwhile"))
}

fn conflict(why: &'static str) -> Error {
    Error::new(Code::WriteConflict, why).with_label(label::TRANSIENT)
}

/// The failure of a statement that follows from a client's: where it was to make a host that somebody else made at the same time, a
/// conflict.
pub(super) fn failure(op: &WriteOp, error: Error) -> Error {
    let WriteOp::Update(update) = op else { return error };
    let is_by_id =
        |info: &Doc<'static>| matches!(info.get("keyPattern"), Some(Value::Document(keys)) if keys.contains("_id"));
    let makes = update.statements.iter().any(|statement| statement.upsert);
    match makes && error.code() == Code::DuplicateKey && error.info().is_some_and(is_by_id) {
        true => conflict("the document was made meanwhile"),
        false => error,
    }
}

/// What a new host holds of the rules that make hosts there, but for some.
pub(crate) fn empty_values(local: &CollectionRules, but: &[Arc<ActiveRule>]) -> Vec<(Path, Value<'static>)> {
    let others =
        local.hosted.iter().filter(|kept| kept.makes_hosts() && !but.iter().any(|other| Arc::ptr_eq(kept, other)));
    others.filter_map(|kept| kept.field.as_ref()).flat_map(|field| field.empty_values()).collect()
}

/// Whether somebody must know which hosts were made: other fields are to be filled, or the hosts are a source.
pub(crate) fn is_watched(local: &CollectionRules) -> bool {
    !local.sourced.is_empty() || local.hosted.iter().any(|kept| !kept.makes_hosts())
}

/// Deletes the hosts of these keys that have no children any more, unless they hold something that is not of rules.
pub(super) async fn remove_empty(
    attempt: &mut Attempt<'_>,
    ns: &Namespace,
    rules: &[Arc<ActiveRule>],
    keys: Vec<Value<'static>>,
    changes: &mut Changes,
) -> Result<()> {
    let Some(local) = attempt.rules.of(ns).cloned().filter(|_| !keys.is_empty()) else { return Ok(()) };
    let empty = is_empty(&local)?;
    let statements = keys.iter().map(|key| DeleteStatement::all(Filter::equality("_id", key).and(empty.clone())));
    let op = WriteOp::Delete(Delete::of(ns.clone(), statements.collect()));
    let capture = if local.sourced.is_empty() { Capture::Nothing } else { local.capture.clone() };
    let written = attempt.derive(rules, &op, &capture).await?;
    changes.derived(ns, written.changes);
    Ok(())
}

/// The filter of hosts without children that hold only `_id`, fields of rules and our state.
pub(crate) fn is_empty(local: &CollectionRules) -> Result<Filter> {
    let mut own = Owned::default();
    own.add(&["_id"]);
    own.add(&[STATE]);
    for (path, _) in &local.owned {
        own.add(&path.parts.iter().map(|part| &*part.name).collect::<Vec<_>>());
    }
    let mut conditions = Vec::new();
    for path in local.hosted.iter().filter(|kept| kept.makes_hosts()).filter_map(|kept| children_path(&kept.rule)) {
        conditions.push((path.dotted(), call("$not", object([("$gt", Value::Int32(0))]))));
    }
    conditions.push(("$expr".to_owned(), own.holds_only(Value::from("$$ROOT"))));
    Filter::parse(&document(conditions.iter().map(|(name, test)| (&**name, test.borrow()))), &mut Names::new())
}

/// `_pleach.<field>.children`.
fn children_path(rule: &Rule) -> Option<Path> {
    Some(Path::new(&format!("{}.{CHILDREN}", rule.state_path()?)))
}

/// How many children of a rule a host has, by its state.
pub(crate) fn children(rule: &Rule, host: &Doc<'_>) -> i64 {
    let path = children_path(rule);
    path.and_then(|path| field_of_document(host, &path.parts).as_i64_exact()).unwrap_or(0)
}

/// The names that rules own in a document, level by level; a name without any below is owned whole.
#[derive(Default)]
struct Owned<'n>(BTreeMap<&'n str, Owned<'n>>);

impl<'n> Owned<'n> {
    fn add(&mut self, path: &[&'n str]) {
        if let Some((first, rest)) = path.split_first() {
            self.0.entry(first).or_default().add(rest);
        }
    }

    /// Whether a document has no other names, as an expression.
    fn holds_only(&self, document: Value<'static>) -> Value<'static> {
        let names = object([("input", call("$objectToArray", document.borrow())), ("in", Value::from("$$this.k"))]);
        let owned = list(self.0.keys().map(|name| call("$literal", Value::from(*name))));
        let others = call_with("$setDifference", [call("$map", names), owned]);
        let mut all = vec![call_with("$eq", [others, list([])])];
        for (name, below) in self.0.iter().filter(|(name, below)| !below.0.is_empty() && **name != STATE) {
            let path = match &document {
                Value::String(above) if above.as_str() == "$$ROOT" => Value::string(format!("${name}")),
                Value::String(above) => Value::string(format!("{}.{name}", above.as_str())),
                _ => continue,
            };
            let type_of = |name: &'static str| call_with("$eq", [call("$type", path.borrow()), Value::from(name)]);
            all.push(cond(type_of("object"), below.holds_only(path.clone()), type_of("missing")));
        }
        call_with("$and", all)
    }
}

/// Refuses that hosts are deleted that have children: the next child would count from 1.
pub(super) fn refuse_deletes(attempt: &Attempt<'_>, changes: &Changes) -> Result<()> {
    for (ns, list) in changes.all() {
        let Some(local) = attempt.rules.of(ns) else { continue };
        for kept in local.hosted.iter().filter(|kept| kept.makes_hosts()) {
            for deleted in list.iter().filter(|changed| changed.change.after.is_none()) {
                let Some(before) = &deleted.change.before else { continue };
                let children = children(&kept.rule, before);
                if children > 0 {
                    return Err(has_children(kept, &deleted.change.id, children));
                }
            }
        }
    }
    Ok(())
}

fn has_children(kept: &ActiveRule, id: &Value<'_>, children: i64) -> Error {
    let documents = if children == 1 { "document" } else { "documents" };
    let source = kept.rule.link().map(|link| link.source.collection.to_string()).unwrap_or_default();
    let message = format!(
        "the document of {} with _id: {} is kept by rule {} ({}) for {children} {documents} of {source}",
        kept.rule.host.collection,
        document::value::show::element(id),
        kept.rule.name,
        kept.rule.described(),
    );
    Error::new(Code::OperationFailed, message).with_hint(format!("it goes with the last of them: delete from {source}"))
}
