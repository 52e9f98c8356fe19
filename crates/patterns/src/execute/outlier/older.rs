//! Conditions of older clients on an array that overflows (SEMANTICS R18, R34). What such a client asks is tested on the documents that
//! it sees, and these have the embedded items alone: so the overflow is asked for owners first, in the name of the array that the
//! client's version has, and the condition names them.

use crate::active::Rules;
use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::execute::outlier::owners::{MOST_OWNERS, asked, of_rows, query};
use crate::execute::outlier::reads::{put_together, taken_apart};
use crate::rule::lens::ArrayName;
use crate::rule::{Lens, Outlier};
use crate::shapes::outlier::filter::{is_about, is_owner, rewritten};
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Namespace, ReadOp};
use document::{Code, Error, Result};
use std::sync::Arc;

/// The arrays of a collection as clients of a version know them: those that no step since then does more to than to rename them.
pub(crate) fn arrays(rules: &Rules, ns: &Namespace, lens: &Lens, version: i32) -> Vec<Arc<Outlier>> {
    let outliers = rules.of(ns).map(|local| local.outliers.as_slice()).unwrap_or_default();
    let named = |outlier: &Arc<Outlier>| {
        let field = lens.name_at(version, &outlier.field)?;
        Some(Arc::new(Outlier { field, ..(**outlier).clone() }))
    };
    outliers.iter().filter_map(named).collect()
}

/// Those of them that have another name now.
pub(crate) fn renamed(rules: &Rules, ns: &Namespace, lens: &Lens, version: i32) -> Vec<ArrayName> {
    let outliers = rules.of(ns).map(|local| local.outliers.as_slice()).unwrap_or_default();
    let name = |outlier: &Arc<Outlier>| {
        let older = lens.name_at(version, &outlier.field).filter(|older| *older != outlier.field)?;
        Some(ArrayName { older, newest: outlier.field.clone() })
    };
    outliers.iter().filter_map(name).collect()
}

/// Whether the filter of a read tests one of the arrays.
pub(crate) fn concerns(arrays: &[Arc<Outlier>], op: &ReadOp) -> bool {
    !arrays.is_empty()
        && match op {
            ReadOp::Find(op) => is_about(arrays, &op.filter),
            ReadOp::Count(op) => is_about(arrays, &op.filter),
            ReadOp::Distinct(op) => is_about(arrays, &op.filter),
            ReadOp::Aggregate(op) => is_about(arrays, &op.pipeline.split().leading.filter),
        }
}

/// The read with a filter that may be tested on what the client sees.
pub(crate) async fn read(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    arrays: &[Arc<Outlier>],
    op: ReadOp,
) -> Result<ReadOp> {
    let (filter, op) = taken_apart(op, context)?;
    Ok(put_together(op, self::filter(executor, session, context, arrays, &filter).await?))
}

/// The filter as it may be tested on what the client sees.
pub(crate) async fn filter(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    arrays: &[Arc<Outlier>],
    filter: &Filter,
) -> Result<Filter> {
    if !is_about(arrays, filter) {
        return Ok(filter.clone());
    }
    let mut answers = Vec::new();
    for question in asked(arrays, filter) {
        let mut at = Access { backend: &*executor.inner, session, context };
        let owners = of_rows(&at.all(query(&question)?).await?);
        if owners.len() > MOST_OWNERS {
            return Err(too_many(&question.outlier));
        }
        answers.push(is_owner(owners));
    }
    rewritten(arrays, filter, answers)
}

fn too_many(array: &Outlier) -> Error {
    let message = format!(
        "more than {MOST_OWNERS} documents have such an item of '{}', and the condition goes together with fields that versions of \
         documents have changed",
        array.field
    );
    Error::new(Code::NotImplemented, message).with_hint("ask in the newest version, or about fewer documents")
}
