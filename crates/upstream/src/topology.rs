//! Which server is primary: one background task asks, and follows a change at once.
//!
//! While a primary is known, it is asked by a `hello` that it answers when something changes. When that breaks, or a connection
//! elsewhere breaks, all known hosts are asked at the same time until one says that it is primary.

use crate::answer::number;
use crate::command::Command;
use crate::connection::Connection;
use crate::login::Connector;
use crate::uri::Host;
use document::{Code, Doc, Value};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// MongoDB 4.4: the first that makes collections inside transactions.
pub(crate) const OLDEST_WIRE_VERSION: i32 = 9;

/// How long the primary may hold back the answer to a `hello` while nothing changes.
const AWAIT: Duration = Duration::from_secs(2);

/// How much longer than [`AWAIT`] its answer may take before it counts as gone.
const GRACE: Duration = Duration::from_secs(3);

/// Between two rounds of asking everybody.
const PAUSE: Duration = Duration::from_millis(100);

/// The server to talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Primary {
    pub(crate) host: Host,
    pub(crate) max_wire_version: i32,
    pub(crate) session_minutes: i32,
    /// It is not a MongoDB but a Pleach.
    pub(crate) is_pleach: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) primary: Option<Primary>,
    /// The primary is being looked for: worth a moment's wait.
    pub(crate) checking: bool,
    /// Why the hosts that were asked last are not it.
    pub(crate) problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) host: Host,
    pub(crate) kind: ProblemKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    Unreachable(String),
    Standalone,
    /// Started with --replSet, but no set was ever made.
    NotInitiated,
    TooOld(i32),
    OtherSet(String),
    NotPrimary,
}

pub(crate) struct Topology {
    connector: Arc<Connector>,
    state: watch::Sender<State>,
    /// Changes whenever another primary, or none, is known.
    generation: AtomicU64,
    recheck: Notify,
}

/// What a server says about itself.
struct HelloReply {
    outcome: Result<Primary, ProblemKind>,
    hosts: Vec<Host>,
    election: Option<[u8; 12]>,
    version: Option<Doc<'static>>,
}

impl Topology {
    pub(crate) fn new(connector: Arc<Connector>) -> Topology {
        let state = State { checking: true, ..State::default() };
        Topology { connector, state: watch::Sender::new(state), generation: AtomicU64::new(1), recheck: Notify::new() }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn state(&self) -> watch::Ref<'_, State> {
        self.state.borrow()
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// A connection of that generation broke, or its server said that it is not primary: look again.
    pub(crate) fn suspect(&self, generation: u64) {
        if generation == self.generation() {
            self.publish(None, true, Vec::new());
        }
        self.recheck.notify_one();
    }

    fn publish(&self, primary: Option<Primary>, checking: bool, problems: Vec<Problem>) {
        self.state.send_modify(|state| {
            if state.primary != primary {
                self.generation.fetch_add(1, Ordering::AcqRel);
                match &primary {
                    Some(primary) => tracing::info!(host = %primary.host, "the primary is"),
                    None => tracing::warn!("no primary is known"),
                }
            }
            *state = State { primary, checking, problems };
        });
    }

    /// The background task: it never ends by itself.
    pub(crate) async fn watch_over(&self) {
        let mut known: BTreeSet<Host> = self.connector.uri.hosts.iter().cloned().collect();
        let mut newest: Option<[u8; 12]> = None;
        loop {
            match self.ask_all(&mut known, &mut newest).await {
                Ok((primary, connection, version)) => {
                    self.publish(Some(primary), false, Vec::new());
                    self.follow(connection, version).await;
                }
                Err(problems) => {
                    self.publish(None, false, problems);
                    let _ = tokio::time::timeout(PAUSE, self.recheck.notified()).await;
                }
            }
        }
    }

    /// Asks every known host at the same time; the first that is primary is it.
    async fn ask_all(
        &self,
        known: &mut BTreeSet<Host>,
        newest: &mut Option<[u8; 12]>,
    ) -> Result<(Primary, Connection, Option<Doc<'static>>), Vec<Problem>> {
        let mut asked = BTreeSet::new();
        let mut asking = FuturesUnordered::new();
        let mut problems = Vec::new();
        loop {
            for host in known.iter().filter(|host| !asked.contains(*host)) {
                let host = host.clone();
                asking.push(async move {
                    let opened = self.connector.open(&host, 0, None).await;
                    (host, opened)
                });
            }
            asked.extend(known.iter().cloned());
            let Some((host, opened)) = asking.next().await else { return Err(problems) };
            match opened {
                Err(error) => problems.push(Problem { host, kind: ProblemKind::Unreachable(error.to_string()) }),
                Ok((connection, hello)) => {
                    let reply = self.read(&host, &hello);
                    if !self.connector.uri.direct {
                        known.extend(reply.hosts);
                    }
                    match reply.outcome {
                        // A primary of an older election is one that has not yet heard of its end.
                        Ok(_) if reply.election.is_some() && reply.election < *newest => {
                            problems.push(Problem { host, kind: ProblemKind::NotPrimary });
                        }
                        Ok(primary) => {
                            *newest = reply.election.or(*newest);
                            return Ok((primary, connection, reply.version));
                        }
                        Err(kind) => problems.push(Problem { host, kind }),
                    }
                }
            }
        }
    }

    /// Stays with the primary until it is none any more, does not answer, or somebody suspects it.
    async fn follow(&self, mut connection: Connection, mut version: Option<Doc<'static>>) {
        let host = connection.host.clone();
        loop {
            let hello = match &version {
                Some(version) => Command::new("admin", "hello", 1)
                    .with_doc("topologyVersion", version)
                    .with("maxAwaitTimeMS", i64::try_from(AWAIT.as_millis()).unwrap_or(i64::MAX)),
                None => {
                    tokio::select! {
                        () = tokio::time::sleep(AWAIT) => {}
                        () = self.recheck.notified() => return,
                    }
                    Command::new("admin", "hello", 1)
                }
            };
            let answer = tokio::select! {
                answer = tokio::time::timeout(AWAIT + GRACE, connection.run(hello)) => answer,
                () = self.recheck.notified() => return,
            };
            let Ok(Ok(hello)) = answer else {
                self.publish(None, true, Vec::new());
                return;
            };
            let reply = self.read(&host, &hello);
            version = reply.version;
            match reply.outcome {
                Ok(primary) => self.publish(Some(primary), false, Vec::new()),
                Err(_) => {
                    self.publish(None, true, Vec::new());
                    return;
                }
            }
        }
    }

    fn read(&self, host: &Host, hello: &Doc<'_>) -> HelloReply {
        let text = |name: &str| hello.get(name).and_then(|value| value.as_str().map(str::to_owned));
        let truth = |name: &str| hello.get(name).is_some_and(|value| value.is_truthy());
        let version =
            number(hello, "maxWireVersion").and_then(|version| i32::try_from(version).ok()).unwrap_or_default();
        let minutes = number(hello, "logicalSessionTimeoutMinutes").and_then(|minutes| i32::try_from(minutes).ok());
        let wanted = self.connector.uri.replica_set.as_deref();
        let set = text("setName");
        let is_router = text("msg").as_deref() == Some("isdbgrid");
        // A server that knows no `hello` is older than any that will do; another error says that it is coming or going.
        let is_unknown_command = number(hello, "code") == Some(i64::from(Code::CommandNotFound.number()));
        let outcome = if !truth("ok") && !is_unknown_command {
            Err(ProblemKind::Unreachable(text("errmsg").unwrap_or_default()))
        } else if version < OLDEST_WIRE_VERSION {
            Err(ProblemKind::TooOld(version))
        } else if is_router {
            Ok(())
        } else {
            match &set {
                None if truth("isreplicaset") => Err(ProblemKind::NotInitiated),
                None if self.connector.uri.standalone => Ok(()),
                None => Err(ProblemKind::Standalone),
                Some(set) if wanted.is_some_and(|wanted| wanted != set) => Err(ProblemKind::OtherSet(set.clone())),
                Some(_) if truth("isWritablePrimary") || truth("ismaster") => Ok(()),
                Some(_) => Err(ProblemKind::NotPrimary),
            }
        };
        let mut hosts = Vec::new();
        for name in ["hosts", "passives"] {
            if let Some(Value::Array(names)) = hello.get(name) {
                hosts.extend(names.iter().filter_map(|name| Host::parse(name.as_str()?).ok()));
            }
        }
        if matches!(outcome, Err(ProblemKind::OtherSet(_))) {
            hosts.clear();
        }
        let election = match hello.get("electionId") {
            Some(Value::ObjectId(id)) => Some(id),
            _ => None,
        };
        let topology_version = match hello.get("topologyVersion") {
            Some(Value::Document(version)) => Some(version.into_owned()),
            _ => None,
        };
        let primary = |()| Primary {
            host: host.clone(),
            max_wire_version: version,
            session_minutes: minutes.unwrap_or(30),
            is_pleach: hello.contains("pleach"),
        };
        HelloReply { outcome: outcome.map(primary), hosts, election, version: topology_version }
    }
}
