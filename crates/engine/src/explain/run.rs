//! Running a plan for `explain`, and the stages around it: sort, skip, limit, projection, count, update, delete.

use super::stage::{self, Figures, Stage, number};
use crate::catalog::{Collection, Index};
use crate::index::access::plan::{Plan, Source};
use crate::index::scan::{Scan, Want};
use crate::read::{Window, distinct_keys};
use crate::store::keys::DOCUMENTS;
use crate::transaction::snapshot::ReadSnapshot;
use document::filter::Filter;
use document::op::{Hint, SortSpec};
use document::update::Update;
use document::value::Path;
use document::{Doc, DocWriter, Env, Result, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an explained operation asks of a collection.
#[derive(Clone, Copy)]
pub(super) struct ExplainedQuery<'q> {
    pub(super) filter: &'q Filter,
    pub(super) sort: Option<&'q SortSpec>,
    pub(super) hint: Option<&'q Hint>,
    pub(super) min: Option<&'q Doc<'static>>,
    pub(super) max: Option<&'q Doc<'static>>,
    pub(super) needed: Option<&'q [Path]>,
    pub(super) projection: Option<&'q Doc<'static>>,
    pub(super) window: Window,
    pub(super) want: Want,
    pub(super) top: Top<'q>,
    /// Whether the score of a text search is read.
    pub(super) score: bool,
}

/// What is done with the documents in the end.
#[derive(Clone, Copy)]
pub(super) enum Top<'q> {
    Return,
    Count,
    /// The collection knows how many documents it has.
    FastCount,
    /// The different values of a path, from one to the next in an index.
    Distinct(&'q Index, &'q Path),
    Update(&'q Update, bool),
    Delete,
}

impl<'q> ExplainedQuery<'q> {
    pub(super) fn all(filter: &'q Filter) -> ExplainedQuery<'q> {
        ExplainedQuery {
            filter,
            sort: None,
            hint: None,
            min: None,
            max: None,
            needed: None,
            projection: None,
            window: Window::default(),
            want: Want::Documents,
            top: Top::Return,
            score: false,
        }
    }
}

/// What a run found out.
pub(super) struct Outcome {
    scan: Option<Scan>,
    /// Documents that left the scan and the sort.
    found: u64,
    /// Documents behind skip and limit.
    kept: u64,
    bytes: u64,
    changed: u64,
    /// Entries looked at by what is no scan.
    examined: u64,
    pub(super) took: Duration,
}

impl Outcome {
    pub(super) fn keys(&self) -> u64 {
        match self.scan.as_ref().map(|scan| (&scan.plan().source, scan.counters())) {
            None => self.examined,
            Some((Source::Collection { .. } | Source::Nothing, _)) => 0,
            Some((_, counters)) => counters.keys,
        }
    }

    pub(super) fn documents(&self) -> u64 {
        self.scan.as_ref().map_or(0, |scan| scan.counters().documents)
    }

    pub(super) fn returned(&self, asked: &ExplainedQuery<'_>) -> u64 {
        if matches!(asked.top, Top::Return | Top::Distinct(..)) { self.kept } else { 0 }
    }
}

pub(super) fn run(
    plan: &Plan,
    collection: Option<&Arc<Collection>>,
    snapshot: &ReadSnapshot,
    asked: &ExplainedQuery<'_>,
    env: &Env,
) -> Result<Outcome> {
    let start = Instant::now();
    let mut outcome =
        Outcome { scan: None, found: 0, kept: 0, bytes: 0, changed: 0, examined: 0, took: Duration::ZERO };
    if matches!(asked.top, Top::FastCount) {
        outcome.kept = collection.map_or(0, |collection| collection.count());
        return Ok(outcome);
    }
    if let (Top::Distinct(index, path), Some(collection)) = (asked.top, collection) {
        (outcome.kept, outcome.examined) = distinct_keys(snapshot, collection, index, path, env)?;
        outcome.took = start.elapsed();
        return Ok(outcome);
    }
    let mut scan = Scan::new(Arc::new(plan.clone()), collection.map(|found| &**found), env, asked.want)?;
    if matches!(asked.top, Top::Update(..)) {
        scan = scan.with_details(asked.filter);
    }
    let reach = asked.window.reach().filter(|_| plan.ordered);
    while reach.is_none_or(|reach| outcome.found < reach) {
        let Some(row) = scan.next(snapshot)? else { break };
        outcome.found += 1;
        outcome.bytes += u64::try_from(row.doc.as_bytes().len()).unwrap_or_default();
        if let Top::Update(update, _) = asked.top
            && asked.window.limit.is_none_or(|limit| outcome.changed < limit)
        {
            outcome.changed += u64::from(super::changes(update, &row.doc, &row.details, env)?);
        }
    }
    let behind = outcome.found.saturating_sub(asked.window.skip);
    outcome.kept = asked.window.limit.map_or(behind, |limit| limit.min(behind));
    outcome.scan = Some(scan);
    outcome.took = start.elapsed();
    Ok(outcome)
}

/// The whole tree; with figures if it was run.
pub(super) fn tree(plan: &Plan, asked: &ExplainedQuery<'_>, outcome: Option<&Outcome>) -> Stage {
    let scan = outcome.and_then(|outcome| outcome.scan.as_ref());
    if matches!(asked.top, Top::FastCount) && !matches!(plan.source, Source::Nothing) {
        return Stage::new("RECORD_STORE_FAST_COUNT").did(outcome.map(|outcome| counted(outcome, asked)));
    }
    if let Top::Distinct(index, path) = asked.top {
        return distinct(index, path, outcome);
    }
    let mut tree = stage::of_plan(plan, scan);
    if matches!(plan.source, Source::Nothing) {
        return wrapped(tree, asked, outcome);
    }
    if let (Top::Count, Some(count)) = (asked.top, count_scan(plan, outcome)) {
        tree = count;
    }
    // A search sorts what it finds by itself.
    let blocking = asked.sort.filter(|sort| (!plan.ordered || sort.reads_score()) && !sort.keys.is_empty());
    if let Some(sort) = blocking {
        tree = sorted(tree, sort, asked, outcome);
    }
    let passed = |outcome: &Outcome, returned: u64, idle: u64| {
        let ended = outcome.scan.as_ref().is_some_and(Scan::has_ended);
        Figures { returned, idle, ended, own: Vec::new() }
    };
    if asked.window.skip > 0 && !matches!(asked.top, Top::Count) {
        let left = Value::Int32(0);
        let amount = if outcome.is_some() { left } else { number(asked.window.skip) };
        let skipped = |outcome: &Outcome| passed(outcome, outcome.kept, outcome.found.min(asked.window.skip));
        tree = Stage::new("SKIP").with("skipAmount", amount).over(tree).did(outcome.map(skipped));
    }
    if let Some(spec) = asked.projection {
        let name = projection_stage(spec, plan);
        let all = |outcome: &Outcome| passed(outcome, outcome.kept, 0);
        tree = Stage::new(name).with("transformBy", spec.clone()).over(tree).did(outcome.map(all));
    }
    // A sort keeps no more than the limit itself.
    let shown = matches!(asked.top, Top::Return) || asked.sort.is_some();
    let limit = asked.window.limit.filter(|_| blocking.is_none() && shown && !matches!(plan.source, Source::Id { .. }));
    if let Some(limit) = limit {
        let all = |outcome: &Outcome| Figures { ended: true, ..passed(outcome, outcome.kept, 0) };
        tree = Stage::new("LIMIT").with("limitAmount", number(limit)).over(tree).did(outcome.map(all));
    }
    wrapped(tree, asked, outcome)
}

fn distinct(index: &Index, path: &Path, outcome: Option<&Outcome>) -> Stage {
    let figures = |outcome: &Outcome, own| Figures { returned: outcome.kept, idle: 0, ended: true, own };
    let scan = stage::of_distinct(index)
        .did(outcome.map(|outcome| figures(outcome, vec![("keysExamined", number(outcome.examined))])));
    let name = if path.parts.len() > 1 { "PROJECTION_DEFAULT" } else { "PROJECTION_COVERED" };
    Stage::new(name)
        .with("transformBy", Doc::empty())
        .over(scan)
        .did(outcome.map(|outcome| figures(outcome, Vec::new())))
}

fn sorted(input: Stage, sort: &SortSpec, asked: &ExplainedQuery<'_>, outcome: Option<&Outcome>) -> Stage {
    let mut stage = Stage::new("SORT").with("sortPattern", pattern(sort)).with("memLimit", Value::Int32(100 << 20));
    if let Some(reach) = asked.window.reach() {
        stage = stage.with("limitAmount", number(reach));
    }
    let kind = if sort.reads_score() { "default" } else { "simple" };
    stage.with("type", kind).over(input).did(outcome.map(|outcome| Figures {
        returned: asked.window.reach().map_or(outcome.found, |reach| reach.min(outcome.found)),
        idle: outcome.found + 1,
        ended: true,
        own: vec![
            ("totalDataSizeSorted", number(outcome.bytes)),
            ("usedDisk", Value::Bool(false)),
            ("spills", Value::Int32(0)),
        ],
    }))
}

/// As MongoDB shows it: scores are computed fields.
fn pattern(sort: &SortSpec) -> Doc<'static> {
    let (mut writer, mut computed) = (DocWriter::new(), 0);
    for ((name, value), key) in sort.to_document().iter().zip(&sort.keys) {
        if key.is_by_score() {
            writer.append(&format!("$computed{computed}"), &value);
            computed += 1;
        } else {
            writer.append(name.as_str(), &value);
        }
    }
    writer.finish()
}

fn counted(outcome: &Outcome, asked: &ExplainedQuery<'_>) -> Figures {
    Figures {
        returned: 0,
        idle: outcome.found,
        ended: true,
        own: vec![("nCounted", number(outcome.kept)), ("nSkipped", number(asked.window.skip.min(outcome.found)))],
    }
}

fn wrapped(tree: Stage, asked: &ExplainedQuery<'_>, outcome: Option<&Outcome>) -> Stage {
    match asked.top {
        Top::Return | Top::Distinct(..) => tree,
        Top::Count | Top::FastCount => {
            Stage::new("COUNT").over(tree).did(outcome.map(|outcome| counted(outcome, asked)))
        }
        Top::Update(_, upsert) => Stage::new("UPDATE").over(tree).did(outcome.map(|outcome| Figures {
            returned: 0,
            idle: outcome.kept,
            ended: true,
            own: vec![
                ("nMatched", number(outcome.kept)),
                ("nWouldModify", number(outcome.changed)),
                ("nWouldUpsert", number(u64::from(upsert && outcome.kept == 0))),
            ],
        })),
        Top::Delete => Stage::new("DELETE").over(tree).did(outcome.map(|outcome| Figures {
            returned: 0,
            idle: outcome.kept,
            ended: true,
            own: vec![("nWouldDelete", number(outcome.kept))],
        })),
    }
}

/// A count made of entries alone.
fn count_scan(plan: &Plan, outcome: Option<&Outcome>) -> Option<Stage> {
    let Source::Index(scan) = &plan.source else { return None };
    if plan.residual.is_some() || scan.index().id == DOCUMENTS || !scan.candidate.key_tests.is_empty() {
        return None;
    }
    stage::of_count(
        scan,
        outcome.map(|outcome| Figures {
            returned: outcome.found,
            idle: 0,
            ended: true,
            own: vec![("keysExamined", number(outcome.keys()))],
        }),
    )
}

/// Which of MongoDB's three projections it would be.
fn projection_stage(spec: &Doc<'_>, plan: &Plan) -> &'static str {
    let plain = spec.iter().all(|(name, value)| {
        let included = (value.is_number() || matches!(value, Value::Bool(_))) && value.is_truthy();
        !name.as_str().contains(['.', '$']) && (included || name.as_str() == "_id")
    });
    let includes = spec.iter().any(|(_, value)| value.is_truthy());
    match (plain && includes, plan.is_covered()) {
        (true, true) => "PROJECTION_COVERED",
        (true, false) => "PROJECTION_SIMPLE",
        (false, _) => "PROJECTION_DEFAULT",
    }
}
