//! The readings of one series in the order of their time, without sorting all of them: buckets come in that order, and only
//! those of one period are put in order among themselves.

use crate::shapes::bucket::Bucket;
use document::op::{SortKey, SortSpec};
use document::pipeline::{Rows, Run, Stage, Stream, sort_spec};
use document::value::Path;
use document::{Doc, Result};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct InOrder {
    bucket: Arc<Bucket>,
    sort: SortSpec,
}

impl InOrder {
    /// Returns `None` if the order is another one, or if buckets of several series would have to be mixed.
    pub(super) fn of(bucket: &Arc<Bucket>, filter: &document::filter::Filter, sort: &SortSpec) -> Option<InOrder> {
        let by_time =
            sort.keys.first().is_some_and(|key| key.path.parts.len() == 1 && key.path.first() == &*bucket.time);
        let one_series = bucket.by.iter().all(|series| filter.root.required_equality(&series.field).is_some());
        (by_time && one_series).then(|| InOrder { bucket: bucket.clone(), sort: sort.clone() })
    }

    /// The order that the stored documents must come in.
    pub(super) fn stored(&self) -> SortSpec {
        let descending = self.sort.keys.first().is_some_and(|key| key.descending);
        let path = if self.bucket.packed { "_id" } else { self.bucket.every.name() };
        SortSpec { keys: vec![SortKey { path: Path::new(path), descending }] }
    }
}

impl Stage for InOrder {
    fn name(&self) -> &'static str {
        "$_internalPleachUnpackInOrder"
    }

    fn start(self: Arc<Self>, input: Rows, _: &Run) -> Result<Rows> {
        Ok(Box::new(Ordered { stage: self, input, next: None, ready: Vec::new().into_iter() }))
    }
}

struct Ordered {
    stage: Arc<InOrder>,
    input: Rows,
    /// The first bucket of the next period.
    next: Option<Doc<'static>>,
    ready: std::vec::IntoIter<Doc<'static>>,
}

impl Ordered {
    /// All readings of the next period; `None` at the end.
    fn period(&mut self) -> Result<Option<Vec<Doc<'static>>>> {
        let bucket = &self.stage.bucket;
        let first = match self.next.take() {
            Some(first) => first,
            None => match self.input.next()? {
                Some(first) => first,
                None => return Ok(None),
            },
        };
        let start = bucket.key_of(&first)?.0.start;
        let mut all = Vec::new();
        let mut add = |stored: &Doc<'_>| {
            bucket.decode(stored, &mut |doc| {
                all.push(doc);
                Ok(())
            })
        };
        add(&first)?;
        while let Some(stored) = self.input.next()? {
            if bucket.key_of(&stored)?.0.start != start {
                self.next = Some(stored);
                break;
            }
            add(&stored)?;
        }
        Ok(Some(all))
    }
}

impl Stream for Ordered {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        loop {
            if let Some(doc) = self.ready.next() {
                return Ok(Some(doc));
            }
            let Some(all) = self.period()? else { return Ok(None) };
            let sort = &self.stage.sort;
            let mut keyed = Vec::with_capacity(all.len());
            for doc in all {
                let key: Vec<_> = sort_spec::key(sort, &doc)?.into_iter().map(|value| value.into_owned()).collect();
                keyed.push((key, doc));
            }
            keyed.sort_by(|(a, _), (b, _)| sort_spec::compare(sort, a, b));
            self.ready = keyed.into_iter().map(|(_, doc)| doc).collect::<Vec<_>>().into_iter();
        }
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
