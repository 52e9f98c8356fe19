//! Which short cut a read of buckets takes, if any.
//!
//! The embedded store runs our code over raw buckets. A real MongoDB either gives buckets as they are, and the rest is done in
//! this process, or is asked for their summaries in MQL.

use crate::rule::read::{Check, ReadPlan, ReadRequest, Unless};
use crate::shapes::bucket::Bucket;
use crate::shapes::bucket::read::extent::Extent;
use crate::shapes::bucket::read::in_order::InOrder;
use crate::shapes::bucket::read::summaries::{SummaryRead, is_exact};
use document::Array;
use document::backend::Facts;
use document::filter::Filter;
use document::op::Namespace;
use document::pipeline::{Pipeline, Split};
use std::sync::Arc;

/// Returns `None` if the general way is as good.
pub(super) fn short_cut(
    bucket: &Arc<Bucket>,
    request: &ReadRequest,
    stored: &Namespace,
    facts: Facts,
) -> Option<ReadPlan> {
    let summaries = SummaryRead::of(bucket, request);
    if request.for_people {
        return Planner::new(bucket, request, stored).summaries_as_mql(&summaries?);
    }
    if facts.runs_our_code {
        return match summaries {
            Some(summaries) => Some(Planner::new(bucket, request, stored).native_summaries(summaries)),
            None => native_in_order(bucket, request, stored),
        };
    }
    let planner = Planner::new(bucket, request, stored);
    if request.reads_others() { planner.in_mongodb(summaries) } else { planner.moved(summaries) }
}

/// The first that were asked for where buckets come in the order that was asked for.
fn native_in_order(bucket: &Arc<Bucket>, request: &ReadRequest, stored: &Namespace) -> Option<ReadPlan> {
    let leading = request.pipeline.split().leading;
    let in_order = InOrder::of(bucket, &leading.filter, leading.sort.as_ref()?)?;
    let planner = Planner::new(bucket, request, stored);
    let found = Pipeline::of_query(&planner.pushed, Some(&in_order.stored()), 0, None);
    let sorted = found.then(Pipeline::of_stage(in_order, None));
    Some(planner.plan(request.aggregate(stored, sorted.then(behind_the_sort(request.native().split())))))
}

/// What was asked of documents that are in order.
fn behind_the_sort(Split { leading, rest, .. }: Split) -> Pipeline {
    Pipeline::of_query(&leading.filter, None, leading.skip, leading.limit).then(rest)
}

struct Planner<'r> {
    bucket: &'r Arc<Bucket>,
    request: &'r ReadRequest,
    stored: &'r Namespace,
    /// What logical documents must match first, and what that says about buckets.
    filter: Filter,
    pushed: Filter,
}

impl<'r> Planner<'r> {
    fn new(bucket: &'r Arc<Bucket>, request: &'r ReadRequest, stored: &'r Namespace) -> Planner<'r> {
        let filter = request.filter();
        let pushed = bucket.push(&filter);
        Planner { bucket, request, stored, filter, pushed }
    }

    fn plan(&self, op: document::op::ReadOp) -> ReadPlan {
        ReadPlan::new(op, self.pushed.clone())
    }

    /// The buckets as they are, and what is done with them in this process.
    fn found(&self, local: Pipeline, first_rows: usize) -> ReadPlan {
        let op = self.request.find(self.stored, &self.pushed, None);
        ReadPlan { local: Some(local), first_rows, ..self.plan(op) }
    }

    fn native_summaries(&self, summaries: SummaryRead) -> ReadPlan {
        let name = summaries.name();
        let pipeline = Pipeline::of_query(&self.pushed, None, 0, None).then(summaries.native());
        ReadPlan { summaries: Some(name), ..self.plan(self.request.aggregate(self.stored, pipeline)) }
    }

    /// Buckets of a real MongoDB are moved and taken apart in this process, if they are few.
    fn moved(&self, summaries: Option<SummaryRead>) -> Option<ReadPlan> {
        match (Extent::of(self.bucket, &self.filter), summaries) {
            (Extent::Few(most), Some(summaries)) => Some(self.local_summaries(summaries, most)),
            (Extent::Perhaps(most), Some(summaries)) => {
                let plan = self.in_mongodb(Some(summaries.clone())).map(Box::new);
                let unless = Some(Unless { check: Check::FirstRowsAreAll, plan });
                Some(ReadPlan { unless, ..self.local_summaries(summaries, most) })
            }
            (Extent::Few(most), None) => Some(self.local(most + 1)),
            (_, summaries) => self.first_in_order().or_else(|| self.in_mongodb(summaries)),
        }
    }

    /// By a real MongoDB as far as it can.
    fn in_mongodb(&self, summaries: Option<SummaryRead>) -> Option<ReadPlan> {
        summaries.and_then(|summaries| self.summaries_as_mql(&summaries)).or_else(|| self.without_javascript())
    }

    /// Bytes become digits in MongoDB only by JavaScript: buckets that have them are taken apart in this process.
    fn without_javascript(&self) -> Option<ReadPlan> {
        let has_hex = self.bucket.by.iter().any(|series| series.hex);
        (has_hex && !self.request.reads_others()).then(|| self.local(ReadPlan::FIRST_ROWS))
    }

    /// The first readings of a series in the order of time, whatever there is behind them.
    fn first_in_order(&self) -> Option<ReadPlan> {
        let split = self.request.native().split();
        let leading = &split.leading;
        let in_order = InOrder::of(self.bucket, &leading.filter, leading.sort.as_ref()?)?;
        let wanted = leading.skip.saturating_add(leading.limit?);
        // A condition on readings themselves may be met by none of them: that is not looked for across a network.
        let first_rows = Extent::first(self.bucket, &leading.filter, wanted)?;
        let op = self.request.find(self.stored, &self.pushed, Some(in_order.stored()));
        let local = Some(Pipeline::of_stage(in_order, None).then(behind_the_sort(split)));
        Some(ReadPlan { local, first_rows, ..self.plan(op) })
    }

    fn local(&self, first_rows: usize) -> ReadPlan {
        self.found(self.bucket.unpack().then(self.request.native()), first_rows)
    }

    /// The summaries of at most so many buckets. One more is asked for, so that the answer says that it is the last.
    fn local_summaries(&self, summaries: SummaryRead, most: usize) -> ReadPlan {
        let name = summaries.name();
        ReadPlan { summaries: Some(name), ..self.found(summaries.native(), most + 1) }
    }

    /// Returns `None` if MQL has no words for it, or other ways are better.
    fn summaries_as_mql(&self, summaries: &SummaryRead) -> Option<ReadPlan> {
        let stages = summaries.to_mql()?;
        let found = Pipeline::of_query(&self.pushed, None, 0, None).source.unwrap_or_else(Array::empty);
        let source = Some(found.iter().chain(stages.iter()).collect());
        let op = self.request.aggregate(self.stored, Pipeline { source, ..Pipeline::default() });
        let plan = self.without_javascript().map(Box::new);
        Some(ReadPlan {
            local: Some(summaries.clone().behind_mql()),
            // One row, or none: a second is asked for so that the answer says that it is the last.
            first_rows: 2,
            summaries: Some(summaries.name()),
            unless: Some(Unless { check: Check::EachRow(is_exact), plan }),
            ..self.plan(op)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::samples::{events, sensors, with_stats};
    use bson::{Bson, DateTime, Document, doc};
    use document::Value;
    use document::op::ReadOp;
    use document::pipeline::expr::Names;

    const HOUR: i64 = 3_600_000;

    fn asked(stages: Vec<Document>) -> ReadRequest {
        let Value::Array(stages) = Value::from(Bson::from(stages)) else { panic!("no stages") };
        ReadRequest {
            pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
            projection: None,
            hint: None,
            allow_disk_use: true,
            has_variables: false,
            for_people: false,
        }
    }

    fn planned(bucket: Bucket, request: &ReadRequest, facts: Facts) -> Option<ReadPlan> {
        let stored = bucket.into.clone();
        short_cut(&Arc::new(bucket), request, &stored, facts)
    }

    fn hours(hours: i64) -> Document {
        doc! { "$gte": DateTime::from_millis(0), "$lt": DateTime::from_millis(hours * HOUR) }
    }

    fn greatest() -> Document {
        doc! { "$group": { "_id": null, "most": { "$max": "$temp" } } }
    }

    #[test]
    fn few_buckets_are_moved_and_many_are_left_where_they_are() {
        let few = asked(vec![doc! { "$match": { "sensorId": 1, "ts": hours(24) } }]);
        let plan = planned(sensors(), &few, Facts::MONGODB).unwrap();
        assert!(matches!(plan.op, ReadOp::Find(_)) && plan.local.is_some() && plan.unless.is_none());
        assert_eq!(plan.first_rows, 10_000 / 60 + 1);
        assert!(planned(sensors(), &few, Facts::EMBEDDED).is_none());
        let many = asked(vec![doc! { "$match": { "ts": hours(24) } }]);
        assert!(planned(sensors(), &many, Facts::MONGODB).is_none());
    }

    #[test]
    fn a_report_is_answered_from_summaries_wherever_it_is_run() {
        let all = asked(vec![doc! { "$match": { "ts": hours(24) } }, greatest()]);
        for facts in [Facts::EMBEDDED, Facts::MONGODB] {
            let plan = planned(with_stats(sensors()), &all, facts).unwrap();
            assert!(matches!(plan.op, ReadOp::Aggregate(_)) && plan.summaries == Some("buckets"));
        }
        // Without a declared maximum MongoDB unpacks the readings; our code looks into buckets as they are.
        assert!(planned(sensors(), &all, Facts::MONGODB).is_none());
        assert!(planned(sensors(), &all, Facts::EMBEDDED).is_some());
        let with_variables = ReadRequest { has_variables: true, ..asked(vec![greatest(), doc! { "$limit": 1 }]) };
        assert!(planned(with_stats(sensors()), &with_variables, Facts::EMBEDDED).is_none());
    }

    /// Nobody knows how many buckets one series has: they are asked for, then MongoDB is asked for their summaries, and if these
    /// are not exact for all readings.
    #[test]
    fn a_plan_that_may_be_wrong_has_another_behind_it() {
        let series = asked(vec![doc! { "$match": { "sensorId": 1 } }, greatest()]);
        let plan = planned(with_stats(sensors()), &series, Facts::MONGODB).unwrap();
        let Unless { check: Check::FirstRowsAreAll, plan: Some(summed) } = plan.unless.unwrap() else { panic!() };
        assert!(matches!(plan.op, ReadOp::Find(_)) && matches!(summed.op, ReadOp::Aggregate(_)));
        let Unless { check: Check::EachRow(is_right), plan: None } = summed.unless.unwrap() else { panic!() };
        assert!(is_right(&document::Doc::from(doc! { "n": 1, "least": "int", "greatest": "int" })));
        assert!(!is_right(&document::Doc::from(doc! { "n": 1, "least": "double", "greatest": "int" })));
    }

    #[test]
    fn one_series_comes_in_the_order_of_time() {
        let first = |filter: Document| {
            asked(vec![doc! { "$match": filter }, doc! { "$sort": { "ts": -1 } }, doc! { "$limit": 5 }])
        };
        let ReadOp::Aggregate(op) = planned(sensors(), &first(doc! { "sensorId": 1 }), Facts::EMBEDDED).unwrap().op
        else {
            panic!()
        };
        assert!(op.pipeline.stages.iter().any(|stage| stage.name() == "$_internalPleachUnpackInOrder"));
        let ReadOp::Find(op) = planned(sensors(), &first(doc! { "sensorId": 1 }), Facts::MONGODB).unwrap().op else {
            panic!()
        };
        assert!(op.sort.unwrap().keys[0].descending);
        let mixed = first(doc! { "sensorId": { "$in": [1, 2] } });
        assert!(planned(sensors(), &mixed, Facts::EMBEDDED).is_none());
        assert!(planned(sensors(), &mixed, Facts::MONGODB).is_none());
    }

    /// MongoDB has no way from bytes to digits but JavaScript.
    #[test]
    fn buckets_with_bytes_are_taken_apart_in_this_process() {
        let all = asked(vec![doc! { "$match": { "approved": 1 } }]);
        let plan = planned(events(true), &all, Facts::MONGODB).unwrap();
        assert!(matches!(plan.op, ReadOp::Find(_)) && plan.first_rows == ReadPlan::FIRST_ROWS);
        let join = doc! { "$lookup": { "from": "keys", "localField": "key", "foreignField": "_id", "as": "of" } };
        assert!(planned(events(true), &asked(vec![join]), Facts::MONGODB).is_none());
    }

    #[test]
    fn people_see_the_pipeline_that_mongodb_would_get() {
        let report = ReadRequest { for_people: true, ..asked(vec![greatest()]) };
        let ReadOp::Aggregate(op) = planned(with_stats(sensors()), &report, Facts::EMBEDDED).unwrap().op else {
            panic!()
        };
        assert!(op.pipeline.source.is_some_and(|stages| stages.iter().count() > 1));
        let find = ReadRequest { for_people: true, ..asked(vec![doc! { "$match": { "sensorId": 1 } }]) };
        assert!(planned(with_stats(sensors()), &find, Facts::EMBEDDED).is_none());
    }
}
