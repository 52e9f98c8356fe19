//! How a read of a logical name is run: what the backend is asked, and what is done here.

use crate::layer::shaped::read::extent::Extent;
use crate::layer::shaped::read::in_order::InOrder;
use crate::layer::shaped::read::read_request::ReadRequest;
use crate::layer::shaped::read::result::Finish;
use crate::layer::shaped::read::summaries::Figures;
use crate::layer::shaped::read::{local_pipeline, union};
use crate::shapes::Stack;
use crate::shapes::bucket::{Bucket, Dialect};
use document::filter::Filter;
use document::op::{Aggregate, Context, Find, Namespace, ReadOp, SortSpec};
use document::pipeline::Pipeline;
use document::{Array, Result};
use std::sync::Arc;

pub(super) struct Plan {
    /// On the stored documents.
    pub(super) op: ReadOp,
    /// What is run here over its rows, and of how many at first.
    pub(super) here: Option<Pipeline>,
    pub(super) first: usize,
    pub(super) finish: Finish,
    /// What was asked of the stored documents, for people.
    pub(super) pushed: Filter,
    /// From which pre-computed figures it is answered.
    pub(super) figures: Option<&'static str>,
    /// All sides must be read in one moment.
    pub(super) two_sided: bool,
    /// How to find the answer if this turns out not to be the way.
    pub(super) otherwise: Option<(Check, Box<Plan>)>,
}

/// What is not known before the backend has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Whether figures that MongoDB added up are exact.
    Exact,
    /// Whether the first rows are all.
    Few,
}

/// For whom a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Runs our code.
    Embedded,
    MongoDb,
    /// To read: all that can be is said as one pipeline.
    People,
}

impl Plan {
    pub(super) fn new(shaped: &Stack, op: &ReadOp, context: &Context, runs_our_code: bool) -> Result<Plan> {
        Plan::made(shaped, op, context, if runs_our_code { For::Embedded } else { For::MongoDb })
    }

    fn made(shaped: &Stack, op: &ReadOp, context: &Context, whom: For) -> Result<Plan> {
        let asked = ReadRequest::of(op)?;
        let only = shaped.only_place().and_then(|place| place.bucket());
        let figures = only.and_then(|bucket| Figures::of(bucket, &asked.source(), context));
        let filter = asked.pipeline.split().leading.filter;
        let pushed = shaped.places.first().map_or_else(Filter::all, |side| union::pushed(side, &filter));
        let mut maker = Maker { shaped, asked, ns: stored(shaped, op), filter, pushed };
        match (whom, only, figures) {
            (For::Embedded, _, Some(figures)) => maker.native_figures(figures),
            (For::Embedded, Some(bucket), None) if maker.in_order(bucket).is_some() => maker.native_in_order(bucket),
            (For::Embedded, ..) => maker.native(),
            (For::MongoDb, Some(bucket), figures) if !maker.asked.reads_others() => Ok(maker.moved(bucket, figures)),
            (_, only, figures) => Ok(maker.in_mongodb(only, figures)),
        }
    }
}

/// What a read of stored documents is in MQL, whoever runs it.
pub(super) fn in_words(shaped: &Stack, op: &ReadOp, context: &Context) -> Result<Array<'static>> {
    let plan = Plan::made(shaped, op, context, For::People)?;
    let stages = match (&plan.op, plan.here.filter(|_| plan.figures.is_none())) {
        (ReadOp::Aggregate(op), _) => op.pipeline.source.clone().unwrap_or_else(Array::empty),
        (_, here) => {
            let found = Pipeline::of_query(&plan.pushed, None, 0, None).source.into_iter();
            let here = here.and_then(|here| here.source).into_iter();
            found.chain(here).flat_map(|stages| stages.iter().collect::<Vec<_>>()).collect()
        }
    };
    Ok(stages)
}

/// Where the first side is stored.
fn stored(shaped: &Stack, op: &ReadOp) -> Namespace {
    shaped.places.first().map_or_else(|| op.ns().clone(), |side| side.stored.clone())
}

struct Maker<'s> {
    shaped: &'s Stack,
    asked: ReadRequest,
    ns: Namespace,
    /// What the logical documents must match first, and what that says about those of the first side.
    filter: Filter,
    pushed: Filter,
}

impl Maker<'_> {
    fn finish(&mut self) -> Finish {
        std::mem::replace(&mut self.asked.finish, Finish::Rows)
    }

    fn aggregate(&self, pipeline: Pipeline) -> ReadOp {
        ReadOp::Aggregate(Aggregate {
            ns: self.ns.clone(),
            collectionless: false,
            pipeline,
            hint: self.asked.hint.clone(),
            allow_disk_use: self.asked.allow_disk_use,
        })
    }

    fn plan(&mut self, op: ReadOp) -> Plan {
        let two_sided = self.shaped.places.len() > 1;
        let (pushed, finish) = (self.pushed.clone(), self.finish());
        Plan { op, here: None, first: local_pipeline::FIRST, finish, pushed, figures: None, two_sided, otherwise: None }
    }

    /// What was asked, with what a find shows as its last stage.
    fn asked_natively(&self) -> Pipeline {
        let asked = self.asked.pipeline.clone();
        match &self.asked.projecting {
            Some(projecting) => {
                let said = projecting.said().map(|stage| [stage].into_iter().collect());
                asked.then(Pipeline { stages: vec![projecting.clone()], sink: None, source: said })
            }
            None => asked,
        }
    }

    fn native(&mut self) -> Result<Plan> {
        let pipeline = union::native(self.shaped, &self.filter)?.then(self.asked_natively());
        let op = self.aggregate(pipeline);
        Ok(self.plan(op))
    }

    fn in_order(&self, bucket: &Arc<Bucket>) -> Option<InOrder> {
        let leading = self.asked.pipeline.split().leading;
        InOrder::of(bucket, &leading.filter, leading.sort.as_ref()?)
    }

    /// The same where buckets come in the order that was asked for.
    fn native_in_order(&mut self, bucket: &Arc<Bucket>) -> Result<Plan> {
        let Some(in_order) = self.in_order(bucket) else { return self.native() };
        let split = self.asked_natively().split();
        let leading = &split.leading;
        let found = Pipeline::of_query(&self.pushed, Some(&in_order.stored()), 0, None);
        let sorted = found.then(Pipeline::of_stage(in_order, None));
        let rest = Pipeline::of_query(&leading.filter, None, leading.skip, leading.limit).then(split.rest);
        let op = self.aggregate(sorted.then(rest));
        Ok(self.plan(op))
    }

    fn native_figures(&mut self, figures: Figures) -> Result<Plan> {
        let name = figures.name();
        let pipeline = Pipeline::of_query(&self.pushed, None, 0, None).then(figures.native());
        let op = self.aggregate(pipeline);
        Ok(Plan { figures: Some(name), ..self.plan(op) })
    }

    /// Buckets of a real MongoDB are moved and taken apart here, if they are few.
    fn moved(&mut self, bucket: &Arc<Bucket>, figures: Option<Figures>) -> Plan {
        match (Extent::of(bucket, &self.filter), figures) {
            (Extent::Few(most), Some(figures)) => self.figures_here(figures, most),
            (Extent::Perhaps(most), Some(figures)) => {
                let finish = self.asked.finish.again();
                let otherwise = Box::new(self.in_mongodb(Some(bucket), Some(figures.clone())));
                self.asked.finish = finish;
                Plan { otherwise: Some((Check::Few, otherwise)), ..self.figures_here(figures, most) }
            }
            (Extent::Few(most), None) => self.finished_here(bucket, most + 1),
            (_, figures) => match self.first_in_order(bucket) {
                Some(plan) => plan,
                None => self.in_mongodb(Some(bucket), figures),
            },
        }
    }

    /// By a real MongoDB as far as it can.
    fn in_mongodb(&mut self, only: Option<&Arc<Bucket>>, figures: Option<Figures>) -> Plan {
        let said = figures.and_then(|figures| figures.said().map(|stages| (figures, stages)));
        match (only, said) {
            (Some(bucket), Some((figures, stages))) => self.said_figures(bucket, figures, &stages),
            _ => self.upstream(only),
        }
    }

    fn upstream(&mut self, only: Option<&Arc<Bucket>>) -> Plan {
        match only.filter(|bucket| bucket.by.iter().any(|series| series.hex) && !self.asked.reads_others()) {
            Some(bucket) => self.finished_here(bucket, local_pipeline::FIRST),
            None => self.said(),
        }
    }

    /// The first readings of a series in the order of time, whatever there is behind them.
    fn first_in_order(&mut self, bucket: &Arc<Bucket>) -> Option<Plan> {
        let split = self.asked_natively().split();
        let leading = split.leading;
        let in_order = InOrder::of(bucket, &leading.filter, leading.sort.as_ref()?)?;
        let wanted = leading.skip.saturating_add(leading.limit?);
        // A condition on readings themselves may be met by none of them: that is not looked for across a network.
        let first = Extent::first(bucket, &leading.filter, wanted)?;
        let stored = in_order.stored();
        let rest = Pipeline::of_query(&leading.filter, None, leading.skip, leading.limit).then(split.rest);
        let here = Some(Pipeline::of_stage(in_order, None).then(rest));
        let op = self.find(Some(stored));
        Some(Plan { here, first, ..self.plan(op) })
    }

    /// All that was asked as MQL over stored documents, but for projections that only a find can say.
    fn in_words(&self) -> Array<'static> {
        let all = union::said(self.shaped, &self.filter, Dialect::MongoDb);
        let projecting = self.asked.projecting.as_ref().and_then(|projecting| projecting.said());
        all.iter().chain(self.asked.source().iter()).chain(projecting).collect()
    }

    /// Stages over the stored documents that come into question.
    fn behind_pushed(&self, stages: &Array<'static>) -> Array<'static> {
        let found = Pipeline::of_query(&self.pushed, None, 0, None).source.unwrap_or_else(Array::empty);
        found.iter().chain(stages.iter()).collect()
    }

    fn said(&mut self) -> Plan {
        let op = self.aggregate(words(self.in_words()));
        if let Some(projecting) = self.asked.projecting.take().filter(|projecting| projecting.said().is_none()) {
            self.asked.finish = Finish::Project(projecting);
        }
        self.plan(op)
    }

    /// The stored documents as they are.
    fn find(&self, sort: Option<SortSpec>) -> ReadOp {
        ReadOp::Find(Find {
            sort,
            hint: self.asked.hint.clone(),
            allow_disk_use: self.asked.allow_disk_use,
            ..Find::matching(self.ns.clone(), self.pushed.clone())
        })
    }

    fn finished_here(&mut self, bucket: &Arc<Bucket>, first: usize) -> Plan {
        let here = Some(bucket.unpack().then(self.asked_natively()));
        let op = self.find(None);
        Plan { here, first, ..self.plan(op) }
    }

    /// The figures of at most so many buckets. One more is asked for, so that the answer says that it is the last.
    fn figures_here(&mut self, figures: Figures, most: usize) -> Plan {
        let (name, op) = (figures.name(), self.find(None));
        Plan { here: Some(figures.native()), first: most + 1, figures: Some(name), ..self.plan(op) }
    }

    fn said_figures(&mut self, bucket: &Arc<Bucket>, figures: Figures, stages: &Array<'static>) -> Plan {
        let name = figures.name();
        let op = self.aggregate(words(self.behind_pushed(stages)));
        let finish = self.asked.finish.again();
        let otherwise = Some((Check::Exact, Box::new(self.upstream(Some(bucket)))));
        let here = Some(figures.into_answer());
        Plan { here, finish, figures: Some(name), otherwise, ..self.plan(op) }
    }
}

/// A pipeline for a real MongoDB.
fn words(source: Array<'static>) -> Pipeline {
    Pipeline { stages: Vec::new(), sink: None, source: Some(source) }
}
