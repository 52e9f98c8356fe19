//! Audit inside a real MongoDB: the definition of each field runs there, and only what differs comes back. It reads and does
//! nothing else: a standalone server, a user with the right to read and no catalog are enough.
//!
//! The pipeline is no snapshot while clients write, so what it names are suspects: each is looked at again, and drift is what
//! differs every time.

use super::audit::{Asked, Figures, Report, pending};
use super::evaluate::{Difference, Evaluator};
use super::records::{At, aggregate, find};
use super::{Life, catalog, indexes};
use crate::link::{Program, key};
use crate::mql;
use crate::rule::{Rule, Upkeep};
use document::backend::{BatchLimit, Session};
use document::filter::{Filter, InSet, Node, Test};
use document::op::{Count, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::order;
use document::{Array, Result, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many suspects are looked at together.
const SUSPECTS: BatchLimit = BatchLimit { documents: 500, bytes: 16 << 20 };

/// So many hosts to a source make it worth while to look at each source once instead of at each host.
const SHARED_BY: u64 = 4;

/// How often a suspect must differ, and how long is waited between two looks.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Audits one rule.
pub(super) async fn audit(life: &Life, asked: &Asked, report: &mut Report) -> Result<Figures> {
    let began = Instant::now();
    let mut figures = Figures::new(&asked.rule);
    let evaluator = Evaluator::new(&asked.rule)?;
    let context = life.context();
    let (mut reading, mut looking) = (Session::default(), Session::default());
    let host = &asked.rule.host;
    let mut at = At { backend: &*life.backend, session: &mut looking, context: &context };
    figures.checked = count(&mut at, host).await?;
    // Who may only read may not make the index that looking host by host needs.
    let is_indexed = indexes::missing(&mut at, &asked.rule).await.map_or(true, |missing| missing.is_empty());
    let few_sources = match &asked.rule.upkeep {
        Upkeep::Link(link) => count(&mut at, &link.source).await?.saturating_mul(SHARED_BY) <= figures.checked,
        Upkeep::Expression(_) | Upkeep::Bucket(_) => false,
    };
    let known = Known { kept: asked.state.is_some(), is_indexed, few_sources };
    let stages = suspects(&asked.rule, known)?;
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
    let mut cursor = life.backend.read(&mut reading, &context, aggregate(host, pipeline)).await?;
    loop {
        life.check_stopped()?;
        let batch = cursor.next(&mut reading, &context, SUSPECTS).await?;
        let ids = batch.documents.iter().filter_map(|row| row.get("_id"));
        let ids: Vec<Value<'static>> =
            ids.filter(|id| asked.state.as_ref().is_none_or(|state| state.reached(id))).collect();
        for difference in confirmed(&mut at, &evaluator, asked, ids).await? {
            report.add(&mut figures, difference);
        }
        if batch.exhausted {
            break;
        }
    }
    figures.time = began.elapsed();
    Ok(figures)
}

async fn count(at: &mut At<'_>, ns: &Namespace) -> Result<u64> {
    let count = Count { ns: ns.clone(), filter: Filter::all(), skip: 0, limit: None, hint: None };
    let counted = at.all(ReadOp::Count(count)).await?;
    Ok(counted.first().map_or(0, |row| u64::try_from(catalog::long(row.get("n"))).unwrap_or(0)))
}

/// What decides how the suspects are found.
#[derive(Clone, Copy)]
struct Known {
    /// Somebody keeps the rule.
    kept: bool,
    is_indexed: bool,
    /// Many hosts share a source.
    few_sources: bool,
}

/// The pipeline that names the hosts whose field is not what it should be.
fn suspects(rule: &Arc<Rule>, Known { kept, is_indexed, few_sources }: Known) -> Result<Array<'static>> {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    let stages = match (Program::new(rule)?, &rule.upkeep) {
        (Some(Program::Copy(program)), _) if few_sources => {
            (before, behind) = program.by_pairs().unwrap_or_default();
            program.expected(kept)
        }
        (Some(Program::Tally(program)), _) if !kept && !is_indexed => program.differing_without_index()?,
        (Some(program), _) => program.expected(kept),
        (None, Upkeep::Expression(expression)) => {
            let shown = [("stored", mql::field(&rule.field.dotted())), ("expected", expression.source.borrow())];
            [mql::call("$project", mql::object(shown))].into_iter().collect()
        }
        (None, Upkeep::Link(_) | Upkeep::Bucket(_)) => Array::empty(),
    };
    let mut stages: Vec<Value<'static>> = before.into_iter().chain(stages.iter()).collect();
    if !kept || matches!(rule.upkeep, Upkeep::Expression(_)) {
        // Values that nobody keeps have no state, and 5 is as good as 5.0.
        let differ = mql::call_with("$ne", [mql::field("stored"), mql::field("expected")]);
        stages.push(mql::call("$match", mql::object([("$expr", differ)])));
    }
    stages.append(&mut behind);
    stages.push(mql::call("$project", mql::object([("_id", Value::Int32(1))])));
    Ok(stages.into_iter().collect())
}

/// Those that differ however often they are looked at.
async fn confirmed(
    at: &mut At<'_>,
    evaluator: &Evaluator,
    asked: &Asked,
    mut ids: Vec<Value<'static>>,
) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    for look in 0..LOOKS {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        if look > 0 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        let wanted = Test::In(Arc::new(InSet::new(std::mem::take(&mut ids), Vec::new())));
        let hosts = at.find(find(&asked.rule.host, Filter::from_node(Node::field("_id", wanted)))).await?;
        differences = evaluator.differences(at, &hosts).await?;
        if asked.state.is_none() {
            differences.retain(is_visible);
        } else if !differences.is_empty() {
            let pending = pending(at, &asked.rule).await?;
            differences.retain(|difference| !difference.keys.iter().any(|value| pending.contains(&key::bytes(value))));
        }
        ids = differences.iter().map(|difference| difference.id.clone()).collect();
    }
    differences.sort_by(|a, b| order::compare(&a.id, &b.id));
    Ok(differences)
}

/// Whether the value itself differs, not only its type or its state.
pub(super) fn is_visible(difference: &Difference) -> bool {
    !order::equal(&difference.stored, &difference.expected)
        || difference.stored.is_missing() != difference.expected.is_missing()
}
