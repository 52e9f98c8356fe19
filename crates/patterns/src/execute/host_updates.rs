//! The updates that follow from changed sources, one per host whatever its fields are (SEMANTICS R31), and how they are sent.

use crate::active::{ActiveRule, CollectionRules};
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::host_queue::HostHash;
use crate::execute::replaced::originals::keep_matching;
use crate::execute::{host_fields, host_queue, roll_up};
use crate::fields::HostUpdate;
use crate::fields::host_update::with_own_stages;
use crate::mql;
use crate::rule::field::OwnStage;
use crate::rule::{Delta, Field, State, key};
use document::filter::{Filter, Node};
use document::op::{Capture, Change, Namespace, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// What changes in the hosts of one key.
struct KeyUpdate {
    key: Value<'static>,
    update: HostUpdate,
    filter: Filter,
    /// Whether several hosts may have the key.
    multi: bool,
    rules: Vec<Arc<ActiveRule>>,
    asked: Vec<Asked>,
}

/// A shared inquiry whose answer changes the host: the rule, the key, and the part of the value that it was about.
type Asked = (Arc<ActiveRule>, Value<'static>, Value<'static>);

#[derive(Default)]
pub(super) struct HostUpdates {
    /// By host namespace.
    hosts: Vec<(Namespace, Vec<KeyUpdate>)>,
    places: HashMap<(usize, Vec<u8>), usize>,
}

/// The statements of one collection of hosts.
#[derive(Default)]
struct Statements {
    rules: Vec<Arc<ActiveRule>>,
    list: Vec<(UpdateStatement, HostHash)>,
    /// Those that leave a shared fence if their host is not there …
    keys: Vec<(Arc<ActiveRule>, Value<'static>)>,
    /// … and those whose host may be as it should be already.
    unsure: Vec<(Arc<ActiveRule>, Value<'static>)>,
    /// Inquiries that had to change their hosts to be ordered against others like them …
    asked: Vec<Asked>,
    /// … and those whose changes cancel each other out.
    cancelled: Vec<Asked>,
    /// Whether other rules read what is written.
    is_read: bool,
    multi: bool,
    /// Whether hosts may be made …
    makes: bool,
    /// … and those that may have lost their last child.
    left: Vec<Value<'static>>,
}

impl HostUpdates {
    pub(super) fn add(
        &mut self,
        kept: &Arc<ActiveRule>,
        field: &Arc<dyn Field>,
        key: Value<'static>,
        delta: Delta,
    ) -> Result<()> {
        self.add_answer(kept, field, key, delta, Vec::new())
    }

    /// The same for an answer, with what the shared inquiries were about that gave it: where the host then stays as it was, they
    /// pass their fences exclusively. Two of them would otherwise meet nowhere.
    pub(super) fn add_answer(
        &mut self,
        kept: &Arc<ActiveRule>,
        field: &Arc<dyn Field>,
        key: Value<'static>,
        delta: Delta,
        shared: Vec<Value<'static>>,
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
        let mut place = key::bytes(&key);
        if let Some(link) = field.link() {
            place.extend_from_slice(link.local.path.dotted().as_bytes());
        }
        let takes_seeded_only = !kept.is_by_id() && !matches!(kept.state, State::On);
        if takes_seeded_only || !field.merges() {
            // A statement of its own: only hosts that seeding has reached, or what stages cannot say.
            place.extend_from_slice(kept.rule.name.as_bytes());
        }
        let slot = *self.places.entry((at, place)).or_insert_with(|| {
            let filter = field.hosts(&key);
            let (update, multi) = (HostUpdate::new(), !kept.is_by_id());
            list.push(KeyUpdate { key, update, filter, multi, rules: Vec::new(), asked: Vec::new() });
            list.len() - 1
        });
        if let Some(known) = list.get_mut(slot) {
            known.update.add(field, delta)?;
            known.asked.extend(shared.into_iter().map(|about| (kept.clone(), known.key.clone(), about)));
            if !known.rules.iter().any(|other| Arc::ptr_eq(other, kept)) {
                known.rules.push(kept.clone());
            }
        }
        Ok(())
    }

    pub(super) async fn write(self, attempt: &mut Attempt<'_>, changes: &mut Changes) -> Result<()> {
        for (host, list) in self.hosts {
            let (mut own, mut merged) = (Statements::default(), Statements::default());
            for update in list {
                add_statement(attempt, &host, update, &mut own, &mut merged)?;
            }
            merged.write(attempt, &host, changes).await?;
            own.write_own(attempt, &host, changes).await?;
        }
        Ok(())
    }
}

/// Makes a statement of the update of one key: its field's own, or one of all its fields together.
fn add_statement(
    attempt: &mut Attempt<'_>,
    host: &Namespace,
    mut update: KeyUpdate,
    own: &mut Statements,
    merged: &mut Statements,
) -> Result<()> {
    let hash = host_queue::hash(host, &key::bytes(&update.key));
    let is_read = update.rules.iter().any(|kept| kept.is_read_by_others);
    let own_statement = match update.update.single() {
        Some((field, delta)) => field.own_statement(&update.key, delta)?,
        None => None,
    };
    if let Some(statement) = own_statement {
        own.add(&update.rules, statement, hash, is_read);
        return Ok(());
    }
    let changed: Vec<Path> = update.update.fields().map(|field| field.target().path.clone()).collect();
    let is_seeded = update.rules.iter().all(|kept| matches!(kept.state, State::On));
    let (comes, leaves) = update.update.comings();
    if let Some(local) = attempt.rules.of(host).filter(|_| comes) {
        let mut values = roll_up::empty_values(local, &update.rules);
        if is_seeded {
            // A first child may leave the value as it is: a new host has none yet.
            let shown = |field: &Arc<dyn Field>| {
                let state = field.state().cloned();
                field.empty_values().into_iter().filter(move |(path, _)| Some(path) != state.as_ref())
            };
            values.extend(update.update.hidden().flat_map(shown));
        }
        update.update.may_make(values);
    }
    if leaves {
        merged.left.push(update.key.clone());
    }
    let is_sure = update.update.always_writes();
    let made = match is_seeded {
        true => update.update.into_update()?,
        false => update.update.into_update_while_seeding(),
    };
    let Some(mut made) = made else {
        update.asked.iter().for_each(|(kept, key, _)| attempt.unwritten(kept, key.clone()));
        merged.cancelled.extend(update.asked);
        return Ok(());
    };
    if let Some(local) = attempt.rules.of(host).filter(|_| is_read) {
        made = with_own_stages(made, &own_stages(changed, local));
    }
    attempt.touched.push(hash);
    let mut filter = update.filter;
    for kept in &update.rules {
        if update.multi && !matches!(kept.state, State::On) {
            filter = filter.and(up_to(&kept.state)?);
            attempt.shared_later(kept, update.key.clone());
        }
        if kept.field.as_ref().is_some_and(|field| field.fences().unwritten.is_some()) {
            let keys = if is_sure { &mut merged.keys } else { &mut merged.unsure };
            keys.push((kept.clone(), update.key.clone()));
        }
    }
    if !is_sure {
        merged.asked.extend(update.asked);
    }
    let statement = UpdateStatement { filter, update: made, multi: update.multi, upsert: comes, hint: None };
    merged.makes |= comes;
    merged.multi |= update.multi;
    merged.add(&update.rules, statement, hash, is_read);
    Ok(())
}

impl Statements {
    fn add(&mut self, rules: &[Arc<ActiveRule>], statement: UpdateStatement, hash: HostHash, is_read: bool) {
        for kept in rules {
            if !self.rules.iter().any(|other| Arc::ptr_eq(other, kept)) {
                self.rules.push(kept.clone());
            }
        }
        self.is_read |= is_read;
        self.list.push((statement, hash));
    }

    fn filters(&self) -> Vec<Filter> {
        self.list.iter().map(|(statement, _)| statement.filter.clone()).collect()
    }

    fn capture(&self, attempt: &Attempt<'_>, host: &Namespace) -> Capture {
        match attempt.rules.of(host) {
            Some(local) if self.is_read || self.makes && roll_up::is_watched(local) => local.capture.clone(),
            _ => Capture::Nothing,
        }
    }

    /// Those without a host leave a shared fence, against its creation meanwhile; those whose host stays as it was, against an
    /// evaluation (SEMANTICS R1): a statement that changes nothing is no write.
    async fn write(self, attempt: &mut Attempt<'_>, host: &Namespace, changes: &mut Changes) -> Result<()> {
        for (kept, key, about) in &self.cancelled {
            attempt.exclusive_part(kept, key, about).await?;
        }
        if self.list.is_empty() {
            return Ok(());
        }
        if attempt.is_collecting() {
            return self.collect(attempt, host).await;
        }
        keep_matching(attempt, host, &self.filters()).await?;
        let expected = u64::try_from(self.list.len()).unwrap_or(u64::MAX);
        let capture = self.capture(attempt, host);
        let op = update(host, self.list.into_iter().map(|(statement, _)| statement).collect());
        let written = attempt.derive(&self.rules, &op, &capture).await?;
        let upserted = u64::try_from(written.upserted.len()).unwrap_or(u64::MAX);
        let changed = written.modified.saturating_add(upserted);
        // Which of several did not match, or stays as it was, is not told: a fence too many is at worst a retry.
        let keys = if written.n < expected || self.multi { self.keys } else { Vec::new() };
        let unsure = if changed < expected || self.multi { self.unsure } else { Vec::new() };
        for (kept, value) in keys.into_iter().chain(unsure) {
            attempt.shared_later(&kept, value);
        }
        if changed < written.n {
            for (kept, key, about) in &self.asked {
                attempt.exclusive_part(kept, key, about).await?;
            }
        }
        if self.makes {
            let made: Vec<Change> = written.changes.iter().filter(|change| change.before.is_none()).cloned().collect();
            changes.derived_or_made(host, written.changes);
            host_fields::fill_made(attempt, host, &made, changes).await?;
        } else {
            changes.derived(host, written.changes);
        }
        roll_up::remove_empty(attempt, host, &self.rules, self.left, changes).await
    }

    /// Statements of one field each, whose hosts are known to be there: nobody needs the answer unless another rule reads it.
    async fn write_own(self, attempt: &mut Attempt<'_>, host: &Namespace, changes: &mut Changes) -> Result<()> {
        if self.list.is_empty() {
            return Ok(());
        }
        keep_matching(attempt, host, &self.filters()).await?;
        let capture = self.capture(attempt, host);
        let op = update(host, self.list.into_iter().map(|(statement, _)| statement).collect());
        if matches!(capture, Capture::Nothing) {
            return attempt.derive_last(&self.rules, op).await;
        }
        let written = attempt.derive(&self.rules, &op, &capture).await?;
        changes.derived(host, written.changes);
        Ok(())
    }

    /// The same as [`Statements::write`] without an answer: a host that is thought to be there must be; any other update has a
    /// fence with it.
    async fn collect(self, attempt: &mut Attempt<'_>, host: &Namespace) -> Result<()> {
        for (kept, value) in &self.unsure {
            attempt.shared_later(kept, value.clone());
        }
        let missing_hosts = &attempt.executor.missing_hosts;
        let is_sure =
            |(statement, hash): &(UpdateStatement, HostHash)| !statement.multi && !missing_hosts.contains(*hash);
        let (sure, unsure): (Vec<_>, Vec<_>) = self.list.into_iter().partition(is_sure);
        for (must_match, list) in [(true, sure), (false, unsure)] {
            if list.is_empty() {
                continue;
            }
            let (statements, hosts): (Vec<_>, Vec<_>) = list.into_iter().unzip();
            if !must_match {
                for (kept, value) in &self.keys {
                    if hosts.contains(&host_queue::hash(host, &key::bytes(value))) {
                        attempt.shared_later(kept, value.clone());
                    }
                }
            }
            attempt.collect_derived(&self.rules, update(host, statements), must_match, hosts).await?;
        }
        Ok(())
    }
}

fn update(host: &Namespace, statements: Vec<UpdateStatement>) -> WriteOp {
    WriteOp::Update(UpdateOp::of(host.clone(), statements))
}

/// What the same host computes from the changed fields, in order.
fn own_stages(mut changed: Vec<Path>, local: &CollectionRules) -> Vec<&OwnStage> {
    let mut stages = Vec::new();
    for field in local.hosted.iter().filter_map(|kept| kept.field.as_ref()) {
        let Some(own) = field.own_stage() else { continue };
        let overlaps = |read: &Path| changed.iter().any(|path| path.is_prefix_of(read) || read.is_prefix_of(path));
        if field.reads().host.iter().any(overlaps) {
            changed.push(field.target().path.clone());
            stages.push(own);
        }
    }
    stages
}

/// The hosts that seeding has reached.
fn up_to(state: &State) -> Result<Filter> {
    match state {
        State::On | State::Seeding { position: Some(Value::MaxKey) } => Ok(Filter::all()),
        State::Seeding { position: Some(position) } => {
            let condition = mql::call_with("$lt", [Value::from("$_id"), mql::call("$literal", position.borrow())]);
            Filter::parse(&mql::document([("$expr", condition)]), &mut Names::new())
        }
        State::Maintaining
        | State::Gathering { .. }
        | State::Seeding { position: None }
        | State::Retiring
        | State::Restoring => Ok(Filter::from_node(Node::Or(Vec::new()))),
    }
}
