//! A plan in a few words, as MongoDB's profiler has it: `IXSCAN { customerId: 1 }`.

use crate::catalog::Index;
use crate::index::access::plan::{Plan, Source};
use document::Value;
use document::traffic::PlanSummary;
use document::value::show;
use std::borrow::Cow;

/// The summary of what is found without a plan.
pub(crate) struct Summary(pub(crate) Cow<'static, str>);

impl Summary {
    pub(crate) fn by_id() -> Summary {
        Summary("IDHACK".into())
    }
}

impl PlanSummary for Summary {
    fn summary(&self) -> String {
        self.0.clone().into_owned()
    }
}

impl PlanSummary for Plan {
    fn summary(&self) -> String {
        match &self.source {
            Source::Nothing => "EOF".into(),
            Source::Collection { .. } => "COLLSCAN".into(),
            Source::Id { .. } => "IDHACK".into(),
            Source::Index(scan) => format!("IXSCAN {}", keys_of(scan.index())),
            Source::Text(scan) => format!("TEXT_MATCH {}", keys_of(&scan.index)),
            Source::Union(plans) => of_all(plans),
            Source::Merge(merged) => of_all(&merged.plans),
        }
    }
}

fn of_all(plans: &[Plan]) -> String {
    plans.iter().map(PlanSummary::summary).collect::<Vec<_>>().join(", ")
}

/// The key pattern of an index.
pub(super) fn keys_of(index: &Index) -> String {
    match index.spec.get("key") {
        Some(Value::Document(keys)) => show::document(&keys).to_string(),
        _ => String::new(),
    }
}
