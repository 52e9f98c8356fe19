//! Where the processes that serve one MongoDB announce themselves (SEMANTICS R3): `admin.pleach.processes`.
//!
//! A row `{ _id: <process>, who, until, seen, trace }` is a lease; `until` is by the server's clock. The row
//! `{ _id: "epoch", epoch }` is counted up with every change of rules, and `seen` says up to where a process works by them. The
//! row `{ _id: "changing", process, change }` is there while one of them changes rules; `change` tells one change of a process from
//! its next.

use crate::execute::access::{Access, aggregate, update_one, update_op};
use crate::life::catalog::long;
use crate::mql;
use document::backend::Remote;
use document::filter::Filter;
use document::op::{Namespace, UpdateStatement, WriteOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Code, Doc, Result, Value};
use std::time::Duration;

const EPOCH: &str = "epoch";
const CHANGING: &str = "changing";

/// A process as it announced itself.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) process: String,
    pub(crate) process_name: String,
    /// The last epoch by whose rules it works, and none before.
    pub(crate) seen: i64,
    /// For how many milliseconds its lease is valid; negative: since when it is not.
    pub(crate) left: i64,
    pub(crate) leftover: Doc<'static>,
}

/// All rows, as they are now.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) epoch: i64,
    pub(crate) processes: Vec<Announced>,
    /// The process that is changing rules, and which of its changes that is.
    pub(crate) changing: Option<(String, i64)>,
}

impl Registry {
    pub(crate) async fn read(at: &mut Access<'_>, registry: &Namespace) -> Result<Registry> {
        let left = mql::call_with("$subtract", [Value::from("$until"), Value::from("$$NOW")]);
        let stages = [mql::call("$set", mql::object([("left", left)]))];
        let pipeline = Pipeline::parse(&mql_array(stages), &mut Names::new())?;
        let mut contents = Registry::default();
        for row in at.all(aggregate(registry, pipeline)).await? {
            let text = |name: &str| row.get(name).and_then(|value| value.as_str().map(str::to_owned));
            match text("_id").as_deref() {
                Some(EPOCH) => contents.epoch = long(row.get("epoch")),
                Some(CHANGING) => {
                    contents.changing = text("process").map(|process| (process, long(row.get("change"))));
                }
                Some(process) => contents.processes.push(Announced {
                    process: process.to_owned(),
                    process_name: text("who").unwrap_or_default(),
                    seen: long(row.get("seen")),
                    left: long(row.get("left")),
                    leftover: match row.get("trace") {
                        Some(Value::Document(leftover)) => leftover.into_owned(),
                        _ => Doc::empty(),
                    },
                }),
                None => {}
            }
        }
        Ok(contents)
    }

    pub(crate) fn has(&self, process: &str) -> bool {
        self.processes.iter().any(|other| other.process == process)
    }

    /// The one that does what only one needs to do.
    pub(crate) fn first(&self) -> Option<&str> {
        self.processes.iter().filter(|other| other.left > 0).map(|other| &*other.process).min()
    }
}

fn mql_array<const N: usize>(stages: [Value<'static>; N]) -> document::Array<'static> {
    stages.into_iter().collect()
}

fn by_name(name: &str) -> Filter {
    Filter::equality("_id", &Value::from(name))
}

fn upsert(registry: &Namespace, name: &str, update: Update) -> WriteOp {
    update_op(registry, vec![UpdateStatement { upsert: true, ..update_one(by_name(name), update) }])
}

/// Takes the lease, or holds it for longer.
pub(crate) async fn announce(
    at: &mut Access<'_>,
    registry: &Namespace,
    process: &str,
    process_name: &str,
    seen: i64,
    lasts: Duration,
) -> Result<()> {
    let lasts = Value::Int64(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX));
    let leftover = at.backend.remote().and_then(Remote::leftover).map_or(Value::Missing, Value::Document);
    let row = mql::object([
        ("_id", mql::literal(Value::from(process))),
        ("who", mql::literal(Value::from(process_name))),
        ("until", mql::call_with("$add", [Value::from("$$NOW"), lasts])),
        ("seen", Value::Int64(seen)),
        ("trace", mql::literal(leftover)),
    ]);
    let update = Update::parse(&mql::list([mql::call("$replaceWith", row)]), &[], &mut Names::new())?;
    at.write(&upsert(registry, process, update)).await.map(drop)
}

/// Gives the lease back, or that of a process that is no more.
pub(crate) async fn remove(at: &mut Access<'_>, registry: &Namespace, process: &str) -> Result<()> {
    at.delete(registry, by_name(process)).await.map(drop)
}

/// Tells all processes that rules have changed.
pub(crate) async fn publish(at: &mut Access<'_>, registry: &Namespace) -> Result<()> {
    let change = mql::object([("$inc", mql::object([("epoch", Value::Int64(1))]))]);
    let update = Update::parse(&change, &[], &mut Names::new())?;
    at.write(&upsert(registry, EPOCH, update)).await.map(drop)
}

/// The process that is changing rules while another one wants to.
#[derive(Debug)]
pub(crate) struct Changer {
    pub(crate) process_name: String,
    /// Which change it is: the same one, as long as this is equal.
    pub(crate) change: (String, i64),
    /// Whether its lease is valid; if not, the change ends as soon as the lease is removed.
    pub(crate) is_alive: bool,
}

/// Begins a change of rules, or returns the process that is changing rules already. The claim of a process that is no more is
/// removed.
pub(crate) async fn begin_change(
    at: &mut Access<'_>,
    registry: &Namespace,
    process: &str,
    change: i64,
) -> Result<Option<Changer>> {
    let row = || {
        let change = ("change", Value::Int64(change));
        mql::document([("_id", Value::from(CHANGING)), ("process", Value::from(process)), change])
    };
    // A claim that was given back or removed between the insert and the look leaves the place free.
    loop {
        match at.insert(registry, vec![row()]).await {
            Err(error) if error.code() == Code::DuplicateKey => {}
            other => return other.map(|()| None),
        }
        let contents = Registry::read(at, registry).await?;
        let Some((other, change)) = contents.changing else { continue };
        if other == process {
            return Ok(None);
        }
        match contents.processes.into_iter().find(|announced| announced.process == other) {
            Some(Announced { process_name, left, .. }) => {
                return Ok(Some(Changer { process_name, change: (other, change), is_alive: left > 0 }));
            }
            None => end_change(at, registry, &other).await?,
        }
    }
}

pub(crate) async fn end_change(at: &mut Access<'_>, registry: &Namespace, process: &str) -> Result<()> {
    let ours = by_name(CHANGING).and(Filter::equality("process", &Value::from(process)));
    at.delete(registry, ours).await.map(drop)
}
