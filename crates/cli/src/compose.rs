//! Where the layers are joined: settings become a backend, a listener and a running server.

use crate::report::{self, Code, Failure};
use document::Env;
use document::backend::Backend;
use document::op::{Context, Durability, ReadConcern};
use engine::Engine;
use patterns::life::Life;
use patterns::{ClientFront, Patterned};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The data folder of one run. A temporary one is removed when this is dropped.
pub(crate) struct DataFolder {
    pub(crate) path: PathBuf,
    temporary: Option<tempfile::TempDir>,
}

impl DataFolder {
    /// The folder at that path, or a temporary one.
    pub(crate) fn of(path: Option<&Path>) -> Result<DataFolder, Failure> {
        match path {
            Some(path) => Ok(DataFolder { path: path.to_owned(), temporary: None }),
            None => {
                // A name that nobody can guess: whoever makes a folder of that name before would own the data.
                let temporary = tempfile::Builder::new().prefix("pleach-").tempdir().map_err(|error| {
                    Failure::new(format!("cannot make a temporary data folder: {error}"))
                        .hint("give a folder that you may write to with --data DIR")
                })?;
                Ok(DataFolder { path: temporary.path().to_owned(), temporary: Some(temporary) })
            }
        }
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }
}

/// Binds the listener; loopback only, since anyone who reaches the port may do anything.
pub(crate) fn listen(bind: IpAddr, port: u16) -> Result<std::net::TcpListener, Failure> {
    if !bind.is_loopback() {
        return Err(Failure::new(format!(
            "{bind} is not a loopback address: Pleach has no authentication yet, so it does not listen where others can reach it"
        ))
        .hint("use --bind 127.0.0.1, and a tunnel (such as ssh -L) to reach it from elsewhere"));
    }
    let address = SocketAddr::new(bind, port);
    let taken = |error: std::io::Error| {
        let failure = Failure::new(format!("cannot listen on {address}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => failure.hint(format!(
                "port {port} is taken, perhaps by a MongoDB or another Pleach; choose one with --port, or --port 0 for any free one"
            )),
            std::io::ErrorKind::PermissionDenied => failure.hint("ports below 1024 need a right of their own; choose another with --port"),
            _ => failure,
        }
    };
    let domain = if bind.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None).map_err(taken)?;
    // A restart must not wait for old connections to time out; the queue takes a burst of new ones.
    socket.set_reuse_address(true).map_err(taken)?;
    socket.bind(&address.into()).map_err(taken)?;
    socket.listen(4096).map_err(taken)?;
    socket.set_nonblocking(true).map_err(taken)?;
    Ok(socket.into())
}

/// The pattern layer around a backend, the life of its rules, and what clients meet of both.
pub(crate) struct Patterns {
    pub(crate) front: Arc<ClientFront>,
    pub(crate) life: Arc<Life>,
    engine: Option<Engine>,
    /// How long a primary is waited for.
    patience: Duration,
}

/// How long commands that still run may hold on to a store that is to be opened anew.
const RELEASED_WITHIN: Duration = Duration::from_secs(60);

/// How often it is looked whether there is a primary, or room, again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

fn joined(backend: Arc<dyn Backend>) -> (Arc<ClientFront>, Arc<Life>) {
    let life = Life::new(&Patterned::new(backend), Arc::new(new_context));
    (Arc::new(ClientFront::new(life.clone())), life)
}

impl Patterns {
    /// On the engine; what expires there goes through the front too.
    pub(crate) fn embedded(engine: Engine) -> Patterns {
        let (front, life) = joined(Arc::new(engine.clone()));
        let expires: Arc<dyn Backend> = front.clone();
        engine.expire_through(Arc::downgrade(&expires));
        Patterns { front, life, engine: Some(engine), patience: Duration::ZERO }
    }

    /// On the engine, only to be read: nothing expires.
    pub(crate) fn only_read(engine: Engine) -> Patterns {
        let (front, life) = joined(Arc::new(engine.clone()));
        Patterns { front, life, engine: Some(engine), patience: Duration::ZERO }
    }

    /// On the engine of a scratch store; a meter counts what is written beneath the rules.
    pub(crate) fn metered(engine: Engine, meter: Arc<lab::meter::Meter>) -> Patterns {
        let inner = Arc::new(engine.clone());
        let (front, life) = joined(Arc::new(lab::meter::Metered { inner, meter }));
        Patterns { front, life, engine: Some(engine), patience: Duration::ZERO }
    }

    /// The same on a real MongoDB.
    pub(crate) fn metered_upstream(upstream: Arc<upstream::Upstream>, meter: Arc<lab::meter::Meter>) -> Patterns {
        let patience = upstream.uri().selection_timeout;
        let (front, life) = joined(Arc::new(lab::meter::Metered { inner: upstream, meter }));
        Patterns { front, life, engine: None, patience }
    }

    /// An embedded store that no server has open, for one verb.
    pub(crate) fn folder(path: &Path) -> document::Result<Patterns> {
        Ok(Patterns::embedded(Engine::open(path, engine::Options::default())?))
    }

    /// In front of a real MongoDB; verbs that only read take a standalone server too.
    pub(crate) async fn upstream(uri: upstream::Uri, only_look: bool) -> Result<Patterns, Failure> {
        let uri = upstream::Uri { standalone: only_look, ..uri };
        let patience = uri.selection_timeout;
        let upstream = connect(uri).await?;
        if upstream.is_pleach() {
            return Err(Failure::of(Code::Word("target"), format!("{} is a Pleach, not a MongoDB", upstream.uri()))
                .hint("name the MongoDB behind it with --upstream; verbs ask a running Pleach with --server"));
        }
        let (front, life) = joined(Arc::new(upstream));
        Ok(Patterns { front, life, engine: None, patience })
    }

    /// Does what needs a primary. One that steps down meanwhile is no failure: the next one is waited for, as long as
    /// connecting may take.
    pub(crate) async fn patiently<T>(&self, step: impl AsyncFn() -> document::Result<T>) -> document::Result<T> {
        let end = Instant::now() + self.patience;
        let mut told = false;
        loop {
            match step().await {
                Err(error) if upstream::is_failover(&error) && Instant::now() < end => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(%error, "the primary has gone: waiting for the next one");
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
                other => return other,
            }
        }
    }

    /// Ready when the store had to stop and could go on: see [`Engine::wants_reopening`].
    pub(crate) async fn wants_reopening(&self) {
        match &self.engine {
            Some(engine) => {
                let mut stopped = None;
                loop {
                    if engine.has_stopped() {
                        let since = *stopped.get_or_insert_with(Instant::now);
                        if engine.wants_reopening(since.elapsed()) {
                            return;
                        }
                    }
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
            None => std::future::pending().await,
        }
    }

    /// Closes, and waits until nothing has the store open any more.
    pub(crate) async fn release(self) -> Result<(), Failure> {
        self.close().await;
        let Some(is_released) = self.engine.as_ref().map(Engine::release_watch) else { return Ok(()) };
        drop(self);
        let end = Instant::now() + RELEASED_WITHIN;
        while !is_released() {
            if Instant::now() > end {
                return Err(Failure::new("the store stopped on a full disk and could not be closed")
                    .hint("start the server again"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends background work and the store; what was done is saved.
    pub(crate) async fn close(&self) {
        self.life.close().await;
        if let Some(engine) = &self.engine {
            engine.close();
        }
    }
}

/// How long nothing is said about a server that does not answer.
const SAY_NOTHING: Duration = Duration::from_secs(1);

/// Connects; if that takes long, says what is waited for.
pub(crate) async fn connect(uri: upstream::Uri) -> Result<upstream::Upstream, Failure> {
    let waiting = format!(
        "waiting for {uri} to answer, at most {} s (serverSelectionTimeoutMS in the connection string says how long)",
        uri.first_timeout.as_secs_f32()
    );
    let mut opening = std::pin::pin!(upstream::Upstream::open(uri));
    let opened = match tokio::time::timeout(SAY_NOTHING, &mut opening).await {
        Ok(opened) => opened,
        Err(_) => {
            report::note(&waiting);
            opening.await
        }
    };
    Ok(opened?)
}

/// Reads a connection string; what is odd in it is logged, what is wrong refused.
pub(crate) fn connection_string(text: &str) -> Result<upstream::Uri, Failure> {
    let uri = upstream::Uri::parse(text).map_err(|error| {
        let message = format!("the connection string is not usable: {error}");
        Failure::of(Code::Word("target"), message).hint(error.hint())
    })?;
    for warning in &uri.warnings {
        report::note(&format!("warning: in the connection string, {warning}"));
    }
    Ok(uri)
}

/// What an operation of our own carries.
pub(crate) fn new_context() -> Context {
    Context {
        env: Env {
            now: server::identity::milliseconds(),
            cluster_time: 0,
            new_id: server::identity::object_id,
            random: server::identity::fraction,
            variables: Vec::new(),
            interrupt: Arc::new(|| Ok(())),
            memory_limit: 100 << 20,
            spill: None,
            examined: None,
        },
        read_concern: ReadConcern::default(),
        durability: Durability::default(),
        deadline: None,
        sent: document::op::Sent::default(),
    }
}
