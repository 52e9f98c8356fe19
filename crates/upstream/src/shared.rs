//! What all lines share: how to connect, which server is primary, how late it is.

use crate::leftover::Leftover;
use crate::line::Line;
use crate::login::Connector;
use crate::topology::Topology;
use document::{Doc, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) struct Shared {
    pub(crate) connector: Arc<Connector>,
    pub(crate) topology: Topology,
    pub(crate) time: ClusterTime,
    /// Lines of our own that nobody uses.
    idle: Mutex<Vec<Arc<Line>>>,
    /// The databases whose bookkeeping collections are known to be there.
    pub(crate) prepared: Mutex<hashbrown::HashSet<String>>,
    /// Whether the server restricts its clients.
    pub(crate) access_control: crate::privileges::AccessControl,
    /// The sessions of planned transactions.
    pub(crate) leftover: Leftover,
    closed: AtomicBool,
    /// How many transactions are being aborted after their callers gave them up.
    pub(crate) aborting: tokio::sync::watch::Sender<usize>,
}

/// Idle lines kept open for background work.
const KEPT_LINES: usize = 8;

impl Shared {
    pub(crate) fn new(connector: Arc<Connector>) -> Shared {
        Shared {
            topology: Topology::new(connector.clone()),
            connector,
            time: ClusterTime::default(),
            idle: Mutex::default(),
            prepared: Mutex::default(),
            access_control: crate::privileges::AccessControl::default(),
            leftover: Leftover::default(),
            closed: AtomicBool::new(false),
            aborting: tokio::sync::watch::Sender::new(0),
        }
    }

    /// Idle lines hold this, and this holds them: the knot is undone by hand.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.idle.lock().clear();
    }

    /// A line of our own for a while.
    pub(crate) fn lend(self: &Arc<Self>) -> Lent {
        let idle = self.idle.lock().pop();
        Lent(idle.unwrap_or_else(|| Arc::new(Line::new(self.clone(), false))))
    }
}

/// A line that goes back to the idle ones when it is no longer used.
pub(crate) struct Lent(Arc<Line>);

impl std::ops::Deref for Lent {
    type Target = Line;

    fn deref(&self) -> &Line {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        let mut idle = shared.idle.lock();
        if idle.len() < KEPT_LINES && !shared.closed.load(Ordering::Relaxed) {
            idle.push(self.0.clone());
        }
    }
}

/// The newest `$clusterTime` and `operationTime` of servers' replies.
#[derive(Default)]
pub(crate) struct ClusterTime {
    operation: AtomicU64,
    gossip: Mutex<Option<(u64, Doc<'static>)>>,
}

impl ClusterTime {
    pub(crate) fn note(&self, reply: &Doc<'static>) {
        if let Some(Value::Timestamp(time)) = reply.get("operationTime") {
            self.operation.fetch_max(time, Ordering::Relaxed);
        }
        if let Some(Value::Document(told)) = reply.get("$clusterTime")
            && let Some(Value::Timestamp(time)) = told.get("clusterTime")
        {
            let mut gossip = self.gossip.lock();
            if gossip.as_ref().is_none_or(|(newest, _)| *newest < time) {
                *gossip = Some((time, Doc::trusted(told.as_bytes()).into_owned()));
            }
        }
    }

    pub(crate) fn operation(&self) -> u64 {
        self.operation.load(Ordering::Relaxed)
    }

    pub(crate) fn gossip(&self) -> Option<Doc<'static>> {
        self.gossip.lock().as_ref().map(|(_, told)| told.clone())
    }
}
