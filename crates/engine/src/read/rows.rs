//! A scan as a stream of documents.

use super::present::Present;
use crate::catalog::{Collection, Index};
use crate::index::access::plan::{Plan, Source};
use crate::index::access::{Chosen, Query, Shape, choose};
use crate::index::scan::{Scan, Want};
use crate::store::keys::DOCUMENTS;
use crate::transaction::snapshot::ReadSnapshot;
use crate::transaction::write_set::Moment;
use document::op::SortSpec;
use document::pipeline::{Rows, Stream, sorted};
use document::text::carried::without_scores;
use document::{Code, Doc, Env, Error, Result};
use std::sync::Arc;

/// How many documents to leave out first, and how many to give then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

impl Window {
    /// How many documents must be found to fill it.
    pub(crate) fn reach(self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }
}

/// The documents of a query: found, sorted unless they come in order, cut to the window.
pub(crate) fn find(
    present: &Present,
    collection: &Arc<Collection>,
    query: Query<'_>,
    window: Window,
    want: Want,
) -> Result<(Rows, Arc<Plan>)> {
    let moment = present.moment()?;
    let chosen = choose(collection, &moment.snapshot, query, false)?;
    let shape = chosen.shape;
    let (mut scan, plan) = scan_of(chosen, collection, query.env, want)?;
    used(collection, &plan);
    if let Some(examined) = present.examined() {
        examined.planned(&plan);
    }
    // Without a sort every order will do.
    let ordered = plan.ordered || query.sort().is_none();
    if ordered && window.skip > 0 {
        scan.want(Want::Count);
    }
    let rows = ScanRows {
        present: present.clone(),
        snapshot: Some(moment.snapshot),
        collection: collection.clone(),
        scan,
        want,
        window: if ordered { window } else { Window::default() },
        counted: (0, 0),
        report: shape.map(|shape| (shape, if ordered { None } else { window.limit })),
    };
    let rows = in_order(Box::new(rows), query.sort.filter(|_| !ordered), window, query.env);
    let sorted_by_score = !ordered && !query.score && query.sort().is_some_and(SortSpec::reads_score);
    Ok((if sorted_by_score { without_scores(rows) } else { rows }, plan))
}

/// For `$indexStats`: a query uses the indexes of its plan.
pub(super) fn used(collection: &Collection, plan: &Plan) {
    match plan.source {
        Source::Id { .. } => collection.looked_up(),
        _ => plan.each_index(&mut |index| index.used()),
    }
}

fn scan_of(chosen: Chosen, collection: &Arc<Collection>, env: &Env, want: Want) -> Result<(Scan, Arc<Plan>)> {
    let plan = Arc::new(chosen.plan);
    Ok((Scan::new(plan.clone(), Some(collection), env, want)?, plan))
}

/// Sorts and cuts what an unordered plan gives.
fn in_order(rows: Rows, sort: Option<&SortSpec>, window: Window, env: &Env) -> Rows {
    match sort {
        Some(sort) => windowed(sorted(rows, sort.clone(), window.reach(), env), window),
        None => rows,
    }
}

/// A stream cut to a window.
pub(crate) fn windowed(rows: Rows, window: Window) -> Rows {
    if window.skip == 0 && window.limit.is_none() {
        return rows;
    }
    Box::new(Windowed { rows, window })
}

struct Windowed {
    rows: Rows,
    window: Window,
}

impl Stream for Windowed {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if self.window.limit == Some(0) {
            return Ok(None);
        }
        while self.window.skip > 0 {
            self.window.skip -= 1;
            if self.rows.next()?.is_none() {
                self.window.limit = Some(0);
                return Ok(None);
            }
        }
        if let Some(limit) = &mut self.window.limit {
            *limit -= 1;
        }
        self.rows.next()
    }

    fn pause(&mut self) {
        self.rows.pause();
    }
}

struct ScanRows {
    present: Present,
    /// The snapshot of the current batch.
    snapshot: Option<ReadSnapshot>,
    collection: Arc<Collection>,
    scan: Scan,
    want: Want,
    window: Window,
    /// The documents and keys that were counted for a command.
    counted: (u64, u64),
    /// The remembered choice of plan to report to, once, and how many of the rows are wanted if all of them must be sorted first.
    report: Option<(Shape, Option<u64>)>,
}

impl ScanRows {
    /// The snapshot of this batch; after a pause, makes sure that what the plan reads is still there.
    fn snapshot(&mut self) -> Result<ReadSnapshot> {
        let moment = self.present.moment()?;
        still_there(&self.collection, &self.scan.plan().clone(), &moment)?;
        Ok(moment.snapshot)
    }
}

impl ScanRows {
    /// Says how much work was in vain.
    fn report(&mut self) {
        let Some((shape, wanted)) = self.report.take() else { return };
        let counters = self.scan.counters();
        let results = wanted.map_or(counters.rows, |wanted| wanted.min(counters.rows));
        // A result takes an entry and a document.
        self.collection.life.plans.report(shape, counters.works().saturating_sub(2 * results));
    }
}

impl ScanRows {
    /// Counts what was looked at since the last time for the command that asked for it.
    fn count(&mut self) {
        let counters = self.scan.counters();
        let (documents, keys) = self.counted;
        self.counted = (counters.documents, counters.keys);
        if self.counted != (documents, keys)
            && let Some(examined) = self.present.examined()
        {
            // As in MongoDB, a scan of the collection itself looks at no keys.
            let keys = if self.scan.plan().reads_keys() { counters.keys - keys } else { 0 };
            examined.add(counters.documents - documents, keys);
        }
    }
}

impl Drop for ScanRows {
    fn drop(&mut self) {
        self.count();
        self.report();
    }
}

impl Stream for ScanRows {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if self.window.limit == Some(0) {
            return Ok(None);
        }
        if self.snapshot.is_none() {
            self.snapshot = Some(self.snapshot()?);
        }
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        while self.window.skip > 0 {
            if self.scan.next(snapshot)?.is_none() {
                self.window.limit = Some(0);
                return Ok(None);
            }
            self.window.skip -= 1;
            if self.window.skip == 0 {
                self.scan.want(self.want);
            }
        }
        let doc = self.scan.next_doc(snapshot)?;
        match &doc {
            Some(_) => {
                if let Some(limit) = &mut self.window.limit {
                    *limit -= 1;
                }
            }
            None => {
                self.window.limit = Some(0);
                self.count();
            }
        }
        Ok(doc)
    }

    fn pause(&mut self) {
        self.count();
        self.report();
        self.scan.pause();
        self.snapshot = None;
    }
}

/// An error if the collection or an index of the plan has gone since the last batch.
fn still_there(collection: &Collection, plan: &Plan, moment: &Moment) -> Result<()> {
    let killed = |what: String| Error::new(Code::QueryPlanKilled, what);
    // Found by what it is, since it may have another name by now.
    let by_name = moment.catalog.get(&collection.ns).filter(|found| found.id == collection.id);
    let current = match by_name {
        Some(found) => found.clone(),
        None => {
            let renamed = moment.catalog.collections(&collection.ns.db).find(|found| found.id == collection.id);
            let gone = if renamed.is_some() { "collection renamed" } else { "collection dropped" };
            return Err(killed(format!("{gone}. UUID {}", uuid(&collection.uuid))));
        }
    };
    let has = |index: &Index| index.id == DOCUMENTS || current.indexes.iter().any(|found| found.id == index.id);
    let mut missing = None;
    plan.each_index(&mut |index| {
        if !has(index) {
            missing = Some(index.name.clone());
        }
    });
    match missing {
        Some(name) => Err(killed(format!("query plan killed :: index '{name}' dropped"))),
        None => Ok(()),
    }
}

fn uuid(bytes: &[u8; 16]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().concat();
    [part(0..4), part(4..6), part(6..8), part(8..10), part(10..16)].join("-")
}
