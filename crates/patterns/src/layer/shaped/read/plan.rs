//! How a read of a logical name is run: what the backend is asked, and what is done here.

use super::asked::Asked;
use super::figures::Figures;
use super::finish::Finish;
use super::in_order::InOrder;
use super::over;
use crate::shape::bucket::{Bucket, Dialect};
use crate::shape::{Form, Shaped};
use document::filter::Filter;
use document::op::{Aggregate, Context, Find, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::{Array, Result};
use std::sync::Arc;

pub(super) struct Plan {
    /// On the stored documents.
    pub(super) op: ReadOp,
    /// What is run here over its rows.
    pub(super) here: Option<Pipeline>,
    pub(super) finish: Finish,
    /// What was asked of the stored documents, for people.
    pub(super) pushed: Filter,
    /// From which pre-computed figures it is answered.
    pub(super) figures: Option<&'static str>,
    /// All sides must be read in one moment.
    pub(super) two_sided: bool,
    /// How to find the answer if the figures turn out to be no exact one.
    pub(super) otherwise: Option<Box<Plan>>,
}

impl Plan {
    pub(super) fn new(shaped: &Shaped, op: &ReadOp, context: &Context, forwards: bool) -> Result<Plan> {
        let asked = Asked::of(op)?;
        let only = match &*shaped.sides {
            [side] => match &side.form {
                Form::Bucket(bucket) => Some(bucket),
                Form::Plain => None,
            },
            _ => None,
        };
        let figures = only.and_then(|bucket| Figures::of(bucket, &asked.source(), context));
        let filter = asked.pipeline.split().leading.filter;
        let pushed = shaped.sides.first().map_or_else(Filter::all, |side| over::pushed(side, &filter));
        let mut maker = Maker { shaped, asked, ns: stored(shaped, op), filter, pushed };
        match (forwards, only, figures) {
            (false, _, Some(figures)) => maker.native_figures(figures),
            (false, Some(bucket), None) if maker.in_order(bucket).is_some() => maker.native_in_order(bucket),
            (false, ..) => maker.native(),
            (true, Some(bucket), Some(figures)) => match figures.said() {
                Some(stages) => Ok(maker.said_figures(bucket, figures, &stages)),
                None => Ok(maker.upstream(Some(bucket))),
            },
            (true, only, _) => Ok(maker.upstream(only)),
        }
    }
}

/// What a read of stored documents is in MQL, whoever runs it.
pub(super) fn in_words(shaped: &Shaped, op: &ReadOp, context: &Context) -> Result<Array<'static>> {
    let plan = Plan::new(shaped, op, context, true)?;
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
fn stored(shaped: &Shaped, op: &ReadOp) -> Namespace {
    shaped.sides.first().map_or_else(|| op.ns().clone(), |side| side.stored.clone())
}

struct Maker<'s> {
    shaped: &'s Shaped,
    asked: Asked,
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
        let two_sided = self.shaped.sides.len() > 1;
        let (pushed, finish) = (self.pushed.clone(), self.finish());
        Plan { op, here: None, finish, pushed, figures: None, two_sided, otherwise: None }
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
        let pipeline = over::native(self.shaped, &self.filter)?.then(self.asked_natively());
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

    /// By a real MongoDB as far as it can.
    fn upstream(&mut self, only: Option<&Arc<Bucket>>) -> Plan {
        match only.filter(|bucket| bucket.by.iter().any(|series| series.hex) && !self.asked.reads_others()) {
            Some(bucket) => self.finished_here(bucket),
            None => self.said(),
        }
    }

    /// All that was asked as MQL over stored documents, but for projections that only a find can say.
    fn in_words(&self) -> Array<'static> {
        let all = over::said(self.shaped, &self.filter, Dialect::MongoDb);
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

    fn finished_here(&mut self, bucket: &Arc<Bucket>) -> Plan {
        let here = bucket.unpack().then(self.asked_natively());
        let op = ReadOp::Find(Find {
            ns: self.ns.clone(),
            filter: self.pushed.clone(),
            sort: None,
            projection: None,
            skip: 0,
            limit: None,
            hint: self.asked.hint.clone(),
            min: None,
            max: None,
            return_key: false,
            show_record_id: false,
            allow_disk_use: self.asked.allow_disk_use,
        });
        Plan { here: Some(here), ..self.plan(op) }
    }

    fn said_figures(&mut self, bucket: &Arc<Bucket>, figures: Figures, stages: &Array<'static>) -> Plan {
        let name = figures.name();
        let op = self.aggregate(words(self.behind_pushed(stages)));
        let finish = self.asked.finish.again();
        let otherwise = Some(Box::new(self.upstream(Some(bucket))));
        let here = Some(figures.into_answer());
        Plan { here, finish, figures: Some(name), otherwise, ..self.plan(op) }
    }
}

/// A pipeline for a real MongoDB.
fn words(source: Array<'static>) -> Pipeline {
    Pipeline { stages: Vec::new(), sink: None, source: Some(source) }
}
