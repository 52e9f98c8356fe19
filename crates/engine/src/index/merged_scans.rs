//! Scans that each give one order, merged: the documents that any of them finds, each once, in that order. Nothing is sorted, and no
//! scan reads further than one document ahead.

use super::access::plan::MergedPlans;
use super::scan::{Place, Row, Scan, SeenKeys, Want};
use crate::catalog::Collection;
use crate::transaction::snapshot::ReadSnapshot;
use document::op::SortSpec;
use document::pipeline::sort_spec;
use document::{Env, Result, Value};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) struct MergedScans {
    branches: Vec<Branch>,
    seen: SeenKeys,
}

/// A scan and what it has read ahead.
struct Branch {
    scan: Scan,
    head: Head,
}

enum Head {
    Unread,
    /// By the values that it is sorted by.
    Row(Vec<Value<'static>>, Row),
    Ended,
}

impl MergedScans {
    /// Documents are read whatever is wanted: they tell the order.
    pub(super) fn new(merged: &MergedPlans, collection: Option<&Collection>, env: &Env) -> Result<MergedScans> {
        let mut branches = Vec::with_capacity(merged.plans.len());
        for plan in &merged.plans {
            let scan = Scan::new(Arc::new(plan.clone()), collection, env, Want::Documents)?;
            branches.push(Branch { scan, head: Head::Unread });
        }
        Ok(MergedScans { branches, seen: SeenKeys::default() })
    }

    pub(super) fn scans(&self) -> impl Iterator<Item = &Scan> {
        self.branches.iter().map(|branch| &branch.scan)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.branches.iter().all(|branch| matches!(branch.head, Head::Ended))
    }

    pub(super) fn pause(&mut self) {
        self.branches.iter_mut().for_each(|branch| branch.scan.pause());
    }

    /// The first of what the scans give, each document once. Second, how many were there before.
    fn next(&mut self, snapshot: &ReadSnapshot, order: &SortSpec) -> Result<(Option<Row>, u64)> {
        let mut repeated = 0;
        loop {
            let mut first: Option<usize> = None;
            for at in 0..self.branches.len() {
                self.read_ahead(at, snapshot, order)?;
                let is_before = |other: usize| match (self.values(at), self.values(other)) {
                    (Some(values), Some(others)) => sort_spec::compare(order, values, others) == Ordering::Less,
                    (values, _) => values.is_some(),
                };
                if self.values(at).is_some() && first.is_none_or(is_before) {
                    first = Some(at);
                }
            }
            let Some(branch) = first.and_then(|first| self.branches.get_mut(first)) else {
                return Ok((None, repeated));
            };
            if let Head::Row(_, row) = std::mem::replace(&mut branch.head, Head::Unread) {
                if self.seen.insert(row.key.clone()) {
                    return Ok((Some(row), repeated));
                }
                repeated += 1;
            }
        }
    }

    fn values(&self, at: usize) -> Option<&[Value<'static>]> {
        match &self.branches.get(at)?.head {
            Head::Row(values, _) => Some(values),
            Head::Unread | Head::Ended => None,
        }
    }

    fn read_ahead(&mut self, at: usize, snapshot: &ReadSnapshot, order: &SortSpec) -> Result<()> {
        let Some(branch) = self.branches.get_mut(at) else { return Ok(()) };
        if matches!(branch.head, Head::Unread) {
            branch.head = match branch.scan.next(snapshot)? {
                Some(row) => {
                    let values = sort_spec::key(order, &row.doc)?.into_iter().map(Value::into_owned).collect();
                    Head::Row(values, row)
                }
                None => Head::Ended,
            };
        }
        Ok(())
    }
}

impl Scan {
    pub(super) fn next_merged(&mut self, snapshot: &ReadSnapshot, merged: &MergedPlans) -> Result<Option<Row>> {
        loop {
            self.check_interrupt()?;
            let Place::Merge(place) = &mut self.place else { return Ok(None) };
            let (row, repeated) = place.next(snapshot, &merged.order)?;
            self.counters.repeated += repeated;
            let Some(mut row) = row else { return Ok(None) };
            match &self.details {
                Some(filter) if !filter.matches_with(&row.doc, &self.env, &mut row.details)? => {}
                _ => return Ok(Some(row)),
            }
        }
    }
}
