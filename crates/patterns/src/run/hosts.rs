//! The derived fields of a host that is written: what an insert puts into the document before it is stored, and what an
//! update, replacement or upsert must have restored or filled behind it (SEMANTICS R11, R31).

use super::changes::Changes;
use super::originals::{Written, keep_written};
use super::{Run, recent};
use crate::life::records;
use crate::link::obstacle::{Arrays, Obstacle};
use crate::link::{Copies, CopyProgram, Program, TallyProgram, key};
use crate::rule::{ClientWrites, Expression, Upkeep};
use crate::rules::Kept;
use document::filter::Filter;
use document::op::{Aggregate, Capture, Namespace, ReadOp, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::{Path, order};
use document::{Doc, DocWriter, Env, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// A host on its way: as it was, and as it becomes.
pub(crate) struct Host {
    pub(crate) before: Option<Doc<'static>>,
    pub(crate) after: Doc<'static>,
}

/// Whether the hosts are stored already: then what is read of the children includes what the client just wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    BeforeTheWrite,
    AfterTheWrite,
}

/// Makes the fields of `rules` right in hosts that are not stored yet, or as they are stored.
pub(crate) async fn complete(run: &mut Run<'_>, rules: &[Arc<Kept>], hosts: &mut [Host], when: When) -> Result<()> {
    for kept in rules {
        let given: Vec<Value<'static>> = hosts.iter().map(|host| at(&host.after, &kept.rule.field)).collect();
        match (&kept.rule.upkeep, &kept.program) {
            (Upkeep::Expression(expression), _) => express(kept, expression, hosts, &run.context.env)?,
            (Upkeep::Link(_), Some(Program::Copy(program))) => fill(run, kept, program, hosts).await?,
            (Upkeep::Link(_), Some(Program::Tally(program))) => evaluate(run, kept, program, hosts, when).await?,
            // A link has a program; a collection in another shape hosts no field.
            (Upkeep::Link(_) | Upkeep::Bucket(_), _) => {}
        }
        for (host, given) in hosts.iter().zip(given) {
            judge(kept, host, &given)?;
        }
    }
    Ok(())
}

/// New documents with the fields that are computed from themselves alone; nothing if they need more than that.
pub(crate) fn expressed(rules: &[Arc<Kept>], documents: &[Doc<'static>], env: &Env) -> Option<Vec<Doc<'static>>> {
    let mut hosts: Vec<Host> = documents.iter().map(|doc| Host { before: None, after: doc.clone() }).collect();
    for kept in rules {
        let Upkeep::Expression(expression) = &kept.rule.upkeep else { return None };
        if kept.rule.client_writes == ClientWrites::Refuse {
            return None;
        }
        let given: Vec<Value<'static>> = hosts.iter().map(|host| at(&host.after, &kept.rule.field)).collect();
        express(kept, expression, &mut hosts, env).ok()?;
        hosts.iter().zip(given).for_each(|(host, given)| drop(judge(kept, host, &given)));
    }
    Some(hosts.into_iter().map(|host| host.after).collect())
}

/// Counts, or refuses, a client's value that differs from ours.
fn judge(kept: &Arc<Kept>, host: &Host, given: &Value<'_>) -> Result<()> {
    let unchanged = host.before.as_ref().is_some_and(|before| at(before, &kept.rule.field) == *given);
    if given.is_missing() || unchanged || order::equal(given, &at(&host.after, &kept.rule.field)) {
        return Ok(());
    }
    if kept.rule.client_writes == ClientWrites::Refuse {
        return Err(kept.rule.refusal(&kept.rule.field));
    }
    kept.count_overridden();
    Ok(())
}

/// A field computed from the document itself.
fn express(kept: &Kept, expression: &Expression, hosts: &mut [Host], env: &Env) -> Result<()> {
    for host in hosts {
        let concerned = host.before.as_ref().is_none_or(|before| {
            expression.reads.iter().chain([&kept.rule.field]).any(|path| at(before, path) != at(&host.after, path))
        });
        if concerned {
            if let Some(obstacle) = Obstacle::on_way(&host.after, &kept.rule.field.parts, Arrays::AreEntered) {
                return Err(obstacle.error(&kept.rule));
            }
            host.after = expression.set.transform(&host.after, env)?;
        }
    }
    Ok(())
}

/// Copies of the sources that hosts refer to.
async fn fill(run: &mut Run<'_>, kept: &Arc<Kept>, program: &CopyProgram, hosts: &mut [Host]) -> Result<()> {
    let mut concerned = Vec::new();
    let mut keys: Vec<Value<'static>> = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        let references = program.references(&host.after)?;
        let same = match &host.before {
            None => false,
            Some(before) => {
                let earlier = program.references(before).unwrap_or_default();
                // Each id is listed once there, but has a copy at each of its places.
                let same_places = |path: &Path| at(before, path) == at(&host.after, path);
                program.list_of_ids().is_none_or(same_places)
                    && earlier.len() == references.len()
                    && earlier.iter().zip(&references).all(|(a, b)| order::equal(a, b))
                    && at(before, &kept.rule.field) == at(&host.after, &kept.rule.field)
                    && first(before, program.rule().field.first()) == first(&host.after, program.rule().field.first())
            }
        };
        if !same {
            concerned.push(number);
            keys.extend(references);
        }
    }
    if concerned.is_empty() {
        return Ok(());
    }
    keys.sort_by(order::compare);
    keys.dedup_by(|a, b| order::equal(a, b));
    let copies = match recent::recall(run, kept, &keys) {
        Some(copies) => copies,
        None => read(run, kept, program, keys).await?,
    };
    for number in concerned {
        if let Some(host) = hosts.get_mut(number) {
            if let Some(obstacle) = program.obstacle(&host.after) {
                return Err(obstacle.error(&kept.rule));
            }
            host.after = program.fill(&host.after, host.before.as_ref(), &copies)?.apply(&host.after)?;
        }
    }
    Ok(())
}

/// The copies of some sources; their shared fences are passed at the end.
async fn read(run: &mut Run<'_>, kept: &Arc<Kept>, program: &CopyProgram, keys: Vec<Value<'static>>) -> Result<Copies> {
    let mut copies = Copies::new();
    if keys.is_empty() {
        return Ok(copies);
    }
    let rules = std::slice::from_ref(kept);
    let plain = if run.relies { program.source_documents(&keys)? } else { None };
    if let Some(find) = plain {
        let rows = run.read(rules, ReadOp::Find(find)).await?;
        rows.iter().for_each(|source| copies.add_source(program, source));
    } else if !run.shared.inner.facts().runs_our_code {
        let query = program.sources(&keys)?;
        let rows = run.read(rules, aggregate(query.ns, query.pipeline)).await?;
        rows.iter().for_each(|row| copies.add_row(row));
    } else {
        let (ns, filter) = program.whole_sources(&keys);
        let rows = run.read(rules, ReadOp::Find(records::find(&ns, filter))).await?;
        rows.iter().for_each(|source| copies.add_source(program, source));
    }
    recent::remember(run, kept, program, &keys, &copies).await?;
    for value in keys {
        run.shared_later(kept, value);
    }
    Ok(copies)
}

/// Counts, sums and averages: evaluated for a host that is new or has another key, else as they were.
async fn evaluate(
    run: &mut Run<'_>,
    kept: &Arc<Kept>,
    program: &Arc<TallyProgram>,
    hosts: &mut [Host],
    when: When,
) -> Result<()> {
    let mut fresh: Vec<(usize, Option<Value<'static>>)> = Vec::new();
    for (number, host) in hosts.iter_mut().enumerate() {
        let own = program.host_key(&host.after);
        match &host.before {
            Some(before) if same_key(program.host_key(before).as_ref(), own.as_ref()) => {
                // A host that is not seeded yet may have neither value nor state: nothing is made of that.
                let (stored, now) = (program.stored(before), program.stored(&host.after));
                if stored.value != now.value || stored.state != now.state {
                    check_way(kept, program, &host.after)?;
                    host.after = program.place(&host.after, &stored);
                }
            }
            _ => fresh.push((number, own)),
        }
    }
    let mut keys: Vec<Value<'static>> = fresh.iter().filter_map(|(_, own)| own.clone()).collect();
    keys.sort_by(order::compare);
    keys.dedup_by(|a, b| order::equal(a, b));
    let rows = children(run, kept, program, &keys).await?;
    for (number, own) in fresh {
        let Some(host) = hosts.get_mut(number) else { continue };
        let row = own.as_ref().and_then(|own| rows.get(&key::bytes(own)));
        check_way(kept, program, &host.after)?;
        host.after = program.place(&host.after, &program.evaluated(row)?);
    }
    if when == When::AfterTheWrite {
        keys.iter().for_each(|own| run.note_evaluated(kept, own));
    }
    Ok(())
}

fn check_way(kept: &Kept, program: &TallyProgram, host: &Doc<'_>) -> Result<()> {
    program.obstacle(host).map_or(Ok(()), |obstacle| Err(obstacle.error(&kept.rule)))
}

/// What the children of some hosts give, by key; their exclusive fences are passed first.
pub(crate) async fn children(
    run: &mut Run<'_>,
    kept: &Arc<Kept>,
    program: &Arc<TallyProgram>,
    keys: &[Value<'static>],
) -> Result<HashMap<Vec<u8>, Doc<'static>>> {
    let mut rows = HashMap::new();
    if keys.is_empty() {
        return Ok(rows);
    }
    for value in keys {
        run.exclusive(kept, value).await?;
    }
    let query = program.children(keys)?;
    for row in run.read(std::slice::from_ref(kept), aggregate(query.ns, query.pipeline)).await? {
        if let Some(own) = row.get("_id") {
            rows.insert(key::bytes(&own), row.clone());
        }
    }
    Ok(rows)
}

/// Puts right what the client's write left in its hosts, and what derived changes mean for the same document: one update
/// for each document and level.
pub(super) async fn restore(run: &mut Run<'_>, level: &[Arc<Kept>], changes: &mut Changes) -> Result<()> {
    let mut done: Vec<&Namespace> = Vec::new();
    for kept in level {
        let ns = &kept.rule.host;
        if done.contains(&ns) || changes.of(ns).is_empty() {
            continue;
        }
        done.push(ns);
        let rules: Vec<Arc<Kept>> = level.iter().filter(|other| other.rule.host == *ns).cloned().collect();
        let mut ids = Vec::new();
        let mut hosts = Vec::new();
        for changed in changes.of(ns).iter().filter(|changed| !changed.complete) {
            if let Some(after) = &changed.change.after {
                ids.push((changed.change.id.clone(), after.clone()));
                hosts.push(Host { before: changed.change.before.clone(), after: after.clone() });
            }
        }
        complete(run, &rules, &mut hosts, When::AfterTheWrite).await?;
        let written: Vec<Written<'_>> = ids
            .iter()
            .zip(&hosts)
            .map(|((id, _), host)| Written { id: id.clone(), before: host.before.as_ref(), after: &host.after })
            .collect();
        keep_written(run, ns, &written).await?;
        let mut statements = Vec::new();
        for ((id, stored), host) in ids.iter().zip(&hosts) {
            if let Some(update) = difference(stored, &host.after, &rules)? {
                let filter = Filter::equality("_id", id);
                statements.push(UpdateStatement { filter, update, multi: false, upsert: false, hint: None });
            }
        }
        if statements.is_empty() {
            continue;
        }
        let capture = run.rules.of(ns).map_or(Capture::Nothing, |local| local.capture.clone());
        let op = WriteOp::Update(UpdateOp::of(ns.clone(), statements));
        let written = run.derive(&rules, &op, &capture).await?;
        changes.derived(ns, written.changes);
    }
    Ok(())
}

/// The update that makes what the rules own in `stored` as it is in `wanted`; nothing if it is so already.
pub(crate) fn difference(stored: &Doc<'_>, wanted: &Doc<'_>, rules: &[Arc<Kept>]) -> Result<Option<Update>> {
    let (mut set, mut unset) = (DocWriter::new(), DocWriter::new());
    let (mut sets, mut unsets) = (false, false);
    let mut seen: Vec<String> = Vec::new();
    for path in rules.iter().flat_map(|kept| kept.rule.owned()) {
        // Whole fields of the first level: a path may lead through an array, or through what the client made of it.
        let name = path.first().to_owned();
        if seen.contains(&name) {
            continue;
        }
        let (have, want) = (first(stored, &name), first(wanted, &name));
        if have != want {
            match want.is_missing() {
                true => {
                    unset.append(&name, &Value::from(true));
                    unsets = true;
                }
                false => {
                    set.append(&name, &want);
                    sets = true;
                }
            }
        }
        seen.push(name);
    }
    if !sets && !unsets {
        return Ok(None);
    }
    let mut update = DocWriter::new();
    if sets {
        update.append("$set", &Value::Document(set.finish()));
    }
    if unsets {
        update.append("$unset", &Value::Document(unset.finish()));
    }
    Update::parse(&Value::Document(update.finish()), &[], &mut Names::new()).map(Some)
}

pub(crate) fn aggregate(ns: Namespace, pipeline: document::pipeline::Pipeline) -> ReadOp {
    ReadOp::Aggregate(Aggregate { ns, collectionless: false, pipeline, hint: None, allow_disk_use: true })
}

fn same_key(left: Option<&Value<'_>>, right: Option<&Value<'_>>) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => order::equal(left, right),
        (left, right) => left.is_none() && right.is_none(),
    }
}

fn first(doc: &Doc<'_>, name: &str) -> Value<'static> {
    doc.get(name).map_or(Value::Missing, Value::into_owned)
}

/// The value at a path, or the array on the way to it.
pub(crate) fn at(doc: &Doc<'_>, path: &Path) -> Value<'static> {
    document::value::expand::walk(doc, &path.parts).0.into_owned()
}
