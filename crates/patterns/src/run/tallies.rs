//! Counts, sums and averages: the deltas of changed children, merged into one update per host (SEMANTICS R31).

use super::Run;
use super::changes::Changes;
use super::jobs;
use super::originals::keep_matching;
use crate::layer::deferred::Effect;
use crate::layer::turns::{self, HostHash};
use crate::life::State;
use crate::link::{HostUpdate, Program, TallyProgram, key};
use crate::mql;
use crate::rule::Upkeep;
use crate::rules::{Kept, Local};
use document::filter::{Details, Filter, Node};
use document::op::{Capture, Namespace, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::{Applied, Native, Update};
use document::value::Path;
use document::{Doc, DocWriter, Env, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// What is added to one host.
struct HostDelta {
    value: Value<'static>,
    update: HostUpdate,
    filter: Filter,
    /// Whether several hosts may have the value.
    multi: bool,
    kept: Vec<Arc<Kept>>,
}

#[derive(Default)]
struct Deltas {
    /// By host namespace.
    hosts: Vec<(Namespace, Vec<HostDelta>)>,
    places: HashMap<(usize, Vec<u8>), usize>,
}

pub(super) async fn add(run: &mut Run<'_>, level: &[Arc<Kept>], changes: &mut Changes) -> Result<()> {
    let mut deltas = Deltas::default();
    for kept in level {
        let (Upkeep::Link(link), Some(Program::Tally(program))) = (&kept.rule.upkeep, &kept.program) else { continue };
        for changed in changes.of(&link.source) {
            let (before, after) = (changed.change.before.as_ref(), changed.change.after.as_ref());
            for (value, amount) in program.deltas(before, after, &run.context.env)? {
                if amount.is_zero() || run.was_evaluated(kept, &value) {
                    continue;
                }
                if link.lag.is_some() {
                    jobs::enqueue(run, kept, &value, Effect::Update).await?;
                } else if kept.is_by_id() && !kept.state.reached(&value) {
                    // Seeding comes to this host later (SEMANTICS R2).
                    run.shared_later(kept, value);
                } else {
                    deltas.add(kept, program, value, &amount)?;
                }
            }
        }
    }
    for (host, list) in deltas.hosts {
        write(run, &host, list, changes).await?;
    }
    Ok(())
}

impl Deltas {
    fn add(
        &mut self,
        kept: &Arc<Kept>,
        program: &Arc<TallyProgram>,
        value: Value<'static>,
        amount: &crate::link::Amount,
    ) -> Result<()> {
        let host = &kept.rule.host;
        let at = match self.hosts.iter().position(|(ns, _)| ns == host) {
            Some(at) => at,
            None => {
                self.hosts.push((host.clone(), Vec::new()));
                self.hosts.len() - 1
            }
        };
        let Some((_, list)) = self.hosts.get_mut(at) else { return Ok(()) };
        let mut place = key::bytes(&value);
        if let Upkeep::Link(link) = &kept.rule.upkeep {
            place.extend_from_slice(link.local.path.dotted().as_bytes());
        }
        if !kept.is_by_id() && !matches!(kept.state, State::On) {
            // Its statement takes only the hosts that seeding has reached.
            place.extend_from_slice(kept.rule.name.as_bytes());
        }
        let slot = *self.places.entry((at, place)).or_insert_with(|| {
            let filter = program.hosts(&value);
            list.push(HostDelta {
                value,
                update: HostUpdate::new(),
                filter,
                multi: !kept.is_by_id(),
                kept: Vec::new(),
            });
            list.len() - 1
        });
        if let Some(delta) = list.get_mut(slot) {
            delta.update.add(program, amount)?;
            if !delta.kept.iter().any(|other| Arc::ptr_eq(other, kept)) {
                delta.kept.push(kept.clone());
            }
        }
        Ok(())
    }
}

/// One update per host; those without a host leave a shared fence, against who creates it meanwhile.
async fn write(run: &mut Run<'_>, host: &Namespace, list: Vec<HostDelta>, changes: &mut Changes) -> Result<()> {
    let mut rules: Vec<Arc<Kept>> = Vec::new();
    let mut statements = Vec::with_capacity(list.len());
    let mut keys: Vec<(Arc<Kept>, Value<'static>)> = Vec::new();
    let mut feeds = false;
    let mut multi = false;
    for delta in list {
        let fields: Vec<Path> = delta.update.programs().map(|program| program.rule().field.clone()).collect();
        let is_seeded = delta.kept.iter().all(|kept| matches!(kept.state, State::On));
        let update = match is_seeded {
            true => delta.update.into_update()?,
            false => delta.update.into_update_while_seeding(),
        };
        let Some(mut update) = update else { continue };
        if let Some(local) = run.rules.of(host).filter(|_| delta.kept.iter().any(|kept| kept.feeds)) {
            update = with_expressions(update, fields, local);
        }
        let hash = turns::hash(host, &key::bytes(&delta.value));
        run.touched.push(hash);
        feeds |= delta.kept.iter().any(|kept| kept.feeds);
        multi |= delta.multi;
        let mut filter = delta.filter;
        for kept in &delta.kept {
            if delta.multi && !matches!(kept.state, State::On) {
                filter = filter.and(up_to(&kept.state)?);
                run.shared_later(kept, delta.value.clone());
            }
            keys.push((kept.clone(), delta.value.clone()));
            if !rules.iter().any(|other| Arc::ptr_eq(other, kept)) {
                rules.push(kept.clone());
            }
        }
        let statement = UpdateStatement { filter, update, multi: delta.multi, upsert: false, hint: None };
        statements.push((statement, hash));
    }
    if statements.is_empty() {
        return Ok(());
    }
    if run.is_collecting() {
        return collect(run, host, &rules, statements, keys).await;
    }
    let filters: Vec<Filter> = statements.iter().map(|(statement, _)| statement.filter.clone()).collect();
    keep_matching(run, host, &filters).await?;
    let expected = u64::try_from(statements.len()).unwrap_or(u64::MAX);
    let capture = match run.rules.of(host) {
        Some(local) if feeds => local.capture.clone(),
        _ => Capture::Nothing,
    };
    let op = update(host, statements.into_iter().map(|(statement, _)| statement).collect());
    let written = run.derive(&rules, &op, &capture).await?;
    if written.n < expected || multi {
        // Which of several did not match is not told: a fence too many is at worst a retry.
        for (kept, value) in keys {
            run.shared_later(&kept, value);
        }
    }
    changes.derived(host, written.changes);
    Ok(())
}

/// The same without an answer: a host that is thought to be there must be; any other update has a fence with it.
async fn collect(
    run: &mut Run<'_>,
    host: &Namespace,
    rules: &[Arc<Kept>],
    statements: Vec<(UpdateStatement, HostHash)>,
    keys: Vec<(Arc<Kept>, Value<'static>)>,
) -> Result<()> {
    let orphans = &run.shared.orphans;
    let is_sure = |(statement, hash): &(UpdateStatement, HostHash)| !statement.multi && !orphans.contains(*hash);
    let (sure, unsure): (Vec<_>, Vec<_>) = statements.into_iter().partition(is_sure);
    for (must_match, list) in [(true, sure), (false, unsure)] {
        if list.is_empty() {
            continue;
        }
        let (statements, hosts): (Vec<_>, Vec<_>) = list.into_iter().unzip();
        if !must_match {
            for (kept, value) in &keys {
                if hosts.contains(&turns::hash(host, &key::bytes(value))) {
                    run.shared_later(kept, value.clone());
                }
            }
        }
        run.collect_derived(rules, update(host, statements), must_match, hosts).await?;
    }
    Ok(())
}

fn update(host: &Namespace, statements: Vec<UpdateStatement>) -> WriteOp {
    WriteOp::Update(UpdateOp::of(host.clone(), statements))
}

/// The update with what the same document computes from the changed fields, so that it stays one statement (SEMANTICS R31).
fn with_expressions(update: Update, mut changed: Vec<Path>, local: &Local) -> Update {
    let (mut then, mut stages) = (Vec::new(), Vec::new());
    for kept in &local.hosted {
        let Upkeep::Expression(expression) = &kept.rule.upkeep else { continue };
        let overlaps = |read: &Path| changed.iter().any(|path| path.is_prefix_of(read) || read.is_prefix_of(path));
        if expression.reads.iter().any(overlaps) {
            changed.push(kept.rule.field.clone());
            stages.push(mql::call("$set", mql::object([(&*kept.rule.field.dotted(), expression.source.borrow())])));
            then.push(expression.set.clone());
        }
    }
    if then.is_empty() {
        return update;
    }
    let first: Vec<Value<'static>> = match &update.source {
        Value::Array(stages) => stages.iter().collect(),
        Value::Document(spec) => match spec.get("$inc") {
            Some(Value::Document(counts)) => vec![added(&counts)],
            _ => return update,
        },
        _ => return update,
    };
    let constants = update.constants.clone();
    Update::native(first.into_iter().chain(stages).collect(), constants, Arc::new(Computing { update, then }))
}

/// The same as code.
#[derive(Debug)]
struct Computing {
    update: Update,
    then: Vec<Pipeline>,
}

impl Native for Computing {
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        let mut doc = match self.update.apply(doc, &Details::default(), env)? {
            Applied::Changed(doc) => doc,
            Applied::Unchanged => doc.clone().into_owned(),
        };
        for set in &self.then {
            doc = set.transform(&doc, env)?;
        }
        Ok(doc)
    }
}

/// `{ $inc: { a: 1 } }` as a stage.
fn added(counts: &Doc<'_>) -> Value<'static> {
    let mut set = DocWriter::new();
    for (name, count) in counts.iter() {
        let stored = mql::call_with("$ifNull", [mql::field(name.as_str()), Value::Int32(0)]);
        set.append(name.as_str(), &mql::call_with("$add", [stored, count]));
    }
    mql::call("$set", Value::Document(set.finish()))
}

/// The hosts that seeding has reached.
fn up_to(state: &State) -> Result<Filter> {
    match state {
        State::On | State::Seeding { position: Some(Value::MaxKey) } => Ok(Filter::all()),
        State::Seeding { position: Some(position) } => {
            let condition = mql::call_with("$lt", [Value::from("$_id"), mql::call("$literal", position.borrow())]);
            Filter::parse(&mql::document([("$expr", condition)]), &mut Names::new())
        }
        State::Maintaining | State::Seeding { position: None } | State::Retiring | State::Restoring => {
            Ok(Filter::from_node(Node::Or(Vec::new())))
        }
    }
}
