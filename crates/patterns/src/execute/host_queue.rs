//! Turns on hot hosts (SEMANTICS R12): writers of the same host wait in line, outside any transaction, instead of running
//! into conflicts. A turn ends when the writes are visible, before they are synced.

use crate::active::ActiveRule;
use crate::execute::convoy::Lane;
use crate::execute::group::Job;
use crate::rule::key;
use document::Value;
use document::backend::FenceKey;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;

/// A host as the line sees it: a hash; two hosts that share one only wait for each other.
pub(crate) type HostHash = u64;

pub(crate) fn hash(host: &document::op::Namespace, key: &[u8]) -> HostHash {
    let seed = xxhash_rust::xxh3::xxh3_64_with_seed(host.collection.as_bytes(), host.db.len() as u64);
    xxhash_rust::xxh3::xxh3_64_with_seed(key, seed)
}

/// What an attempt waits for that passes the exclusive fence on (link, value): for a count the host itself, for a copy its source.
pub(crate) fn of_fence(kept: &ActiveRule, fence: &FenceKey, value: &Value<'_>) -> HostHash {
    match kept.field.as_ref().is_some_and(|field| field.fences().change.is_none()) {
        true => hash(&kept.rule.host, &key::bytes(value)),
        false => hash(&kept.rule.host, &fence.key),
    }
}

/// The hosts that somebody writes to or waits for.
#[derive(Default)]
pub(crate) struct Lines {
    lines: Mutex<HashMap<HostHash, Arc<Line>>>,
}

/// The writers that wait for one host.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    /// Inserts that whoever has the turn may take along.
    pub(crate) waiting: Mutex<Vec<Job>>,
}

impl Lines {
    pub(crate) fn line(&self, host: HostHash) -> Arc<Line> {
        self.lines.lock().entry(host).or_default().clone()
    }

    /// Forgets a line that nobody else stands in.
    pub(crate) fn leave(&self, host: HostHash, line: Arc<Line>) {
        let mut lines = self.lines.lock();
        drop(line);
        if lines.get(&host).is_some_and(|line| Arc::strong_count(line) == 1 && Arc::strong_count(&line.turn) == 1) {
            lines.remove(&host);
        }
    }

    /// Waits until nobody has the turn on any of these: shared fences make way for exclusive ones.
    pub(crate) async fn make_way(&self, hosts: Vec<HostHash>) {
        for host in hosts {
            let line = self.lines.lock().get(&host).cloned();
            if let Some(line) = line {
                drop(line.turn.lock().await);
                self.leave(host, line);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.lock().is_empty()
    }

    /// The turn on all of some hosts, if nobody else has one of them.
    pub(crate) fn try_take(&self, hosts: &[HostHash]) -> Option<Turns<'_>> {
        let mut turns = Turns { lines: self, held: Vec::with_capacity(hosts.len()), lane: None };
        for host in hosts {
            let line = self.line(*host);
            match line.turn.clone().try_lock_owned() {
                Ok(turn) => turns.held.push((*host, line, turn)),
                Err(_) => {
                    self.leave(*host, line);
                    return None;
                }
            }
        }
        Some(turns)
    }

    /// Waits for the turn on all of some hosts; always in the same order, so that nobody waits in a circle.
    pub(crate) async fn take(&self, mut hosts: Vec<HostHash>) -> Turns<'_> {
        hosts.sort_unstable();
        hosts.dedup();
        let mut turns = Turns { lines: self, held: Vec::with_capacity(hosts.len()), lane: None };
        for host in hosts {
            let line = self.line(host);
            let turn = line.turn.clone().lock_owned().await;
            turns.held.push((host, line, turn));
        }
        turns
    }
}

/// Turns that are held.
pub(crate) struct Turns<'l> {
    lines: &'l Lines,
    held: Vec<(HostHash, Arc<Line>, OwnedMutexGuard<()>)>,
    /// The place in the air of an insert that flies.
    lane: Option<Lane>,
}

/// Turns that outlive the work that took them.
pub(crate) struct OwnedTurns(Vec<(HostHash, Arc<Line>, OwnedMutexGuard<()>)>);

impl OwnedTurns {
    pub(crate) fn join(&mut self, more: Turns<'_>) {
        self.0.extend(more.into_owned().0);
    }

    pub(crate) fn borrowed(self, lines: &Lines) -> Turns<'_> {
        Turns { lines, held: self.0, lane: None }
    }
}

impl<'l> Turns<'l> {
    pub(crate) fn none(lines: &'l Lines) -> Turns<'l> {
        Turns { lines, held: Vec::new(), lane: None }
    }

    pub(crate) fn of(lines: &'l Lines, host: HostHash, line: Arc<Line>, turn: OwnedMutexGuard<()>) -> Turns<'l> {
        Turns { lines, held: vec![(host, line, turn)], lane: None }
    }

    pub(crate) fn into_owned(mut self) -> OwnedTurns {
        OwnedTurns(std::mem::take(&mut self.held))
    }

    /// The lane is given back with the turns.
    pub(crate) fn with(mut self, lane: Lane) -> Turns<'l> {
        self.lane = Some(lane);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn end(&mut self) {
        for (host, line, turn) in self.held.drain(..) {
            drop(turn);
            self.lines.leave(host, line);
        }
        self.lane = None;
    }
}

impl Drop for Turns<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
