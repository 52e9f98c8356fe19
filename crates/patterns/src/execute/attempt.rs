//! Runs the plan of a client's write: its own statement and what follows from it, in one transaction.
//!
//! [`Attempt`] is one attempt in one transaction: it executes steps, keeps shared fences for the end (SEMANTICS R1) and passes
//! the gate before each step. What the steps are is decided by [`super::client_statement`] (the client's own),
//! [`super::host_fields`] (the fields of a written host) and [`super::effects`] (what a changed source means for its hosts), in the
//! order of [`super::react`].

use crate::active::{ActiveRule, Rules};
use crate::execute::executor::Executor;
use crate::execute::gate::Point;
use crate::execute::host_queue;
use crate::execute::host_queue::HostHash;
use crate::execute::plan::{Action, Plan, Step};
use crate::execute::{read, roll_up, versioned_write};
use crate::rule::fence::{self, fence_key};
use crate::rule::numbers::translated;
use crate::rule::{Fetch, Field, Lookup, key};
use document::backend::{BatchLimit, FenceKey, FenceVersion, Mode, Session};
use document::error::label;
use document::op::{Capture, Context, Namespace, ReadOp, WriteError, WriteOp, Written};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// How many rows of a derived read are taken at once.
const ROWS: BatchLimit = BatchLimit { documents: 1_000, bytes: 16 << 20 };

/// One attempt in one transaction.
pub(crate) struct Attempt<'a> {
    pub(crate) executor: &'a Executor,
    pub(crate) session: &'a mut Session,
    pub(crate) context: &'a Context,
    pub(crate) rules: Arc<Rules>,
    rules_checked: bool,
    /// Exclusive fences that are held.
    pub(crate) exclusive: HashSet<FenceKey>,
    /// Jobs that were put into the outbox, each once.
    pub(crate) enqueued: HashSet<FenceKey>,
    /// Shared fences that are passed last; with a version, on the condition that they have it.
    pub(crate) later: Vec<(Arc<ActiveRule>, Value<'static>, Option<FenceVersion>)>,
    /// Hosts that were evaluated after the client's write: its deltas are in their values.
    evaluated: HashMap<Vec<u8>, SmallVec<[Arc<ActiveRule>; 1]>>,
    /// Hosts that are to be deleted together with their source …
    pub(crate) doomed: Vec<(Arc<ActiveRule>, Value<'static>)>,
    /// … and documents that were.
    pub(crate) cascaded: crate::execute::changes::Changes,
    /// The hosts that this attempt wrote to and the fences it had to itself, for the next attempt after a conflict.
    pub(crate) touched: Vec<HostHash>,
    /// Where derived statements wrote.
    pub(crate) derived: Vec<Namespace>,
    /// Filled when the steps are to be shown.
    pub(crate) trace: Option<Plan>,
    /// The client's insert, and the first statement that follows from it.
    pub(crate) together: crate::execute::pipelined_statements::Together,
    /// Whether copies that were read lately are as good as read: the plan ends with a flight.
    pub(crate) relies: bool,
    /// Whether the plan may be collected …
    pub(crate) collects: bool,
    /// … and what is, once it has begun.
    pub(crate) collected: Option<crate::execute::collect::Collected>,
    /// Whether hosts are written unseen where stages decide what is made of them, or fail …
    pub(crate) leaves_to_stages: bool,
    /// … and whether something needs an answer in a plan that is collected.
    pub(crate) needs_answer: bool,
    /// Whether what is remembered of stored documents may be relied on.
    pub(crate) guesses: bool,
    /// Of a collection that is stored in another form.
    pub(crate) stored: Option<crate::execute::shaped_statement::StoredWork>,
    /// Statements that are refused with nothing written for them: the others are done.
    pub(crate) refused: Vec<WriteError>,
}

/// Whether a statement that is sent again finds its record where it is written, so that nobody has to look before.
pub(super) fn statement_finds_its_record(executor: &Executor) -> bool {
    executor.inner.facts().runs_our_code
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        executor: &'a Executor,
        session: &'a mut Session,
        context: &'a Context,
        rules: Arc<Rules>,
    ) -> Attempt<'a> {
        Attempt {
            executor,
            session,
            context,
            rules,
            rules_checked: !executor.inner.facts().begins_lazily,
            exclusive: HashSet::new(),
            enqueued: HashSet::new(),
            later: Vec::new(),
            evaluated: HashMap::new(),
            doomed: Vec::new(),
            cascaded: crate::execute::changes::Changes::default(),
            touched: Vec::new(),
            derived: Vec::new(),
            trace: None,
            together: crate::execute::pipelined_statements::Together::default(),
            relies: false,
            collects: false,
            collected: None,
            leaves_to_stages: false,
            needs_answer: false,
            guesses: false,
            stored: None,
            refused: Vec::new(),
        }
    }

    /// The client's own statement.
    pub(crate) async fn write(&mut self, op: &WriteOp, capture: &Capture) -> Result<Written> {
        self.pass(&[], || Action::Write(op.clone())).await?;
        let written = self.write_newest(op, capture).await?;
        self.check_rules()?;
        Ok(self.noted(op, written, capture))
    }

    /// A derived statement: its failure is the plan's, and it has no retry record of its own.
    pub(crate) async fn derive(
        &mut self,
        rules: &[Arc<ActiveRule>],
        op: &WriteOp,
        capture: &Capture,
    ) -> Result<Written> {
        self.pass(rules, || Action::Derive(op.clone())).await?;
        self.note_derived(op);
        if matches!(capture, Capture::Nothing)
            && self.rules.lenses().of(op.ns()).is_none()
            && let Some(written) = self.send_with(op).await?
        {
            return Ok(written);
        }
        self.send().await?;
        self.write_derived(op, capture).await
    }

    pub(crate) fn note_derived(&mut self, op: &WriteOp) {
        if !self.derived.contains(op.ns()) {
            self.derived.push(op.ns().clone());
        }
    }

    pub(crate) async fn write_derived(&mut self, op: &WriteOp, capture: &Capture) -> Result<Written> {
        let retry = self.session.retry.take();
        let written = self.write_newest(op, capture).await;
        self.session.retry = retry;
        let mut written = written?;
        match written.errors.is_empty() {
            true => Ok(self.noted(op, written, capture)),
            false => Err(roll_up::failure(op, translated(written.errors.remove(0).error))),
        }
    }

    async fn write_newest(&mut self, op: &WriteOp, capture: &Capture) -> Result<Written> {
        let (backend, lenses) = (&*self.executor.inner, self.rules.lenses());
        let capture = self.seen(capture);
        versioned_write::write(backend, lenses, self.session, self.context, op, capture).await
    }

    /// What a statement is to show: all of it, where its effects are to be counted.
    fn seen<'c>(&self, capture: &'c Capture) -> &'c Capture {
        if self.trace.is_some() { &Capture::Everything } else { capture }
    }

    /// Counts what a statement changed, if that is to be shown.
    fn noted(&mut self, op: &WriteOp, mut written: Written, capture: &Capture) -> Written {
        if let Some(trace) = &mut self.trace {
            trace.note(op, &written);
            if matches!(capture, Capture::Nothing) {
                written.changes.clear();
            }
        }
        written
    }

    /// How rows are read for fields.
    pub(crate) fn fetch(&self) -> Fetch {
        match self.executor.inner.facts().runs_our_code {
            true => Fetch::Documents,
            false if self.relies => Fetch::Shortest,
            false => Fetch::Rows,
        }
    }

    /// How rows of a field's sources are read.
    pub(crate) fn fetch_of(&self, field: &dyn Field) -> Fetch {
        let is_shaped = field.link().is_some_and(|link| self.rules.shaped(&link.source).is_some());
        if is_shaped && field.lookup() != Lookup::Never { Fetch::Shaped } else { self.fetch() }
    }

    /// All rows of a read.
    pub(crate) async fn read(&mut self, rules: &[Arc<ActiveRule>], op: ReadOp) -> Result<Vec<Doc<'static>>> {
        self.pass(rules, || Action::Read(op.clone())).await?;
        self.send().await?;
        let retry = self.session.retry.take();
        let rows = self.rows(op).await;
        self.session.retry = retry;
        self.check_rules()?;
        rows
    }

    async fn rows(&mut self, op: ReadOp) -> Result<Vec<Doc<'static>>> {
        let mut cursor = match self.rules.shaped(op.ns()) {
            Some(stack) => {
                let (backend, rules) = (&*self.executor.inner, &self.rules);
                read::open(backend, rules, self.session, self.context, &op, stack).await?
            }
            None => {
                let (backend, lenses) = (&*self.executor.inner, self.rules.lenses());
                read::versioned::open(backend, lenses, self.session, self.context, op).await?
            }
        };
        let mut rows = Vec::new();
        loop {
            let batch = cursor.next(self.session, self.context, ROWS).await?;
            rows.extend(batch.documents);
            if batch.exhausted {
                return Ok(rows);
            }
        }
    }

    /// Passes the exclusive fence on (link, value), once.
    pub(crate) async fn exclusive(&mut self, kept: &Arc<ActiveRule>, value: &Value<'_>) -> Result<()> {
        let fence = fence_key(&kept.rule, value);
        if self.exclusive.contains(&fence) {
            return Ok(());
        }
        self.touched.push(host_queue::of_fence(kept, &fence, value));
        kept.recent.forget(&key::bytes(value));
        self.fence(kept, fence.clone(), value, Mode::Exclusive).await?;
        self.exclusive.insert(fence);
        Ok(())
    }

    /// The same for a part of a key's value; a missing part is the whole key. The next attempt waits for the host.
    pub(crate) async fn exclusive_part(
        &mut self,
        kept: &Arc<ActiveRule>,
        key: &Value<'_>,
        about: &Value<'_>,
    ) -> Result<()> {
        if about.is_missing() {
            return self.exclusive(kept, key).await;
        }
        let value = fence::part(key, about);
        let fence = fence_key(&kept.rule, &value);
        if self.exclusive.contains(&fence) {
            return Ok(());
        }
        self.touched.push(host_queue::hash(&kept.rule.host, &key::bytes(key)));
        self.fence(kept, fence.clone(), &value, Mode::Exclusive).await?;
        self.exclusive.insert(fence);
        Ok(())
    }

    /// A change of a key's sources that leaves its host unwritten, or finds none (SEMANTICS R1).
    pub(crate) fn unwritten(&mut self, kept: &Arc<ActiveRule>, key: Value<'static>) {
        self.touched.push(host_queue::hash(&kept.rule.host, &key::bytes(&key)));
        self.shared_later(kept, key);
    }

    /// Notes a shared fence on (link, value): [`Attempt::finish`] passes it.
    pub(crate) fn shared_later(&mut self, kept: &Arc<ActiveRule>, value: Value<'static>) {
        self.later.push((kept.clone(), value, None));
    }

    /// The same, if nobody has passed it exclusively since this version.
    pub(crate) fn shared_at(&mut self, kept: &Arc<ActiveRule>, value: Value<'static>, version: FenceVersion) {
        self.later.push((kept.clone(), value, Some(version)));
    }

    /// Passes the shared fences that were noted: the last steps before the commit.
    pub(crate) async fn finish(&mut self) -> Result<()> {
        let mut passed: HashSet<FenceKey> = HashSet::new();
        for (kept, value, version) in std::mem::take(&mut self.later) {
            let fence = fence_key(&kept.rule, &value);
            if self.exclusive.contains(&fence) || (passed.contains(&fence) && version.is_none()) {
                continue;
            }
            match version {
                Some(version) => self.fence_at(&kept, &fence, &value, version).await?,
                None => self.fence(&kept, fence.clone(), &value, Mode::Shared).await?,
            }
            passed.insert(fence);
        }
        Ok(())
    }

    async fn fence_at(
        &mut self,
        kept: &Arc<ActiveRule>,
        fence: &FenceKey,
        value: &Value<'_>,
        at: FenceVersion,
    ) -> Result<()> {
        let action = || Action::Fence { key: fence.clone(), value: value.clone().into_owned(), mode: Mode::Shared };
        self.pass(std::slice::from_ref(kept), action).await?;
        if let Some(collected) = &mut self.collected {
            collected.relied_on.push((kept.clone(), key::bytes(value)));
        }
        match self.executor.inner.pipelining() {
            Some(pipelining) => pipelining.fence_at(self.session, fence, at).await,
            None => Err(Error::new(Code::InternalError, "a plan that relies on a version cannot be sent")),
        }
    }

    async fn fence(&mut self, kept: &Arc<ActiveRule>, fence: FenceKey, value: &Value<'_>, mode: Mode) -> Result<()> {
        let action = || Action::Fence { key: fence.clone(), value: value.clone().into_owned(), mode };
        self.pass(std::slice::from_ref(kept), action).await?;
        self.send().await?;
        self.executor.inner.fences(self.session, &[(fence, mode)]).await?;
        self.check_rules()
    }

    /// Rules must not be older than the moment of the transaction (SEMANTICS R2). The engine fixes it before they are looked at;
    /// a backend across a network with the first statement.
    pub(crate) fn check_rules(&mut self) -> Result<()> {
        if self.rules_checked {
            return Ok(());
        }
        self.rules_checked = true;
        match self.executor.is_current(&self.rules) {
            true => Ok(()),
            false => Err(Error::new(Code::WriteConflict, "the rules changed meanwhile").with_label(label::TRANSIENT)),
        }
    }

    /// Shows the step to the gate, and asks whether it may run.
    pub(crate) async fn pass(&mut self, rules: &[Arc<ActiveRule>], action: impl FnOnce() -> Action) -> Result<()> {
        let gate = self.executor.gate();
        if gate.is_none() && self.trace.is_none() {
            return Ok(());
        }
        let action = action();
        if let Some(gate) = gate {
            gate.pass(Point::Step { rules, action: &action }).await?;
        }
        if let Some(trace) = &mut self.trace {
            let rules = rules.iter().map(|kept| kept.rule.clone()).collect();
            trace.steps.push(Step { rules, ..Step::from(action) });
        }
        Ok(())
    }

    /// Notes that a host was evaluated from what the client's write left.
    pub(crate) fn note_evaluated(&mut self, kept: &Arc<ActiveRule>, value: &Value<'_>) {
        self.evaluated.entry(key::bytes(value)).or_default().push(kept.clone());
    }

    /// What is changed from now on is in none of their values.
    pub(crate) fn forget_evaluated(&mut self) {
        self.evaluated.clear();
    }

    pub(crate) fn was_evaluated(&self, kept: &Arc<ActiveRule>, value: &Value<'_>) -> bool {
        let by = || self.evaluated.get(&key::bytes(value));
        !self.evaluated.is_empty() && by().is_some_and(|by| by.iter().any(|other| Arc::ptr_eq(other, kept)))
    }
}
