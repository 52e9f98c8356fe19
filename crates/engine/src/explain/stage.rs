//! Plans as the tree of stages that MongoDB prints.

use crate::catalog::Index;
use crate::index::access::plan::{IndexScan, Plan, Source};
use crate::index::scan::Scan;
use document::filter::Node;
use document::{Array, Doc, DocWriter, Value};

/// One stage: what it is, what it did, and what it stands on.
pub(super) struct Stage {
    name: &'static str,
    /// Comes before the figures.
    filter: Option<Doc<'static>>,
    fields: Vec<(&'static str, Value<'static>)>,
    figures: Option<Figures>,
    inputs: Vec<Stage>,
    /// Several inputs are a list even if there is only one.
    many: bool,
}

/// What a stage did.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) returned: u64,
    /// Rounds that gave nothing.
    pub(super) idle: u64,
    pub(super) ended: bool,
    /// What only this kind of stage counts, in its order.
    pub(super) own: Vec<(&'static str, Value<'static>)>,
}

pub(super) fn number(number: u64) -> Value<'static> {
    match i32::try_from(number) {
        Ok(small) => Value::Int32(small),
        Err(_) => Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

impl Stage {
    pub(super) fn new(name: &'static str) -> Stage {
        Stage { name, filter: None, fields: Vec::new(), figures: None, inputs: Vec::new(), many: false }
    }

    pub(super) fn over(mut self, input: Stage) -> Stage {
        self.inputs = vec![input];
        self
    }

    /// What it stands on, without itself.
    fn into_input(mut self) -> Stage {
        match self.inputs.pop() {
            Some(input) => input,
            None => self,
        }
    }

    pub(super) fn over_all(mut self, inputs: Vec<Stage>) -> Stage {
        (self.inputs, self.many) = (inputs, true);
        self
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value<'static>>) -> Stage {
        self.fields.push((name, value.into()));
        self
    }

    pub(super) fn filtered(mut self, filter: Option<&Node>) -> Stage {
        self.filter = filter.map(Node::to_query);
        self
    }

    pub(super) fn did(mut self, figures: Option<Figures>) -> Stage {
        self.figures = figures;
        self
    }

    /// The tree as a document: with figures for `executionStats`, without for `queryPlanner`.
    pub(super) fn document(&self, figures: bool) -> Doc<'static> {
        let mut writer = DocWriter::new();
        writer.append("stage", &Value::from(self.name));
        if let Some(filter) = &self.filter {
            writer.append("filter", &Value::Document(filter.borrow()));
        }
        let shown = self.figures.clone().unwrap_or_default();
        if figures {
            let works = shown.returned + shown.idle + u64::from(shown.ended);
            writer.append("nReturned", &number(shown.returned));
            writer.append("executionTimeMillisEstimate", &Value::Int32(0));
            writer.append("works", &number(works));
            writer.append("advanced", &number(shown.returned));
            writer.append("needTime", &number(shown.idle));
            for name in ["needYield", "saveState", "restoreState"] {
                writer.append(name, &Value::Int32(0));
            }
            writer.append("isEOF", &Value::Int32(i32::from(shown.ended)));
        }
        for (name, value) in &self.fields {
            writer.append(name, value);
        }
        if figures {
            for (name, value) in &shown.own {
                writer.append(name, value);
            }
        }
        match (self.many, self.inputs.as_slice()) {
            (false, [input]) => {
                writer.append("inputStage", &Value::Document(input.document(figures)));
            }
            (false, _) => {}
            (true, inputs) => {
                let inputs: Array<'static> =
                    inputs.iter().map(|input| Value::Document(input.document(figures))).collect();
                writer.append("inputStages", &Value::Array(inputs));
            }
        }
        writer.finish()
    }
}

/// The stages of a plan up to the documents. `scan` tells what was done, if it was run.
pub(super) fn of_plan(plan: &Plan, scan: Option<&Scan>) -> Stage {
    let counters = scan.map(Scan::counters);
    let ended = scan.is_some_and(Scan::has_ended);
    let figures =
        |returned: u64, seen: u64| Figures { returned, idle: seen.saturating_sub(returned), ended, own: Vec::new() };
    match &plan.source {
        Source::Nothing => Stage::new("EOF").did(counters.map(|_| Figures { ended: true, ..Figures::default() })),
        Source::Id { .. } => Stage::new("IDHACK").did(counters.map(|counters| Figures {
            own: vec![("keysExamined", number(counters.keys)), ("docsExamined", number(counters.documents))],
            ended: true,
            ..figures(counters.rows, counters.rows)
        })),
        Source::Collection { reverse, .. } => Stage::new("COLLSCAN")
            .filtered(plan.residual.as_ref())
            .with("direction", if *reverse { "backward" } else { "forward" })
            .did(counters.map(|counters| Figures {
                own: vec![("docsExamined", number(counters.documents))],
                ..figures(counters.rows, counters.documents + 1)
            })),
        Source::Index(index) => {
            let entries = of_index("IXSCAN", index).did(counters.as_ref().map(|counters| Figures {
                own: vec![
                    ("keysExamined", number(counters.keys)),
                    ("seeks", number(counters.seeks)),
                    ("dupsTested", number(if index.may_repeat() { counters.entries + counters.repeated } else { 0 })),
                    ("dupsDropped", number(counters.repeated)),
                ],
                ..figures(counters.entries, counters.keys)
            }));
            if index.covering.is_some() {
                return entries;
            }
            Stage::new("FETCH").filtered(plan.residual.as_ref()).over(entries).did(counters.map(|counters| Figures {
                own: vec![("docsExamined", number(counters.documents)), ("alreadyHasObj", Value::Int32(0))],
                ..figures(counters.rows, counters.entries)
            }))
        }
        Source::Text(search) => super::text::of_search(plan, search, scan),
        Source::Union(plans) => {
            let either = of_alternatives(Stage::new("OR"), plans, scan);
            let found: u64 = scan.map_or(0, rows_of_parts);
            Stage::new("SUBPLAN").over(either).did(counters.map(|counters| figures(counters.rows, found)))
        }
        Source::Merge(merged) => {
            let stage = Stage::new("SORT_MERGE").with("sortPattern", merged.order.to_document());
            of_alternatives(stage, &merged.plans, scan)
        }
    }
}

fn rows_of_parts(scan: &Scan) -> u64 {
    scan.parts().map(|part| part.counters().rows).sum()
}

/// The stage that puts alternatives together, over them. Where none of them tests documents, these are fetched once, behind it.
fn of_alternatives(stage: Stage, plans: &[Plan], scan: Option<&Scan>) -> Stage {
    let entries_only = plans.iter().all(|plan| plan.residual.is_none() && matches!(plan.source, Source::Index(_)));
    let mut parts = scan.map(Scan::parts).into_iter().flatten();
    let inputs = plans.iter().map(|plan| of_plan(plan, parts.next()));
    let inputs: Vec<Stage> = if entries_only { inputs.map(Stage::into_input).collect() } else { inputs.collect() };
    let counters = scan.map(Scan::counters);
    let found: u64 = scan.map_or(0, rows_of_parts);
    let ended = scan.is_some_and(Scan::has_ended);
    let figures =
        |returned: u64| Figures { returned, idle: found.saturating_sub(returned), ended, ..Figures::default() };
    let either = stage.over_all(inputs).did(counters.as_ref().map(|counters| Figures {
        own: vec![("dupsTested", number(found)), ("dupsDropped", number(counters.rows.abs_diff(found)))],
        ..figures(counters.rows)
    }));
    if !entries_only {
        return either;
    }
    Stage::new("FETCH").over(either).did(counters.map(|counters| Figures {
        own: vec![("docsExamined", number(counters.documents)), ("alreadyHasObj", Value::Int32(0))],
        ..figures(counters.rows)
    }))
}

/// A stage that reads an index.
pub(super) fn of_index(name: &'static str, scan: &IndexScan) -> Stage {
    let key_filter = (!scan.candidate.key_tests.is_empty()).then(|| {
        Node::all_of(scan.candidate.key_tests.iter().filter_map(|(at, test)| {
            let path = scan.index().keys.get(*at)?.path.clone();
            Some(Node::Field { path, test: test.clone() })
        }))
    });
    let stage = about_index(Stage::new(name).filtered(key_filter.as_ref()), scan.index(), &scan.candidate.multikey)
        .with("direction", if scan.reverse { "backward" } else { "forward" });
    match &scan.by_hand {
        None => stage.with("indexBounds", bounds(scan)),
        Some(_) => stage.with("indexBounds", Doc::empty()),
    }
}

pub(super) fn about_index(stage: Stage, index: &Index, multikey: &[u64]) -> Stage {
    let stage = stage
        .with("keyPattern", index.key_pattern().into_owned())
        .with("indexName", Value::string(&*index.name))
        .with("isMultiKey", multikey.iter().any(|bits| *bits != 0));
    // Which path has the arrays is not known of a text index.
    let stage = match index.text {
        None => stage.with("multiKeyPaths", multikey_paths(index, multikey)),
        Some(_) => stage,
    };
    stage
        .with("isUnique", index.unique)
        .with("isSparse", index.sparse)
        .with("isPartial", index.partial.is_some())
        .with("indexVersion", Value::Int32(2))
}

/// Per key, the leading parts of its path that have been arrays.
fn multikey_paths(index: &Index, multikey: &[u64]) -> Doc<'static> {
    let mut writer = DocWriter::new();
    for (key, bits) in index.keys.iter().zip(multikey) {
        let names: Vec<&str> = key.path.parts.iter().map(|part| &*part.name).collect();
        let arrays: Array<'static> = (0..names.len().min(64))
            .filter(|place| bits >> place & 1 == 1)
            .map(|place| Value::string(names.get(..=place).unwrap_or_default().join(".")))
            .collect();
        writer.append(&key.path.dotted(), &Value::Array(arrays));
    }
    writer.finish()
}

fn bounds(scan: &IndexScan) -> Doc<'static> {
    let mut writer = DocWriter::new();
    for (key, intervals) in scan.index().keys.iter().zip(&scan.candidate.bounds) {
        let texts: Array<'static> =
            intervals.texts(scan.reverse != key.descending).into_iter().map(Value::string).collect();
        writer.append(&key.path.dotted(), &Value::Array(texts));
    }
    writer.finish()
}

/// `DISTINCT_SCAN`: all of an index, from one value to the next.
pub(super) fn of_distinct(index: &Index) -> Stage {
    let multikey: Vec<u64> = (0..index.keys.len()).map(|at| index.multikey(at)).collect();
    let mut bounds = DocWriter::new();
    for key in &index.keys {
        let whole = if key.descending { "[MaxKey, MinKey]" } else { "[MinKey, MaxKey]" };
        bounds.append(&key.path.dotted(), &Value::Array([Value::from(whole)].into_iter().collect()));
    }
    about_index(Stage::new("DISTINCT_SCAN"), index, &multikey)
        .with("direction", "forward")
        .with("indexBounds", bounds.finish())
}

/// `COUNT_SCAN`: a count made of entries alone, from one key to another.
pub(super) fn of_count(scan: &IndexScan, figures: Option<Figures>) -> Option<Stage> {
    let (mut start, mut end) = (DocWriter::new(), DocWriter::new());
    let (mut from_inclusive, mut to_inclusive) = (true, true);
    for (key, intervals) in scan.index().keys.iter().zip(&scan.candidate.bounds) {
        let [only] = intervals.as_slice() else { return None };
        let name = key.path.dotted();
        start.append(&name, &only.from.value);
        end.append(&name, &only.to.value);
        from_inclusive &= !only.from.after;
        to_inclusive &= only.to.after;
    }
    let mut bounds = DocWriter::new();
    bounds.append("startKey", &Value::Document(start.finish()));
    bounds.append("startKeyInclusive", &Value::Bool(from_inclusive));
    bounds.append("endKey", &Value::Document(end.finish()));
    bounds.append("endKeyInclusive", &Value::Bool(to_inclusive));
    let stage = about_index(Stage::new("COUNT_SCAN"), scan.index(), &scan.candidate.multikey);
    Some(stage.with("indexBounds", bounds.finish()).did(figures))
}
