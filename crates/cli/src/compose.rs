//! Where the layers are joined: settings become a backend, a listener and a running server.

use crate::args::Serve;
use crate::report::Failure;
use document::Env;
use document::op::{Context, Durability, ReadConcern};
use engine::Engine;
use patterns::Patterned;
use patterns::life::Life;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The data folder of one run. A temporary one is removed when this is dropped.
pub(crate) struct DataFolder {
    pub(crate) path: PathBuf,
    pub(crate) temporary: bool,
}

impl DataFolder {
    pub(crate) fn of(serve: &Serve) -> Result<DataFolder, Failure> {
        match &serve.data {
            Some(path) => {
                make(path)?;
                Ok(DataFolder { path: path.clone(), temporary: false })
            }
            None => {
                let path = std::env::temp_dir().join(format!("pleach-{}", std::process::id()));
                make(&path)?;
                Ok(DataFolder { path, temporary: true })
            }
        }
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.temporary {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn make(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| {
        Failure::new(format!("cannot make the data folder {}: {error}", path.display()))
            .hint("give a folder that you may write to with --data DIR")
    })
}

/// The engine with the layer that keeps rules true around it; what expires goes through the layer too.
pub(crate) fn patterned(engine: &Arc<Engine>) -> Arc<Patterned> {
    let patterned = Arc::new(Patterned::new(engine.clone()));
    let layer: Arc<dyn document::backend::Backend> = patterned.clone();
    engine.expire_through(Arc::downgrade(&layer));
    patterned
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

/// The pattern layer around a backend, and the life of its rules.
pub(crate) struct Patterns {
    pub(crate) backend: Arc<Patterned>,
    pub(crate) life: Arc<Life>,
    engine: Option<Engine>,
    /// How long a primary is waited for.
    patience: Duration,
}

/// How often it is looked whether there is a primary again.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Patterns {
    pub(crate) fn embedded(engine: Engine) -> Patterns {
        let backend = patterned(&Arc::new(engine.clone()));
        let life = Life::new(&backend, Arc::new(surroundings));
        Patterns { backend, life, engine: Some(engine), patience: Duration::ZERO }
    }

    /// An embedded store that no server has open, for one verb.
    pub(crate) fn folder(path: &Path) -> document::Result<Patterns> {
        Ok(Patterns::embedded(Engine::open(path, engine::Options::default())?))
    }

    /// In front of a real MongoDB; who only looks takes a standalone server too.
    pub(crate) async fn upstream(uri: &str, only_look: bool) -> Result<Patterns, Failure> {
        let uri = upstream::Uri { standalone: only_look, ..connection_string(uri)? };
        let patience = uri.selection_timeout;
        let upstream = upstream::Upstream::open(uri).await?;
        let backend = Arc::new(Patterned::new(Arc::new(upstream)));
        let life = Life::new(&backend, Arc::new(surroundings));
        Ok(Patterns { backend, life, engine: None, patience })
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

    /// Ends background work and the store; what was done is saved.
    pub(crate) async fn close(&self) {
        self.life.close().await;
        if let Some(engine) = &self.engine {
            engine.close();
        }
    }
}

/// Reads a connection string; what is odd in it is logged, what is wrong refused.
pub(crate) fn connection_string(text: &str) -> Result<upstream::Uri, Failure> {
    let uri = upstream::Uri::parse(text)
        .map_err(|error| Failure::new(format!("the connection string is not usable: {error}")).hint(error.hint()))?;
    for warning in &uri.warnings {
        tracing::warn!("in the connection string: {warning}");
    }
    Ok(uri)
}

/// What an operation of our own carries.
pub(crate) fn surroundings() -> Context {
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
        },
        read_concern: ReadConcern::default(),
        durability: Durability::default(),
        deadline: None,
        sent: document::op::Sent::default(),
    }
}
