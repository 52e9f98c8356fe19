//! The backend itself: opened from a connection string, refused with the way out when the server cannot be used.

use crate::line::Line;
use crate::login::Connector;
use crate::shared::Shared;
use crate::topology::{OLDEST_WIRE_VERSION, Problem, ProblemKind};
use crate::uri::Uri;
use document::{Code, Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// A real MongoDB: a replica set or a sharded cluster.
pub struct Upstream {
    pub(crate) shared: Arc<Shared>,
    watcher: tokio::task::JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.watcher.abort();
        self.shared.close();
    }
}

impl Upstream {
    /// Connects, within five seconds or the connection string's `serverSelectionTimeoutMS`; wants a runtime around it.
    pub async fn open(uri: Uri) -> Result<Upstream> {
        let unusable =
            |error| Error::new(Code::InvalidOptions, format!("cannot use TLS as the connection string says: {error}"));
        let connector = Arc::new(Connector::new(Arc::new(uri)).map_err(unusable)?);
        let shared = Arc::new(Shared::new(connector));
        let watched = shared.clone();
        let watcher = tokio::spawn(async move { watched.topology.watch_over().await });
        let upstream = Upstream { shared, watcher };
        upstream.wait_for_primary().await?;
        upstream.check_login().await?;
        Ok(upstream)
    }

    pub fn uri(&self) -> &Uri {
        &self.shared.connector.uri
    }

    /// The server that commands go to now, for people to read.
    pub fn primary(&self) -> Option<String> {
        self.shared.topology.state().primary.as_ref().map(|primary| primary.host.to_string())
    }

    /// Whether the server is not a MongoDB but another Pleach.
    pub fn is_pleach(&self) -> bool {
        self.shared.topology.state().primary.as_ref().is_some_and(|primary| primary.is_pleach)
    }

    /// A line of our own, which logs in as the connection string's user: for callers that speak to the server as a client would.
    pub fn line(&self) -> Arc<dyn document::backend::Relay> {
        Arc::new(Line::new(self.shared.clone(), false))
    }

    async fn wait_for_primary(&self) -> Result<()> {
        let mut states = self.shared.topology.subscribe();
        let limit = self.uri().first_timeout;
        let hopeless = |problems: &[Problem]| {
            let settled =
                |problem: &Problem| !matches!(problem.kind, ProblemKind::Unreachable(_) | ProblemKind::NotPrimary);
            !problems.is_empty() && problems.iter().all(settled)
        };
        let found = states.wait_for(|state| state.primary.is_some() || hopeless(&state.problems));
        let in_time = tokio::time::timeout(limit, found).await.is_ok();
        let state = self.shared.topology.state();
        match state.primary {
            Some(_) => Ok(()),
            None => Err(refusal(self.uri(), &state.problems, (!in_time).then_some(limit))),
        }
    }

    /// A wrong password is better found now than by the first background work.
    async fn check_login(&self) -> Result<()> {
        if self.uri().credentials.is_none() {
            return Ok(());
        }
        let line = Line::new(self.shared.clone(), false);
        let ready = line.ready().await.map(drop);
        ready.map_err(|error| {
            let message = format!("cannot log in to {}: {}", self.uri(), error.message());
            Error::new(error.code(), message)
                .with_hint("check user, password and authSource in the connection string; escape special characters such as %40 for @")
        })
    }
}

/// Why none of the hosts will do, and what to do about it. `waited` is how long, if that was not long enough.
fn refusal(uri: &Uri, problems: &[Problem], waited: Option<Duration>) -> Error {
    let told: Vec<String> = problems.iter().map(describe).collect();
    let told = if told.is_empty() { "nobody answered".to_owned() } else { told.join("; ") };
    let waited = waited.map(|waited| format!(" (waited {} s)", waited.as_secs_f32())).unwrap_or_default();
    let error = Error::new(Code::HostUnreachable, format!("cannot use {uri}: {told}{waited}"));
    let first =
        problems.iter().find(|problem| !matches!(problem.kind, ProblemKind::Unreachable(_) | ProblemKind::NotPrimary));
    match first.map(|problem| (&problem.kind, &problem.host)) {
        Some((ProblemKind::Standalone, host)) => error.with_hint(format!(
            "Pleach needs transactions, which a standalone mongod has not. Make it a replica set of one node, its data stays:\n\
             \n  1. stop mongod, and start it again with its usual options and --replSet rs\
             \n     (or in mongod.conf:  replication: {{ replSetName: rs }})\
             \n  2. mongosh --port {} --eval 'rs.initiate({{ _id: \"rs\", members: [{{ _id: 0, host: \"{host}\" }}] }})'\
             \n  3. pleach serve --upstream 'mongodb://{host}/?replicaSet=rs'",
            host.port
        )),
        Some((ProblemKind::NotInitiated, host)) => error.with_hint(format!(
            "make the replica set: mongosh --port {} --eval 'rs.initiate({{ _id: \"rs\", members: [{{ _id: 0, host: \"{host}\" }}] }})' \
             (with the name that mongod was given by --replSet)",
            host.port
        )),
        Some((ProblemKind::TooOld(_), _)) => error.with_hint("Pleach works with MongoDB 4.4 and newer"),
        Some((ProblemKind::OtherSet(name), _)) => error.with_hint(format!("write replicaSet={name} in the connection string, or leave it out")),
        _ => error.with_hint(
            "check host names and ports, that mongod runs and listens on that address, and tls=true if it wants TLS; serverSelectionTimeoutMS in the connection string waits longer",
        ),
    }
}

fn describe(problem: &Problem) -> String {
    let host = &problem.host;
    match &problem.kind {
        ProblemKind::Unreachable(error) => format!("{host} does not answer ({error})"),
        ProblemKind::Standalone => format!("{host} is a standalone mongod, not a replica set"),
        ProblemKind::NotInitiated => format!("{host} was started for a replica set that has not been initiated"),
        ProblemKind::TooOld(version) => {
            format!("{host} speaks wire version {version}, at least {OLDEST_WIRE_VERSION} (MongoDB 4.4) is needed")
        }
        ProblemKind::OtherSet(name) => format!("{host} belongs to the replica set '{name}'"),
        ProblemKind::NotPrimary => format!("{host} is not primary"),
    }
}
