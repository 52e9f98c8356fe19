//! Inserts into one collection fly together where the backend is across a network (SEMANTICS R12): while some flights are in
//! the air, what comes meanwhile waits and then shares a transaction: one insert, one update for each host, one commit. Hosts
//! that are in the air are not flown to by another flight. One insert that fails is taken out and the rest fly again.

use crate::execute::attempt::Attempt;
use crate::execute::client_work::ClientWork;
use crate::execute::executor::Executor;
use crate::execute::flying::Flown;
use crate::execute::gate::Point;
use crate::execute::group::{JobOutcome, lost, outcome_of, unsatisfied};
use crate::execute::host_queue::{HostHash, OwnedTurns, Turns};
use crate::execute::retry::RetryWindow;
use crate::execute::run::{Outcome, alone, settle};
use crate::execute::{client_statement, flying};
use document::Result;
use document::backend::{Relay, Session};
use document::op::{Context, Insert, Namespace, WriteOp, Written};
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// So many flights of one collection are in the air, and more where there are more cores: few enough for inserts to meet.
const FEWEST_LANES: usize = 2;
const MOST_LANES: usize = 8;
/// A client that came while all were in the air is expected to come again for so long.
const COMPANY: Duration = Duration::from_millis(100);
/// So many inserts share a flight …
const TOGETHER: usize = 100;
/// … of so many documents and bytes.
const DOCUMENTS: usize = 500;
const BYTES: usize = 4 << 20;

#[derive(Default)]
pub(crate) struct Convoys {
    of: Mutex<HashMap<Namespace, Convoy>>,
}

fn lanes() -> usize {
    static LANES: OnceLock<usize> = OnceLock::new();
    let cores = || std::thread::available_parallelism().map_or(FEWEST_LANES, NonZero::get);
    *LANES.get_or_init(|| cores().clamp(FEWEST_LANES, MOST_LANES))
}

#[derive(Default)]
struct Convoy {
    flying: usize,
    /// When somebody last had to wait.
    waited: Option<Instant>,
    /// The hosts that are flown to.
    held: HashSet<HostHash>,
    waiting: Vec<Job>,
}

/// An insert that waits.
struct Job {
    number: u64,
    op: Insert,
    hosts: Vec<HostHash>,
    id: Option<[u8; 16]>,
    retry: Option<i64>,
    relay: Option<Arc<dyn Relay>>,
    context: Context,
    done: oneshot::Sender<JobOutcome>,
}

impl Job {
    fn bytes(&self) -> usize {
        self.op.documents.iter().map(|doc| doc.as_bytes().len()).sum()
    }

    fn fits(&self, other: &Job) -> bool {
        self.context.sent.write_concern == other.context.sent.write_concern
            && self.op.bypass_validation == other.op.bypass_validation
            && match (&self.relay, &other.relay) {
                (None, None) => true,
                (Some(first), Some(other)) => first.shares_with(&**other),
                _ => false,
            }
    }
}

/// A place in the air; the next flight begins when it is given back.
pub(crate) struct Lane {
    executor: Arc<Executor>,
    ns: Namespace,
    hosts: Vec<HostHash>,
}

impl Drop for Lane {
    fn drop(&mut self) {
        let departing = self.executor.convoys.leave(self);
        let runtime = tokio::runtime::Handle::try_current();
        for (lane, jobs, turns) in departing {
            // A task of its own: no client's end is the others'. Without a runtime the process ends.
            if let Ok(runtime) = &runtime {
                runtime.spawn(depart(lane, jobs, turns));
            }
        }
    }
}

impl Convoys {
    /// Whether others wait, or are soon expected to, until a flight is over.
    pub(crate) fn is_waited_for(&self, ns: &Namespace) -> bool {
        let convoys = self.of.lock();
        let waited = convoys.get(ns).and_then(|convoy| convoy.waited);
        waited.is_some_and(|waited| waited.elapsed() < COMPANY)
    }

    /// Gives a place back, and says which inserts fly next. They are let go when nothing is locked any more.
    fn leave(&self, left: &Lane) -> Vec<(Lane, Vec<Job>, Option<OwnedTurns>)> {
        let mut convoys = self.of.lock();
        let mut departing = Vec::new();
        let Some(convoy) = convoys.get_mut(&left.ns) else { return departing };
        convoy.flying -= 1;
        for host in &left.hosts {
            convoy.held.remove(host);
        }
        while convoy.flying < lanes()
            && let Some((jobs, turns)) = convoy.gather(&left.executor)
        {
            convoy.flying += 1;
            let hosts: Vec<HostHash> = jobs.iter().flat_map(|job| job.hosts.iter().copied()).collect();
            convoy.held.extend(&hosts);
            departing.push((Lane { executor: left.executor.clone(), ns: left.ns.clone(), hosts }, jobs, turns));
        }
        if convoy.flying == 0 && convoy.waiting.is_empty() {
            convoys.remove(&left.ns);
        }
        departing
    }
}

impl Convoy {
    /// The inserts that wait and can fly together now, with the turns on their hosts; no turns if somebody else has them.
    fn gather(&mut self, executor: &Arc<Executor>) -> Option<(Vec<Job>, Option<OwnedTurns>)> {
        let at = self.waiting.iter().position(|job| !job.hosts.iter().any(|host| self.held.contains(host)))?;
        let first = self.waiting.remove(at);
        let Some(turns) = executor.lines.try_take(&first.hosts) else { return Some((vec![first], None)) };
        let mut turns = turns.into_owned();
        let mut taken: HashSet<HostHash> = first.hosts.iter().copied().collect();
        let (mut documents, mut bytes) = (first.op.documents.len(), first.bytes());
        let mut jobs = vec![first];
        let mut rest = Vec::new();
        for job in self.waiting.drain(..) {
            let (more, size) = (job.op.documents.len(), job.bytes());
            let free: Vec<HostHash> = job.hosts.iter().copied().filter(|host| !taken.contains(host)).collect();
            let fits = jobs.len() < TOGETHER
                && documents + more <= DOCUMENTS
                && bytes + size <= BYTES
                && jobs.first().is_some_and(|first| first.fits(&job))
                && !free.iter().any(|host| self.held.contains(host));
            match fits.then(|| executor.lines.try_take(&free)).flatten() {
                Some(more_turns) => {
                    turns.join(more_turns);
                    taken.extend(free);
                    (documents, bytes) = (documents + more, bytes + size);
                    jobs.push(job);
                }
                None => rest.push(job),
            }
        }
        self.waiting = rest;
        Some((jobs, Some(turns)))
    }
}

/// Whether a client's inserts may fly with others': who a client is that authenticated itself is known to the server only.
pub(crate) fn is_open_to(client: &Session) -> bool {
    client.relay.as_ref().is_none_or(|relay| relay.shares_with(&**relay))
}

/// Inserts documents that are added to these hosts: at once if there is room in the air, else together with others.
pub(crate) async fn insert(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &Insert,
    mut hosts: Vec<HostHash>,
) -> Result<Outcome> {
    hosts.sort_unstable();
    hosts.dedup();
    let attempts = RetryWindow::new(context);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let (done, mut reply) = oneshot::channel();
    let lane = {
        let mut convoys = executor.convoys.of.lock();
        let convoy = convoys.entry(op.ns.clone()).or_default();
        match convoy.flying < lanes() && !hosts.iter().any(|host| convoy.held.contains(host)) {
            true => {
                convoy.flying += 1;
                convoy.held.extend(&hosts);
                Some(Lane { executor: executor.clone(), ns: op.ns.clone(), hosts: hosts.clone() })
            }
            false => {
                convoy.waited = Some(Instant::now());
                convoy.waiting.push(Job {
                    number,
                    op: op.clone(),
                    hosts: hosts.clone(),
                    id: client.id,
                    retry: client.retry,
                    relay: client.relay.clone(),
                    context: context.clone(),
                    done,
                });
                None
            }
        }
    };
    if let Some(lane) = lane {
        let turns = attempts.in_time(executor.lines.take(hosts)).await?.with(lane);
        let op = WriteOp::Insert(op.clone());
        return alone(executor, client, context, &ClientWork::of(&op), turns, attempts).await;
    }
    let place = Place { executor, ns: &op.ns, number };
    tokio::select! {
        biased;
        outcome = &mut reply => outcome_of(client, outcome),
        error = attempts.past() => match place.withdraw() {
            true => Err(error),
            false => outcome_of(client, reply.await),
        },
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// The place of a waiting insert, given up with the command.
struct Place<'s> {
    executor: &'s Arc<Executor>,
    ns: &'s Namespace,
    number: u64,
}

impl Place<'_> {
    /// Takes the insert back, if it does not fly yet.
    fn withdraw(&self) -> bool {
        let mut convoys = self.executor.convoys.of.lock();
        let Some(convoy) = convoys.get_mut(self.ns) else { return false };
        let before = convoy.waiting.len();
        convoy.waiting.retain(|job| job.number != self.number);
        convoy.waiting.len() < before
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Flies with these inserts until all are done or have failed.
async fn depart(lane: Lane, mut jobs: Vec<Job>, turns: Option<OwnedTurns>) {
    let executor = &lane.executor.clone();
    let turns = match turns {
        Some(turns) => turns.borrowed(&executor.lines),
        None => executor.lines.take(lane.hosts.clone()).await,
    };
    let mut turns = turns.with(lane);
    let Some(first) = jobs.first() else { return };
    let mut context = Context { deadline: None, ..first.context.clone() };
    context.env.interrupt = Arc::new(|| Ok(()));
    context.sent.unsatisfied = Some(Arc::default());
    let mut attempts = RetryWindow::new(&context);
    let mut apart = Vec::new();
    while !jobs.is_empty() {
        match attempt(executor, &context, &jobs, attempts.made(), &mut turns).await {
            Ok(Flown::Done) => {
                turns.end();
                let error = unsatisfied(&context);
                for job in jobs.drain(..) {
                    let written = Written { n: job.op.documents.len() as u64, ..Written::default() };
                    let _gone = job.done.send((Ok(Outcome::Done(written)), error.clone()));
                }
            }
            Ok(Flown::Again) => {}
            Ok(Flown::Apart(Some(document))) => {
                let at = of_document(&jobs, document);
                apart.push(jobs.remove(at));
            }
            Ok(Flown::Claimed(claim)) => {
                let at = of_claim(&jobs, claim);
                apart.push(jobs.remove(at));
            }
            Ok(Flown::Apart(None)) => apart.append(&mut jobs),
            Err(error) => {
                if let Err(error) = attempts.again(error, &context).await {
                    for job in jobs.drain(..) {
                        let _gone = job.done.send((Err(error.clone()), None));
                    }
                }
            }
        }
    }
    turns.end();
    for job in apart {
        let mut session = Session { id: job.id, retry: job.retry, relay: job.relay, ..Session::default() };
        let op = WriteOp::Insert(job.op);
        let turns = executor.lines.take(job.hosts).await;
        let outcome =
            alone(executor, &mut session, &context, &ClientWork::of(&op), turns, RetryWindow::new(&context)).await;
        let _gone = job.done.send((outcome, unsatisfied(&context)));
    }
}

/// Which insert a document of all of them belongs to.
fn of_document(jobs: &[Job], document: usize) -> usize {
    let mut before = 0;
    let is_there = |job: &Job| {
        before += job.op.documents.len();
        document < before
    };
    jobs.iter().position(is_there).unwrap_or(jobs.len() - 1)
}

/// Which insert a claim is of: only retryable ones have one.
fn of_claim(jobs: &[Job], claim: usize) -> usize {
    let claiming = jobs.iter().enumerate().filter(|(_, job)| job.id.is_some() && job.retry.is_some());
    claiming.map(|(at, _)| at).nth(claim).unwrap_or(jobs.len() - 1)
}

async fn attempt(
    executor: &Arc<Executor>,
    context: &Context,
    jobs: &[Job],
    number: u32,
    turns: &mut Turns<'_>,
) -> Result<Flown> {
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Begin { attempt: number }).await?;
    }
    let Some(first) = jobs.first() else { return Err(lost()) };
    let mut session = Session::on_line(first.relay.clone());
    executor.inner.begin(&mut session, context).await?;
    let mut run = Attempt::new(executor, &mut session, context, executor.rules());
    run.collects = true;
    let op = Insert {
        documents: jobs.iter().flat_map(|job| job.op.documents.iter().cloned()).collect(),
        ordered: true,
        statement_ids: Vec::new(),
        ..first.op.clone()
    };
    let result = match client_statement::execute(&mut run, &ClientWork::of(&WriteOp::Insert(op))).await {
        Ok(written) => run.finish().await.map(|()| written),
        Err(error) => Err(error),
    };
    if run.needs_answer {
        return Ok(Flown::Apart(None));
    }
    // If the rules have changed so that it cannot be collected any more, something was written and is given up.
    let (Outcome::Done(_), Some(collected)) = (settle(result)?, run.collected.take()) else {
        return Ok(Flown::Apart(None));
    };
    let claims: Vec<_> = jobs.iter().filter_map(|job| flying::claim(job.id, job.retry, &job.op)).collect();
    let guarded = claims.len() == jobs.len();
    flying::land(executor, &mut session, context, collected, claims, guarded, turns).await
}
