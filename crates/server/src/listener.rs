//! Accepting connections, one task each, until the server stops.

use crate::client::Client;
use crate::options::Options;
use crate::state::Server;
use crate::{Front, connection};
use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

/// How often forgotten cursors and transactions are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Serves `backend` on `listener` until `shutdown` is ready; then commands that run are finished, and their replies sent.
pub async fn run(
    listener: TcpListener,
    backend: Arc<dyn Front>,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let server = Arc::new(Server::new(backend, options, listener.local_addr()?));
    let (stop, stopping) = watch::channel(false);
    // Every connection holds a sender; when the last is gone, all are done.
    let (alive, mut all_done) = mpsc::channel::<()>(1);
    let mut sweep = tokio::time::interval(SWEEP);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            _ = sweep.tick() => server.sweep(),
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => accept(&server, stream, address, stopping.clone(), alive.clone()),
                Err(error) => {
                    // Out of file descriptors, most likely: clients that wait are served when others leave.
                    if !matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            },
        }
    }
    drop((listener, alive));
    stop.send_replace(true);
    let timeout = server.options.stop_timeout;
    if tokio::time::timeout(timeout, all_done.recv()).await.is_err() {
        tracing::warn!("commands still run after {timeout:?}: stopping them");
        for client in server.clients.lock().values() {
            client.operation.kill();
        }
        let _ = tokio::time::timeout(timeout / 2, all_done.recv()).await;
    }
    Ok(())
}

fn accept(
    server: &Arc<Server>,
    stream: TcpStream,
    address: std::net::SocketAddr,
    stopping: watch::Receiver<bool>,
    alive: mpsc::Sender<()>,
) {
    let mut clients = server.clients.lock();
    if clients.len() >= server.options.max_connections {
        drop(clients);
        tracing::warn!(%address, limit = server.options.max_connections, "too many connections: closing a new one");
        return;
    }
    let client = Arc::new(Client::new(server.next_connection(), address, server.backend.connect()));
    clients.insert(client.id, client.clone());
    drop(clients);
    server.counters.connections_created.add(1);
    let registered = Registered { server: server.clone(), client };
    tokio::spawn(async move {
        let _alive = alive;
        let Registered { server, client } = &registered;
        let _ = stream.set_nodelay(true);
        tracing::debug!(connection = client.id, %address, "connected");
        match connection::serve(server, client, stream, stopping).await {
            Ok(()) => tracing::debug!(connection = client.id, "disconnected"),
            Err(error) => tracing::debug!(connection = client.id, %error, "disconnected"),
        }
    });
}

/// Takes the client off the list when its task ends, whichever way.
struct Registered {
    server: Arc<Server>,
    client: Arc<Client>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.server.clients.lock().remove(&self.client.id);
    }
}
