//! The data that is asked about, opened only to read: nothing is begun in the background there, and nothing expires.

use super::Loopback;
use crate::compose::{self, Patterns};
use crate::options::TargetOptions;
use crate::report::{Code, Failure};
use crate::target;
use lab::line::Line;
use std::path::Path;
use std::sync::Arc;
use upstream::{Upstream, Uri};

pub(super) struct Opened {
    pub(super) line: Line,
    /// Where statistics are those of what is stored.
    pub(super) stored: Line,
    /// Whether it is a real MongoDB, whose indexes and files are unlike those of the embedded store.
    pub(super) is_mongodb: bool,
    /// What this process has opened, and must close.
    own: Option<(Patterns, Vec<Loopback>)>,
    _behind: Option<Arc<Upstream>>,
}

impl Opened {
    pub(super) async fn open(options: &TargetOptions) -> Result<Opened, Failure> {
        let (server, upstream) = target::connection_strings(options)?;
        match (server, &options.data, upstream) {
            (Some(uri), _, _) => Opened::server(&uri).await,
            (_, Some(folder), _) => Opened::folder(folder).await,
            (_, _, Some(uri)) => Opened::mongodb(&uri).await,
            (None, None, None) => Err(target::unnamed()),
        }
    }

    async fn server(uri: &str) -> Result<Opened, Failure> {
        Ok(Opened::behind(target::running(uri).await?, false))
    }

    async fn mongodb(uri: &str) -> Result<Opened, Failure> {
        let uri = Uri { standalone: true, ..compose::connection_string(uri)? };
        let upstream = Arc::new(compose::connect(uri).await?);
        if upstream.is_pleach() {
            return Err(Failure::of(Code::Word("target"), format!("{} is a Pleach, not a MongoDB", upstream.uri()))
                .hint("name a running Pleach with --server"));
        }
        Ok(Opened::behind(upstream, true))
    }

    fn behind(upstream: Arc<Upstream>, is_mongodb: bool) -> Opened {
        let (line, stored) = (upstream.line(), upstream.line());
        Opened { line, stored, is_mongodb, own: None, _behind: Some(upstream) }
    }

    async fn folder(folder: &Path) -> Result<Opened, Failure> {
        target::is_store(folder)?;
        let engine = match engine::Engine::open(folder, super::scratch::options()) {
            Ok(engine) => engine,
            Err(error) if error.code() == document::Code::ObjectIsBusy => match engine::holder_address(folder) {
                Some(address) => return Opened::server(&format!("mongodb://{address}")).await,
                None => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        };
        let stored = Loopback::serve(Arc::new(document::backend::Unruled(Arc::new(engine.clone()))), None).await?;
        let patterns = Patterns::only_read(engine);
        patterns.life.load_to_read().await?;
        let front = Loopback::serve(patterns.front.clone(), None).await?;
        let lines = (front.line(), stored.line());
        let own = Some((patterns, vec![front, stored]));
        Ok(Opened { line: lines.0, stored: lines.1, is_mongodb: false, own, _behind: None })
    }

    pub(super) async fn close(self) {
        if let Some((patterns, loopbacks)) = self.own {
            for loopback in loopbacks {
                loopback.end().await;
            }
            patterns.close().await;
        }
    }
}
