//! Where the layers are joined: settings become a backend, a listener and a running server.

use crate::args::Serve;
use crate::report::Failure;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
pub(crate) fn patterned(engine: &Arc<engine::Engine>) -> Arc<patterns::Patterned> {
    let patterned = Arc::new(patterns::Patterned::new(engine.clone()));
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
