//! One connected client: who it is, what it is doing, and how that is stopped.

use document::backend::{Front, Relay, Restorer, Restoring};
use document::traffic::Examined;
use document::{Code, Doc, Error, Result, Value};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The name that MongoDB's own tool gives itself.
const RESTORES: &str = "mongorestore";

/// The name that Pleach's own client gives itself as a driver.
const OWN: &str = "pleach";

/// Whether a tool of Pleach says this about itself. What its verbs read is not a part of what applications do.
fn is_own(metadata: &Doc<'_>) -> bool {
    let Some(Value::Document(driver)) = metadata.get("driver") else { return false };
    driver.get("name").is_some_and(|name| name.as_str() == Some(OWN))
}

/// The application's name in what a client says about itself.
pub(crate) fn application(metadata: &Doc<'_>) -> Option<String> {
    let Some(Value::Document(application)) = metadata.get("application") else { return None };
    application.get("name")?.as_str().map(str::to_owned)
}

pub(crate) struct Client {
    pub(crate) id: i32,
    pub(crate) address: SocketAddr,
    /// What the client said about itself in its first hello.
    pub(crate) metadata: Mutex<Option<Doc<'static>>>,
    pub(crate) operation: Arc<Operation>,
    /// The client's own line to a real MongoDB, if there is one behind.
    pub(crate) relay: Option<Arc<dyn Relay>>,
    /// What the backend knows it by, if it restores a dump.
    restorer: OnceLock<Restorer>,
    is_tool: AtomicBool,
    /// What the command that is running looks at in the store.
    pub(crate) examined: Arc<Examined>,
    /// What long work asks now and then; made once, so that a command allocates nothing for it.
    pub(crate) interrupt: Arc<dyn Fn() -> Result<()> + Send + Sync>,
}

impl Client {
    pub(crate) fn new(id: i32, address: SocketAddr, relay: Option<Arc<dyn Relay>>) -> Client {
        let operation = Arc::new(Operation::new());
        let asked = operation.clone();
        let (metadata, restorer) = (Mutex::new(None), OnceLock::new());
        Client {
            id,
            address,
            metadata,
            operation,
            relay,
            restorer,
            is_tool: AtomicBool::new(false),
            examined: Arc::default(),
            interrupt: Arc::new(move || asked.check()),
        }
    }

    /// Keeps what the client says about itself; only the first time counts.
    pub(crate) fn introduce(&self, metadata: Doc<'_>, backend: &dyn Front) {
        let mut known = self.metadata.lock();
        if known.is_some() {
            return;
        }
        if application(&metadata).as_deref() == Some(RESTORES)
            && let Some(restorer) = backend.restoring(Restoring::Connects)
        {
            let _first = self.restorer.set(restorer);
        }
        self.is_tool.store(is_own(&metadata), Ordering::Relaxed);
        *known = Some(metadata.into_owned());
    }

    /// Whether it is a tool of Pleach: what it does is not counted.
    pub(crate) fn is_tool(&self) -> bool {
        self.is_tool.load(Ordering::Relaxed)
    }

    /// What the backend knows it by, if it has introduced itself as a tool that restores dumps.
    pub(crate) fn restorer(&self) -> Option<&Restorer> {
        self.restorer.get()
    }
}

/// What a connection is doing now. Others may read it (`currentOp`) and stop it (`killOp`).
pub(crate) struct Operation {
    born: Instant,
    /// 0 when idle.
    id: AtomicI32,
    killed: AtomicBool,
    /// Nanoseconds after `born`; 0 for none.
    deadline: AtomicU64,
    lifetime: AtomicU64,
    started: AtomicU64,
    what: Mutex<CurrentCommand>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentCommand {
    pub(crate) command: &'static str,
    pub(crate) namespace: String,
    pub(crate) session: Option<[u8; 16]>,
}

impl Operation {
    fn new() -> Operation {
        Operation {
            born: Instant::now(),
            id: AtomicI32::new(0),
            killed: AtomicBool::new(false),
            deadline: AtomicU64::new(0),
            lifetime: AtomicU64::new(0),
            started: AtomicU64::new(0),
            what: Mutex::default(),
        }
    }

    pub(crate) fn start(&self, id: i32, command: &'static str, db: &str, collection: &str, session: Option<[u8; 16]>) {
        self.killed.store(false, Ordering::Relaxed);
        self.deadline.store(0, Ordering::Relaxed);
        self.lifetime.store(0, Ordering::Relaxed);
        self.started.store(self.after_birth(Instant::now()), Ordering::Relaxed);
        let mut what = self.what.lock();
        what.command = command;
        what.session = session;
        what.namespace.clear();
        what.namespace.push_str(db);
        if !collection.is_empty() {
            what.namespace.push('.');
            what.namespace.push_str(collection);
        }
        drop(what);
        self.id.store(id, Ordering::Release);
    }

    pub(crate) fn finish(&self) {
        self.id.store(0, Ordering::Release);
    }

    /// The end of `maxTimeMS`.
    pub(crate) fn set_deadline(&self, deadline: Instant) {
        self.deadline.store(self.after_birth(deadline), Ordering::Relaxed);
    }

    /// The end of the transaction that the command runs in.
    pub(crate) fn set_transaction_end(&self, end: Instant) {
        self.lifetime.store(self.after_birth(end), Ordering::Relaxed);
    }

    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::Relaxed);
    }

    /// Its id, what it does and for how long; `None` when idle.
    pub(crate) fn running(&self) -> Option<(i32, CurrentCommand, Duration)> {
        let id = self.id.load(Ordering::Acquire);
        let elapsed = self.after_birth(Instant::now()).saturating_sub(self.started.load(Ordering::Relaxed));
        (id != 0).then(|| (id, self.what.lock().clone(), Duration::from_nanos(elapsed)))
    }

    pub(crate) fn id(&self) -> i32 {
        self.id.load(Ordering::Acquire)
    }

    /// Whether a command of one of these sessions runs.
    pub(crate) fn is_of(&self, sessions: &[[u8; 16]]) -> bool {
        self.id() != 0 && self.what.lock().session.is_some_and(|session| sessions.contains(&session))
    }

    fn check(&self) -> Result<()> {
        if self.killed.load(Ordering::Relaxed) {
            return Err(Error::new(Code::Interrupted, "operation was interrupted"));
        }
        let (deadline, lifetime) = (self.deadline.load(Ordering::Relaxed), self.lifetime.load(Ordering::Relaxed));
        if deadline == 0 && lifetime == 0 {
            return Ok(());
        }
        let now = self.after_birth(Instant::now());
        if deadline != 0 && now > deadline {
            return Err(Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit"));
        }
        if lifetime != 0 && now > lifetime {
            return Err(Error::new(
                Code::TransactionExceededLifetimeLimitSeconds,
                "operation was interrupted because the transaction exceeded the configured 'transactionLifetimeLimitSeconds'",
            ));
        }
        Ok(())
    }

    fn after_birth(&self, instant: Instant) -> u64 {
        let elapsed = instant.saturating_duration_since(self.born);
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}
