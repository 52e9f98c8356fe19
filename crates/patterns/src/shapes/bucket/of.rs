//! The bucket behind a rule, a stack or a place, for what is about buckets alone: time series, and how well buckets are filled.

use crate::rule::shape::{Place, Shape};
use crate::rule::{Rule, Stack};
use crate::shapes::bucket::{Bucket, BucketShape};
use std::sync::Arc;

fn of(shape: &Arc<dyn Shape>) -> Option<&Arc<Bucket>> {
    BucketShape::of(&**shape).map(|shape| &shape.bucket)
}

impl Rule {
    pub fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.shape().and_then(of)
    }
}

impl Stack {
    pub fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.shape().and_then(of)
    }
}

impl Place {
    /// The declared place of a bucket.
    pub fn of_bucket(bucket: &Arc<Bucket>) -> Place {
        Place { stored: bucket.into.clone(), shape: Arc::new(BucketShape::new(bucket.clone())) }
    }

    pub fn bucket(&self) -> Option<&Arc<Bucket>> {
        of(&self.shape)
    }
}
