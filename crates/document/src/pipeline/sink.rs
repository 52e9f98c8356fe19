//! Where a writing pipeline puts its results. The server runs it through the backend's ordinary writes.

use crate::raw::{Array, Doc};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Sink {
    Out { db: Option<String>, collection: String },
    Merge(Arc<MergeSpec>),
}

impl Sink {
    pub fn stage_name(&self) -> &'static str {
        match self {
            Sink::Out { .. } => "$out",
            Sink::Merge(_) => "$merge",
        }
    }
}

#[derive(Clone, Debug)]
pub struct MergeSpec {
    /// The command's database unless given.
    pub db: Option<String>,
    pub collection: String,
    /// Dotted paths; `_id` unless given. Anything else needs a unique index (else 51183).
    pub on: Vec<String>,
    pub matched: WhenMatched,
    pub not_matched: WhenNotMatched,
}

#[derive(Clone, Debug)]
pub enum WhenMatched {
    Replace,
    KeepExisting,
    Merge,
    Fail,
    /// The stages as written; `$$new` and the `let` variables are constants per result.
    Pipeline {
        stages: Array<'static>,
        variables: Option<Doc<'static>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}
