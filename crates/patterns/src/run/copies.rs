//! What a changed source means for the hosts that hold a copy of it: refreshed, filled, unset, refused or deleted; in the
//! transaction while they are few, else by a job (SEMANTICS R13, R28).

use super::Run;
use super::changes::Changes;
use super::jobs;
use super::originals::keep_matching;
use crate::layer::deferred::Effect;
use crate::link::{CopyProgram, Program, SourceChange, Spread};
use crate::rule::{Link, Upkeep, WhenDeleted};
use crate::rules::Kept;
use document::filter::Filter;
use document::op::{Capture, Count, Delete, DeleteStatement, ReadOp, UpdateOp, WriteOp};
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// So many hosts of one key are changed in the transaction; more are left to the outbox.
pub(crate) const AT_ONCE: u64 = 1_000;

pub(super) async fn spread(run: &mut Run<'_>, level: &[Arc<Kept>], changes: &mut Changes) -> Result<()> {
    for kept in level {
        let (Upkeep::Link(link), Some(Program::Copy(program))) = (&kept.rule.upkeep, &kept.program) else { continue };
        let mut all = Vec::new();
        for changed in changes.of(&link.source) {
            all.extend(program.source_change(changed.change.before.as_ref(), changed.change.after.as_ref()));
        }
        if all.len() > 1 && all.iter().all(|change| matches!(change, SourceChange::Appeared { .. })) {
            all = awaited(run, kept, all).await?;
        }
        for change in all {
            one(run, kept, link, program, change, changes).await?;
        }
    }
    Ok(())
}

/// Of many sources that appear, those that hosts already refer to: most often none, which one read tells.
async fn awaited(run: &mut Run<'_>, kept: &Arc<Kept>, all: Vec<SourceChange>) -> Result<Vec<SourceChange>> {
    let mut nodes = Vec::with_capacity(all.len());
    for change in &all {
        let SourceChange::Appeared { key, .. } = change else { continue };
        run.exclusive(kept, key).await?;
        nodes.push(key.clone());
    }
    let path = match &kept.rule.upkeep {
        Upkeep::Link(link) => link.local.path.dotted(),
        Upkeep::Expression(_) | Upkeep::Bucket(_) => return Ok(all),
    };
    let any = Filter::among(&path, nodes);
    let count = Count { ns: kept.rule.host.clone(), filter: any, skip: 0, limit: Some(1), hint: None };
    let rows = run.read(std::slice::from_ref(kept), ReadOp::Count(count)).await?;
    let none = number(&rows) == 0;
    Ok(if none { Vec::new() } else { all })
}

async fn one(
    run: &mut Run<'_>,
    kept: &Arc<Kept>,
    link: &Link,
    program: &CopyProgram,
    change: SourceChange,
    changes: &mut Changes,
) -> Result<()> {
    let (SourceChange::Appeared { key, .. } | SourceChange::Changed { key, .. } | SourceChange::Vanished { key }) =
        &change;
    run.exclusive(kept, key).await?;
    if matches!(change, SourceChange::Vanished { .. }) && link.when_deleted == WhenDeleted::Keep {
        return Ok(());
    }
    let effect = match (&change, link.when_deleted) {
        (SourceChange::Vanished { .. }, WhenDeleted::Cascade) => Effect::Delete,
        _ => Effect::Update,
    };
    if link.lag.is_some() && link.when_deleted != WhenDeleted::Reject {
        return jobs::enqueue(run, kept, key, effect).await;
    }
    let rejects = matches!(change, SourceChange::Vanished { .. }) && link.when_deleted == WhenDeleted::Reject;
    let hosts = count(run, kept, program, key, (!rejects).then_some(AT_ONCE + 1)).await?;
    if hosts == 0 {
        return Ok(());
    }
    if rejects {
        return Err(rejected(kept, link, key, hosts));
    }
    if hosts > AT_ONCE {
        return jobs::enqueue(run, kept, key, effect).await;
    }
    match &change {
        SourceChange::Appeared { copy, .. } | SourceChange::Changed { copy, .. } => {
            put(run, kept, program, key, Spread::Fill(copy), changes).await
        }
        SourceChange::Vanished { .. } if link.when_deleted == WhenDeleted::Cascade => {
            cascade(run, kept, program, key).await
        }
        SourceChange::Vanished { .. } => put(run, kept, program, key, Spread::Unset, changes).await,
    }
}

/// How many hosts refer to a key.
async fn count(
    run: &mut Run<'_>,
    kept: &Arc<Kept>,
    program: &CopyProgram,
    key: &Value<'_>,
    limit: Option<u64>,
) -> Result<u64> {
    let count = Count { ns: kept.rule.host.clone(), filter: program.hosts(key), skip: 0, limit, hint: None };
    let rows = run.read(std::slice::from_ref(kept), ReadOp::Count(count)).await?;
    Ok(number(&rows))
}

/// What a count gave.
fn number(rows: &[Doc<'static>]) -> u64 {
    let n = rows.first().and_then(|row| row.get("n")).and_then(|n| n.as_i64_exact());
    n.map_or(0, |n| u64::try_from(n).unwrap_or_default())
}

fn rejected(kept: &Kept, link: &Link, key: &Value<'_>, hosts: u64) -> Error {
    let (documents, refer) = if hosts == 1 { ("document", "refers") } else { ("documents", "refer") };
    let message = format!(
        "{} {documents} of {} {refer} to the document of {} with {}: {}; rule {} says when_deleted: reject",
        hosts,
        kept.rule.host.collection,
        link.source.collection,
        link.foreign.path,
        document::value::show::element(key),
        kept.rule.name,
    );
    Error::new(Code::OperationFailed, message).with_hint(format!(
        "delete or re-point them first: {{ {}: {} }}",
        link.local.path,
        document::value::show::element(key)
    ))
}

async fn put(
    run: &mut Run<'_>,
    kept: &Arc<Kept>,
    program: &CopyProgram,
    key: &Value<'_>,
    what: Spread<'_>,
    changes: &mut Changes,
) -> Result<()> {
    let ns = kept.rule.host.clone();
    let capture = match run.rules.of(&ns) {
        Some(local) if kept.feeds => local.capture.clone(),
        _ => Capture::Nothing,
    };
    let statement = program.spread(key, what)?;
    keep_matching(run, &ns, std::slice::from_ref(&statement.filter)).await?;
    let op = WriteOp::Update(UpdateOp::of(ns.clone(), vec![statement]));
    if matches!(capture, Capture::Nothing) {
        return run.derive_last(std::slice::from_ref(kept), op).await;
    }
    let written = run.derive(std::slice::from_ref(kept), &op, &capture).await?;
    changes.derived(&ns, written.changes);
    Ok(())
}

async fn cascade(run: &mut Run<'_>, kept: &Arc<Kept>, program: &CopyProgram, key: &Value<'_>) -> Result<()> {
    let ns = kept.rule.host.clone();
    let capture = run.rules.of(&ns).map_or(Capture::Nothing, |local| local.capture.clone());
    let op = WriteOp::Delete(Delete::of(ns.clone(), vec![DeleteStatement::all(program.hosts(key))]));
    let written = run.derive(std::slice::from_ref(kept), &op, &capture).await?;
    run.cascaded.derived(&ns, written.changes);
    Ok(())
}
