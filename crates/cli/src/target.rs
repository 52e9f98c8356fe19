//! Where a verb's data is: a running Pleach, the folder of an embedded store, or a real MongoDB. All are asked by the same
//! command, `{ pleach: <verb>, … }`.

use crate::compose;
use crate::input;
use crate::options::TargetOptions;
use crate::plain;
use crate::report::{self, Failure};
use document::backend::{Backend, Session};
use document::op::AdminOp;
use document::{Code, Doc};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use upstream::Upstream;

/// What a verb wants there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Only to read: nothing is begun in the background, and nothing need be writable.
    Look,
    Change,
}

pub(crate) struct Target {
    place: Place,
    /// The answer is printed as text, not as JSON.
    for_people: bool,
}

enum Place {
    /// Another process answers.
    Server(Arc<Upstream>),
    /// This process does, and has opened the data for it.
    Here(compose::Patterns),
}

impl Target {
    pub(crate) async fn open(asked: &TargetOptions, purpose: Purpose) -> Result<Target, Failure> {
        let (server, upstream) = connection_strings(asked)?;
        let place = match (server, &asked.data, upstream) {
            (Some(uri), _, _) => Place::server(&uri).await?,
            (_, Some(folder), _) => Place::folder(folder).await?,
            (_, _, Some(uri)) => Place::upstream(&uri, purpose).await?,
            (None, None, None) => return Err(unnamed()),
        };
        Ok(Target { place, for_people: !report::wants_json() })
    }

    /// Asks, and gives the answer's own fields.
    pub(crate) async fn ask(&mut self, db: &str, body: Doc<'static>) -> Result<bson::Document, Failure> {
        let backend = self.backend();
        let op = AdminOp::Extension { command: "pleach", db: db.to_owned(), body };
        let context = compose::new_context();
        let answers = backend.admin(&mut Session::default(), &context, op).await.map_err(with_hint)?;
        let mut all = bson::Document::new();
        for answer in &answers {
            all.extend(bson::Document::try_from(answer)?);
        }
        for name in ["ok", "$clusterTime", "operationTime"] {
            all.remove(name);
        }
        Ok(if self.for_people { plain::answer(all) } else { all })
    }

    /// The data as clients see it.
    pub(crate) fn backend(&self) -> Arc<dyn Backend> {
        match &self.place {
            Place::Server(server) => server.clone(),
            Place::Here(patterns) => patterns.front.clone(),
        }
    }

    /// Ends what this process has begun; what was done is saved.
    pub(crate) async fn close(self) {
        if let Place::Here(patterns) = self.place {
            patterns.close().await;
        }
    }
}

impl Place {
    /// The folder's store, or the server that has it open.
    async fn folder(folder: &Path) -> Result<Place, Failure> {
        is_store(folder)?;
        match compose::Patterns::folder(folder) {
            Ok(patterns) => {
                patterns.life.load_to_read().await?;
                Ok(Place::Here(patterns))
            }
            Err(error) if error.code() == Code::ObjectIsBusy => match engine::holder_address(folder) {
                Some(address) => Place::server(&format!("mongodb://{address}")).await,
                None => Err(error.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// A running Pleach: it is asked as any client would.
    async fn server(uri: &str) -> Result<Place, Failure> {
        running(uri).await.map(Place::Server)
    }

    async fn upstream(uri: &str, purpose: Purpose) -> Result<Place, Failure> {
        let uri = as_own(compose::connection_string(uri)?);
        let patterns = compose::Patterns::upstream(uri, purpose == Purpose::Look).await?;
        let loaded = patterns.patiently(async || patterns.life.load_to_read().await).await;
        match (loaded, purpose) {
            (Ok(()), _) => {}
            // A user who may only read some collections can still compare them with a declaration.
            (Err(error), Purpose::Look) => report::note(&format!("the catalog of rules cannot be read: {error}")),
            (Err(error), Purpose::Change) => return Err(error.into()),
        }
        Ok(Place::Here(patterns))
    }
}

/// Under the name of Pleach's own tools, whatever the connection string says: what they read is no part of what applications do.
fn as_own(uri: upstream::Uri) -> upstream::Uri {
    upstream::Uri { app_name: Some(advisor::traffic::OWN_NAME.to_owned()), ..uri }
}

/// The connection strings of `--server` and `--upstream`, wherever they stand.
pub(crate) fn connection_strings(asked: &TargetOptions) -> Result<(Option<String>, Option<String>), Failure> {
    let of = |uri: &Option<String>, file: &Option<PathBuf>| match (uri, file) {
        (None, Some(file)) => input::connection_string(file).map(Some),
        (uri, _) => Ok(uri.clone()),
    };
    Ok((of(&asked.server, &asked.server_file)?, of(&asked.upstream, &asked.upstream_file)?))
}

/// No option names a target.
pub(crate) fn unnamed() -> Failure {
    Failure::of(report::Code::Word("target"), "nothing says where the data is").hint(
        "name a running Pleach with --server URI, the folder of an embedded store with --data DIR, or a MongoDB with --upstream URI",
    )
}

/// Refuses a folder that holds no store.
pub(crate) fn is_store(folder: &Path) -> Result<(), Failure> {
    if !folder.is_dir() {
        return Err(Failure::of(report::Code::Word("target"), format!("there is no folder {}", folder.display()))
            .hint("`pleach serve --data DIR` makes one"));
    }
    if !engine::is_store(folder) {
        return Err(Failure::of(
            report::Code::Word("target"),
            format!("{} is not a data folder of Pleach: it holds no store", folder.display()),
        )
        .hint("name the folder that `pleach serve --data DIR` was given; nothing was made in this one"));
    }
    Ok(())
}

/// A running Pleach.
pub(crate) async fn running(uri: &str) -> Result<Arc<Upstream>, Failure> {
    // A standalone MongoDB would be refused for what it is, not for being the wrong kind of target.
    let uri = upstream::Uri { standalone: true, ..as_own(compose::connection_string(uri)?) };
    let server = compose::connect(uri).await.map_err(|failure| {
        match failure.code == report::Code::Number(Code::HostUnreachable.number()) {
            true => failure.hint("check the address, and that a `pleach serve` runs and listens there; serverSelectionTimeoutMS in the connection string waits longer"),
            false => failure,
        }
    })?;
    if !server.is_pleach() {
        return Err(Failure::of(report::Code::Word("target"), format!("{} is a MongoDB, not a Pleach", server.uri()))
            .hint("name it with --upstream instead; --server is a running `pleach serve`"));
    }
    Ok(Arc::new(server))
}

/// A server tells its hint behind the message, since drivers show only that.
fn with_hint(error: document::Error) -> Failure {
    match (error.hint(), error.message().split_once("; ")) {
        (None, Some((message, hint))) => Failure::of(report::Code::Number(error.code().number()), message).hint(hint),
        _ => error.into(),
    }
}
