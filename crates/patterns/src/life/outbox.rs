//! The outbox's worker (SEMANTICS R13): a job `{ _id: { rule, key }, gen }` means "make everything that depends on this key true
//! again". It carries no value: what is true is read when the job is done.
//!
//! A batch of hosts is one transaction, with the position saved in the job; the job is deleted only if its generation is
//! unchanged. So reordering, duplicates, a second change while the first spreads, and take-over by another process all converge.

use crate::execute::access::{Access, find, update_one, update_op};
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::execute::gate::Point;
use crate::life::replaced::{Keeping, Replaced};
use crate::life::transaction::{OwnTransaction, retried};
use crate::life::{CatalogRule, Life, catalog, replaced, roll_up_job, write_differences};
use crate::rule::names;
use crate::rule::state::State;
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Find};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::update::Update;
use document::value::order;
use document::{Doc, DocWriter, Result, Value};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

/// How many hosts are written in one transaction.
const BATCH: u64 = 500;

/// How often a worker beside others looks for jobs that nobody told it of.
const LOOK: Duration = Duration::from_secs(1);

/// In so many milliseconds a rule that is being changed is in force again.
const RULE_CHANGE_MS: i64 = 50;

/// How long it leaves a job alone that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A job as it was found.
struct Job {
    entry: CatalogRule,
    id: Value<'static>,
    key: Value<'static>,
    /// When it is to be done, in milliseconds since 1970.
    due: i64,
}

/// Works until the life is stopped.
pub(crate) async fn work(life: Arc<Life>) {
    let mut complained = false;
    while !life.is_stopped() {
        match round(&life).await {
            // Something was done: there may be more.
            Ok(Round::Worked) => complained = false,
            Ok(Round::Idle { next }) => {
                let limit = match life.backend.facts().others_write {
                    true => Some(next.map_or(LOOK, |next| next.min(LOOK))),
                    false => next,
                };
                life.wait_for_jobs(limit).await;
            }
            Err(_) if life.is_stopped() => {}
            Err(error) => {
                if !std::mem::replace(&mut complained, true) {
                    tracing::warn!(%error, "the outbox does not get on");
                }
                life.wait_for_stop(AFTER_FAILURE).await;
            }
        }
    }
}

enum Round {
    Worked,
    /// Nothing is due; the next job is after so long.
    Idle {
        next: Option<Duration>,
    },
}

/// Works until nothing is due.
pub(crate) async fn work_off(life: &Life) -> Result<()> {
    while matches!(round(life).await?, Round::Worked) {}
    Ok(())
}

async fn round(life: &Life) -> Result<Round> {
    let mut next: Option<i64> = None;
    let (now, mut worked) = (life.context().env.now, false);
    let mut failure = None;
    for job in jobs(life).await? {
        life.check_stopped()?;
        if job.due > now {
            next = Some(next.map_or(job.due, |next| next.min(job.due)));
            continue;
        }
        match finish(life, &job).await {
            Ok(true) => worked = true,
            Ok(false) => next = Some(next.map_or(now + RULE_CHANGE_MS, |next| next.min(now + RULE_CHANGE_MS))),
            // One that fails holds up no other.
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match (failure, worked) {
        (Some(error), _) => Err(error),
        (None, true) => Ok(Round::Worked),
        (None, false) => {
            let wait = |due: i64| Duration::from_millis(u64::try_from((due - now).max(1)).unwrap_or(1));
            Ok(Round::Idle { next: next.map(wait) })
        }
    }
}

/// The jobs of all rules that are kept, oldest rule first.
async fn jobs(life: &Life) -> Result<Vec<Job>> {
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let entries = life.entries();
    let mut databases: Vec<&Arc<str>> = entries.iter().map(|entry| &entry.db).collect();
    databases.dedup();
    let mut list = Vec::new();
    for db in databases {
        for row in at.find(find(&names::outbox(db), Filter::all())).await? {
            let (Some(id), Some(key), Some(rule)) = (row.get("_id"), part(&row, "key"), part(&row, "rule")) else {
                continue;
            };
            let known = |entry: &&CatalogRule| entry.db == *db && rule.as_str() == Some(&*entry.rule.name);
            let Some(entry) = entries.iter().find(known).filter(|entry| entry.row.state.is_kept()) else { continue };
            let lag = entry.rule.link().and_then(|link| link.lag).unwrap_or_default();
            // Half of the lag for gathering changes, half for the work.
            let since = match row.get("since") {
                Some(Value::DateTime(since)) => since,
                _ => 0,
            };
            let due = since.saturating_add(i64::try_from(lag.as_millis() / 2).unwrap_or(0));
            list.push(Job { entry: entry.clone(), id, key, due });
        }
    }
    Ok(list)
}

/// A part of a job's id.
fn part(row: &Doc<'static>, name: &str) -> Option<Value<'static>> {
    match row.get("_id") {
        Some(Value::Document(id)) => id.get(name),
        _ => None,
    }
}

/// The hosts that a job concerns, as they were found for one generation of it.
struct JobHosts {
    generation: i64,
    /// In order. Those that come to refer to the key later fill themselves.
    ids: Vec<Value<'static>>,
}

/// Does a job to its end, batch by batch. Returns false if it is not its time: the rule is no longer as the job was found for, or its
/// source is being counted, or its array lifted.
async fn finish(life: &Life, job: &Job) -> Result<bool> {
    if roll_up_job::is_too_early(&job.entry) || job.entry.is_lifting() {
        return Ok(false);
    }
    let evaluator = Evaluator::new(&job.entry.rule)?.through(&life.patterned.executor);
    let context = &life.context();
    // Where the source changed again, whoever refers to it is looked for anew.
    while let Some(hosts) = find_job_hosts(life, context, &evaluator, job).await? {
        loop {
            match retried(life, || one_batch(life, &evaluator, job, &hosts)).await? {
                Batch::Done => return Ok(true),
                Batch::Changed => return Ok(false),
                Batch::More => {}
                Batch::Anew => break,
            }
        }
    }
    Ok(true)
}

/// `None` if the job is gone: another worker has done it.
async fn find_job_hosts(life: &Life, context: &Context, evaluator: &Evaluator, job: &Job) -> Result<Option<JobHosts>> {
    life.pass(Point::Life("look")).await?;
    let mut session = Session::default();
    let mut at = Access { backend: &*life.backend, session: &mut session, context };
    let Some(row) = at.one(&names::outbox(&job.entry.db), &job.id).await? else { return Ok(None) };
    let only_id = Projection::parse_find(&id_only(), &Filter::all(), &mut Names::new())?;
    let filter = evaluator.hosts(&job.key);
    let query = Find { projection: Some(Arc::new(only_id)), ..find(&job.entry.rule.host, filter) };
    let rows = at.find(query).await?;
    let mut ids: Vec<Value<'static>> = rows.iter().filter_map(|row| row.get("_id")).collect();
    ids.sort_by(order::compare);
    Ok(Some(JobHosts { generation: catalog::long(row.get("gen")), ids }))
}

fn id_only() -> Doc<'static> {
    let mut projection = DocWriter::new();
    projection.append("_id", &Value::Int32(1));
    projection.finish()
}

enum Batch {
    Done,
    More,
    Anew,
    /// The rule was changed or dropped.
    Changed,
}

async fn one_batch(life: &Life, evaluator: &Evaluator, job: &Job, hosts: &JobHosts) -> Result<Batch> {
    let context = &life.context();
    let (outbox, rule) = (names::outbox(&job.entry.db), evaluator.rule());
    // Held until the commit: by a rule that was changed meanwhile nothing may be written any more.
    let Some(_held) = life.in_force(rule) else { return Ok(Batch::Changed) };
    let mut began = OwnTransaction::begin_for(life, context, evaluator.rule()).await?;
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    let Some(row) = at.one(&outbox, &job.id).await? else { return Ok(Batch::Done) };
    let generation = catalog::long(row.get("gen"));
    if generation != hosts.generation {
        return Ok(Batch::Anew);
    }
    let position = match row.get("position") {
        Some(Value::Document(position)) if catalog::long(position.get("gen")) == generation => position.get("after"),
        _ => None,
    };
    let done =
        position.map_or(0, |after| hosts.ids.partition_point(|id| order::compare(id, &after) != Ordering::Greater));
    let rest = hosts.ids.get(done..).unwrap_or_default();
    let size = usize::try_from(life.at_most(BATCH)).unwrap_or(usize::MAX);
    let (batch, last) = (rest.get(..size.min(rest.len())).unwrap_or_default(), rest.len() <= size);
    life.pass(Point::Life("fence")).await?;
    at.backend.fences(at.session, &[(evaluator.fence(&job.key), evaluator.mode())]).await?;
    if rule.link().is_some_and(|link| link.create) {
        roll_up_job::make_true(life, &mut began, evaluator, &job.entry, &job.key).await?;
    } else if !batch.is_empty() {
        let filter = with_ids(batch.to_vec()).and(evaluator.hosts(&job.key));
        let hosts = at.find(find(&rule.host, filter)).await?;
        if evaluator.deletes_hosts() && !evaluator.has_source(&mut at, &job.key).await? {
            // A reference that was made when the source had gone is accepted, and stays.
            let with_copy = hosts.iter().filter(|host| evaluator.had_source(host, &job.key));
            let gone: Vec<Value<'static>> = with_copy.filter_map(|host| host.get("_id")).collect();
            if !gone.is_empty() {
                write_differences::delete(life, &mut began, rule, with_ids(gone)).await?;
            }
        } else {
            life.pass(Point::Life("evaluate")).await?;
            let differences = evaluator.differences(&mut at, &hosts).await?;
            if job.entry.row.state != State::On {
                let keeping = Keeping::unfinished(&mut at, &[(rule.clone(), job.entry.row.epoch)]).await?;
                replaced::keep_some(&mut at, &keeping, &replaced_by(&hosts, &differences)).await?;
            }
            life.pass(Point::Life("write")).await?;
            write_differences::write(life, &mut began, rule, &differences).await?;
        }
    }
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    life.pass(Point::Life("save")).await?;
    let ours = Filter::equality("_id", &job.id).and(Filter::equality("gen", &Value::Int64(generation)));
    match batch.last() {
        Some(after) if !last => {
            at.write(&update_op(&outbox, vec![update_one(ours, save(generation, after)?)])).await?;
        }
        _ => {
            at.delete(&outbox, ours).await?;
        }
    }
    began.commit().await?;
    Ok(if last { Batch::Done } else { Batch::More })
}

/// The hosts that are about to be changed.
fn replaced_by<'h>(hosts: &'h [Doc<'static>], differences: &[HostDifference]) -> Vec<Replaced<'h>> {
    let is_changed = |id: &Value<'_>| differences.iter().any(|difference| difference.id == *id);
    let hosts = hosts.iter().map(|host| (host.get("_id").unwrap_or(Value::Null), host));
    hosts.filter(|(id, _)| is_changed(id)).map(|(id, host)| Replaced { id, before: Some(host) }).collect()
}

fn with_ids(ids: Vec<Value<'static>>) -> Filter {
    Filter::among("_id", ids)
}

/// `{ $set: { position: { gen, after } } }`.
fn save(generation: i64, after: &Value<'_>) -> Result<Update> {
    let mut change = DocWriter::new();
    change.start_document("$set").start_document("position");
    change.append("gen", &Value::Int64(generation)).append("after", after);
    Update::parse(&Value::Document(change.finish()), &[], &mut Names::new())
}
