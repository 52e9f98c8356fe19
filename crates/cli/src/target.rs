//! Where a verb's data is: a running Pleach, the folder of an embedded store, or a real MongoDB. All are asked by the same
//! command, `{ pleach: <verb>, … }`.

use crate::args::verbs;
use crate::compose;
use crate::report::{self, Failure};
use document::backend::{Backend, Session};
use document::op::AdminOp;
use document::{Code, Doc};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use upstream::Upstream;

/// How long a server is waited for that should be running.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a verb wants there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Only to read: nothing is begun in the background, and nothing need be writable.
    Look,
    Change,
}

pub(crate) enum Target {
    /// Another process answers.
    Server(Arc<Upstream>),
    /// This process does, and has opened the data for it.
    Here(compose::Patterns),
}

impl Target {
    pub(crate) async fn open(asked: &verbs::Target, purpose: Purpose) -> Result<Target, Failure> {
        match (&asked.server, &asked.data, &asked.upstream) {
            (Some(uri), _, _) => Target::server(uri).await,
            (_, Some(folder), _) => Target::folder(folder, purpose).await,
            (_, _, Some(uri)) => Target::upstream(uri, purpose).await,
            (None, None, None) => Err(Failure::new("nothing says where the data is").hint(
                "name a running Pleach with --server URI, the folder of an embedded store with --data DIR, or a MongoDB with --upstream URI",
            )),
        }
    }

    /// The folder's store, or the server that has it open.
    async fn folder(folder: &Path, purpose: Purpose) -> Result<Target, Failure> {
        if !folder.is_dir() {
            return Err(Failure::new(format!("there is no folder {}", folder.display()))
                .hint("`pleach serve --data DIR` makes one"));
        }
        match compose::Patterns::folder(folder) {
            Ok(patterns) => {
                patterns.life.load().await?;
                Target::here(patterns, purpose).await
            }
            Err(error) if error.code() == Code::ObjectIsBusy => match engine::holder_address(folder) {
                Some(address) => Target::server(&format!("mongodb://{address}")).await,
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// A running Pleach: it is asked as any client would.
    async fn server(uri: &str) -> Result<Target, Failure> {
        let uri = compose::connection_string(uri)?;
        let uri = upstream::Uri { selection_timeout: uri.selection_timeout.min(PATIENCE), ..uri };
        Ok(Target::Server(Arc::new(Upstream::open(uri).await?)))
    }

    async fn upstream(uri: &str, purpose: Purpose) -> Result<Target, Failure> {
        let patterns = compose::Patterns::upstream(uri, purpose == Purpose::Look).await?;
        match (patterns.patiently(async || patterns.life.load().await).await, purpose) {
            (Ok(()), _) => {}
            // Who may only read some collections can still compare them with a declaration.
            (Err(error), Purpose::Look) => report::note(&format!("the catalog of rules cannot be read: {error}")),
            (Err(error), Purpose::Change) => return Err(error.into()),
        }
        Target::here(patterns, purpose).await
    }

    async fn here(patterns: compose::Patterns, purpose: Purpose) -> Result<Target, Failure> {
        if purpose == Purpose::Change {
            patterns.patiently(async || patterns.life.start().await).await?;
        }
        Ok(Target::Here(patterns))
    }

    /// Asks, and gives the answer's own fields.
    pub(crate) async fn ask(&mut self, db: &str, body: Doc<'static>) -> Result<bson::Document, Failure> {
        let backend: Arc<dyn Backend> = match self {
            Target::Server(server) => server.clone(),
            Target::Here(patterns) => patterns.backend.clone(),
        };
        let op = AdminOp::Extension { command: "pleach", db: db.to_owned(), body };
        let context = compose::surroundings();
        let answers = backend.admin(&mut Session::default(), &context, op).await.map_err(told)?;
        let mut all = bson::Document::new();
        for answer in &answers {
            all.extend(bson::Document::try_from(answer)?);
        }
        for name in ["ok", "$clusterTime", "operationTime"] {
            all.remove(name);
        }
        Ok(all)
    }

    /// Ends what this process has begun; what was done is saved.
    pub(crate) async fn close(self) {
        if let Target::Here(patterns) = self {
            patterns.close().await;
        }
    }
}

/// A server tells its hint behind the message, since drivers show only that.
fn told(error: document::Error) -> Failure {
    match (error.hint(), error.message().split_once("; ")) {
        (None, Some((message, hint))) => Failure::new(message).hint(hint),
        _ => error.into(),
    }
}
