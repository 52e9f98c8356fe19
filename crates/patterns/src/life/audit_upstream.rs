//! Audit inside a real MongoDB: the definition of each field runs there, and only what differs comes back. It reads and does
//! nothing else: a standalone server, a user with the right to read and no catalog are enough.
//!
//! The pipeline is no snapshot while clients write, so what it names are suspects: each is looked at again, and drift is what
//! differs every time.

use crate::execute::access::{Access, aggregate, find};
use crate::execute::evaluate::{Evaluator, HostDifference};
use crate::life::audit::{AuditedRule, Figures, Report, count, count_before, leave_pending};
use crate::life::{Life, install};
use crate::mql;
use crate::rule::field::{Field, Search};
use crate::rule::state::State;
use document::backend::{BatchLimit, Session};
use document::filter::{Filter, Node, Test};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::order;
use document::{Array, Result, Value};
use std::time::Duration;

/// How many suspects are looked at together.
const SUSPECTS: BatchLimit = BatchLimit { documents: 500, bytes: 16 << 20 };

/// So many hosts to a source make it worth while to look at each source once instead of at each host.
const SHARED_BY: u64 = 4;

/// How often a suspect must differ, and how long is waited between two looks.
const LOOKS: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Audits one rule.
pub(super) async fn audit(life: &Life, asked: &AuditedRule, figures: &mut Figures, report: &mut Report) -> Result<()> {
    let evaluator = Evaluator::new(&asked.rule)?.through(&life.patterned.executor);
    let context = life.context();
    let (mut reading, mut looking) = (Session::default(), Session::default());
    let host = &asked.rule.host;
    let mut at = Access { backend: &*life.backend, session: &mut looking, context: &context };
    figures.checked = match asked.kept() {
        Some(
            State::Maintaining
            | State::Gathering { .. }
            | State::Seeding { position: None }
            | State::Retiring
            | State::Restoring,
        ) => {
            return Ok(());
        }
        Some(State::Seeding { position: Some(position) }) => count_before(&mut at, host, position).await?,
        Some(State::On) | None => count(&mut at, host).await?,
    };
    // A user that may only read may not make the index that looking host by host needs.
    let is_indexed = install::missing(&mut at, &asked.rule).await.map_or(true, |missing| missing.is_empty());
    let few_sources = match asked.rule.link() {
        Some(link) => count(&mut at, &link.source).await?.saturating_mul(SHARED_BY) <= figures.checked,
        None => false,
    };
    let search = Search { in_force: asked.kept().is_some(), is_indexed, few_sources };
    let stages = suspects(&**evaluator.field(), search)?;
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
    let mut cursor = life.backend.read(&mut reading, &context, aggregate(host, pipeline)).await?;
    let mut waiting = 0;
    loop {
        life.check_stopped()?;
        let batch = cursor.next(&mut reading, &context, SUSPECTS).await?;
        let ids = batch.documents.iter().filter_map(|row| row.get("_id"));
        let ids: Vec<Value<'static>> = ids.filter(|id| asked.kept().is_none_or(|state| state.reached(id))).collect();
        let confirmed = confirmed(life, &mut at, &evaluator, asked, ids).await?;
        waiting += confirmed.waiting;
        confirmed.differences.into_iter().for_each(|difference| report.add(figures, difference));
        if batch.exhausted {
            break;
        }
    }
    figures.note_waiting(waiting);
    life.report_absent(asked, &evaluator, figures, report).await
}

/// The pipeline that names the hosts whose field is not what it should be.
fn suspects(field: &dyn Field, search: Search) -> Result<Array<'static>> {
    let mut stages = field.suspects(search)?;
    stages.push(mql::call("$project", mql::object([("_id", Value::Int32(1))])));
    Ok(stages.into_iter().collect())
}

/// Suspects after all looks.
#[derive(Default)]
struct Confirmed {
    differences: Vec<HostDifference>,
    /// How many the outbox will make right.
    waiting: u64,
}

/// Those that differ however often they are looked at.
async fn confirmed(
    life: &Life,
    at: &mut Access<'_>,
    evaluator: &Evaluator,
    asked: &AuditedRule,
    mut ids: Vec<Value<'static>>,
) -> Result<Confirmed> {
    let mut confirmed = Confirmed::default();
    for look in 0..LOOKS {
        if ids.is_empty() {
            break;
        }
        if look > 0 {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        let wanted = Test::among(std::mem::take(&mut ids));
        // A source that is being renamed would seem to be empty.
        let _free = life.patterned.until_free(at.context, &asked.rule.namespaces()).await?;
        let hosts = at.find(find(&asked.rule.host, Filter::from_node(Node::field("_id", wanted)))).await?;
        let mut differences = evaluator.differences(at, &hosts).await?;
        if asked.kept().is_none() {
            differences.retain(is_visible);
        } else if !differences.is_empty() {
            confirmed.waiting += leave_pending(at, &asked.rule, &mut differences).await?;
        }
        ids = differences.iter().map(|difference| difference.id.clone()).collect();
        confirmed.differences = differences;
    }
    confirmed.differences.sort_by(|a, b| order::compare(&a.id, &b.id));
    Ok(confirmed)
}

/// Whether the value itself differs, not only its type or its state.
pub(super) fn is_visible(difference: &HostDifference) -> bool {
    !order::equal(&difference.stored, &difference.expected)
        || difference.stored.is_missing() != difference.expected.is_missing()
}
