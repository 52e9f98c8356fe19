//! What `pleach lab` does beside measuring: opens the data to read, makes scratch stores and takes them away, prints.

mod calibrate;
mod in_force;
mod mix;
mod run;
mod scratch;
mod source;
mod text;
mod verify;

pub(crate) use run::{Asked, run};
pub(crate) use text::history;
pub(crate) use verify::verify;

use crate::compose;
use crate::report::Failure;
use document::backend::Front;
use lab::line::Line;
use std::sync::Arc;
use tokio::sync::oneshot;
use upstream::{Upstream, Uri};

/// A server of this process on a port of its own, for lines to what is open here.
struct Loopback {
    /// Kept: lines go through it.
    client: Upstream,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Loopback {
    /// `credentials` are those of the server behind, which the front passes on.
    async fn serve(front: Arc<dyn Front>, credentials: Option<upstream::Credentials>) -> Result<Loopback, Failure> {
        let cannot = |error: std::io::Error| Failure::new(format!("cannot listen on the loopback address: {error}"));
        let listener = compose::listen(std::net::Ipv4Addr::LOCALHOST.into(), 0)?;
        let address = listener.local_addr().map_err(cannot)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let options = server::Options::default();
            let _ended = server::run(listener, front, options, async move {
                let _dropped = stopped.await;
            })
            .await;
        });
        let uri = compose::connection_string(&format!("mongodb://{address}"))?;
        let client = Upstream::open(Uri { credentials, standalone: true, ..uri }).await?;
        Ok(Loopback { client, stop: Some(stop), task })
    }

    fn line(&self) -> Line {
        self.client.line()
    }

    async fn end(mut self) {
        let Loopback { client, stop, task } = &mut self;
        let _ = client;
        drop(stop.take());
        let _ended = tokio::time::timeout(std::time::Duration::from_secs(5), task).await;
    }
}
