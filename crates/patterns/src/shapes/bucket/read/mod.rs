//! Reads of buckets: what every shape says of itself, and the short cuts that only buckets have.
//!
//! A report over series and time is answered from counts, stats and slots ([`summaries`]). Few buckets are moved as they are and
//! taken apart in this process ([`extent`]). The readings of one series come in the order of time without being sorted
//! ([`in_order`]). [`plan`] chooses.

mod extent;
mod in_order;
mod plan;
mod summaries;

use crate::rule::read::{Dialect, Each, HexPaths, ReadPlan, ReadRequest, ReadShape};
use crate::shapes::bucket::{Bucket, BucketShape};
use crate::shapes::unpack::unpack;
use document::backend::Facts;
use document::filter::Filter;
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Array, Doc, Result};
use std::sync::Arc;

impl ReadShape for BucketShape {
    fn view(&self, dialect: Dialect) -> Array<'static> {
        self.bucket.view(dialect)
    }

    fn decode(&self, stored: &Doc<'_>, each: &mut Each<'_>) -> Result<()> {
        self.bucket.decode(stored, each)
    }

    fn push(&self, filter: &Filter) -> Filter {
        self.bucket.push(filter)
    }

    /// A series is stored beside the `_id` just as the client knows it, unless as bytes.
    fn keeps(&self, path: &Path) -> bool {
        let bucket = &self.bucket;
        !bucket.packed && bucket.by.iter().any(|series| !series.hex && *series.field == *path.first())
    }

    fn read(self: Arc<Self>, request: &ReadRequest, stored: &Namespace, facts: Facts) -> Result<Option<ReadPlan>> {
        Ok(plan::short_cut(&self.bucket, request, stored, facts))
    }

    fn hex_paths(&self) -> Option<HexPaths> {
        let fields: Vec<String> = self.bucket.hex_fields().map(str::to_owned).collect();
        let of_id = if self.bucket.derives_id() { fields.clone() } else { Vec::new() };
        (!fields.is_empty()).then_some(HexPaths { fields, of_id })
    }
}

impl Bucket {
    /// Stored documents in, logical documents out.
    pub fn unpack(self: &Arc<Self>) -> Pipeline {
        unpack(Arc::new(BucketShape::new(self.clone())))
    }
}
