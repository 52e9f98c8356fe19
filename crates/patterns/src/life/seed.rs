//! Seeding (SEMANTICS R2): walks the hosts in `_id` order and makes each field right, while clients go on writing.
//!
//! One part of the hosts is one transaction: fences, the values by the transaction's own snapshot, what is wrong written, the
//! position saved. So it can be killed anywhere and goes on from the position. Before a part is begun, writers are told that it
//! is reached (see [`crate::rule::state`]). What the hosts had is kept in the same transaction (see [`crate::life::replaced`]).

use crate::execute::evaluate::Evaluator;
use crate::execute::gate::Point;
use crate::execute::host_queue::{self, HostHash};
use crate::life::access::Access;
use crate::life::replaced::Keeping;
use crate::life::transaction::{OwnTransaction, is_transient};
use crate::life::{Entry, Life, catalog, derived, replaced, walk};
use crate::rule::key;
use crate::rule::state::State;
use document::op::Context;
use document::{Result, Value};
use std::time::Duration;

/// How many hosts make a part: begun small, doubled while nothing is in the way, quartered after a conflict.
const FIRST_PART: u64 = 500;
const LARGEST_PART: u64 = 4_000;

/// A part holds about so many bytes of hosts.
const BYTES: usize = 16 << 20;

/// After so many conflicts in a row it waits a little between two attempts.
const PATIENCE: u32 = 50;

/// After so many in a row the hosts of the part are too busy to be caught between two writes: their writers wait for a turn then.
const CONFLICTS_BEFORE_TURN: u32 = 8;

/// Seeds what is left; the caller turns the rule on.
pub(crate) async fn seed(life: &Life, entry: &Entry) -> Result<()> {
    let evaluator = Evaluator::to_seed(&entry.rule)?;
    let mut row = entry.row.clone();
    let (mut part, mut conflicts) = (life.at_most(FIRST_PART), 0);
    let mut busy: Vec<HostHash> = Vec::new();
    while !matches!(row.state, State::Seeding { position: Some(Value::MaxKey) }) {
        life.check_stopped()?;
        let context = life.adding_context();
        let turn_of = if conflicts > CONFLICTS_BEFORE_TURN { std::mem::take(&mut busy) } else { Vec::new() };
        let _turn = life.patterned.executor.lines.take(turn_of).await;
        match one_part(life, &context, &evaluator, &row, part, &mut busy).await {
            // Somebody has changed or dropped the rule meanwhile: the keeper looks at it anew.
            Ok(None) => return life.reload().await,
            Ok(Some(Part { next, hosts, bytes })) => {
                row = next;
                life.advanced(&entry.db, &row);
                let fits = u64::try_from(BYTES / (bytes / hosts.max(1)).max(1)).unwrap_or(LARGEST_PART).max(1);
                (part, conflicts) = (life.at_most((part * 2).min(LARGEST_PART).min(fits)), 0);
            }
            Err(error) if is_transient(&error) => {
                part = (part / 4).max(1);
                conflicts += 1;
                match conflicts > PATIENCE {
                    true => tokio::time::sleep(Duration::from_micros(rand::random_range(50..2_000))).await,
                    false => tokio::task::yield_now().await,
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What came of a part.
struct Part {
    next: catalog::Row,
    hosts: usize,
    bytes: usize,
}

async fn one_part(
    life: &Life,
    context: &Context,
    evaluator: &Evaluator,
    row: &catalog::Row,
    part: u64,
    busy: &mut Vec<HostHash>,
) -> Result<Option<Part>> {
    let rule = evaluator.rule();
    let from = match &row.state {
        State::Seeding { position } => position.as_ref(),
        _ => None,
    };
    let mut outside = document::backend::Session::default();
    let mut at = Access { backend: &*life.backend, session: &mut outside, context };
    let to = walk::boundary(&mut at, &rule.host, from, part).await?;
    let reached = to.clone().unwrap_or(Value::MaxKey);
    life.pass(Point::Life("reach")).await?;
    if !life.reach(row, rule, &reached)? {
        return Ok(None);
    }
    let mut began = OwnTransaction::begin_for(life, context, rule).await?;
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    if catalog::epoch(&mut at, &rule.host.db, &row.rule).await? != Some(row.epoch) {
        return Ok(None);
    }
    let hosts = at.find(walk::range(&rule.host, from, to.as_ref())).await?;
    let keys = hosts.iter().flat_map(|host| evaluator.keys(host));
    *busy = keys.map(|key| host_queue::hash(&rule.host, &key::bytes(&key))).collect();
    life.pass(Point::Life("fence")).await?;
    at.backend.fences(at.session, &evaluator.fences(&hosts)).await?;
    life.pass(Point::Life("evaluate")).await?;
    let differences = evaluator.differences(&mut at, &hosts).await?;
    if let Some(keeping) = Keeping::of(rule, row) {
        life.pass(Point::Life("keep")).await?;
        replaced::keep_part(&mut at, &keeping, &hosts, (from, to.as_ref())).await?;
    }
    life.pass(Point::Life("write")).await?;
    derived::write(life, &mut began, rule, &differences).await?;
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    let mut next = row.clone();
    next.state = State::Seeding { position: Some(reached) };
    next.done += i64::try_from(hosts.len()).unwrap_or(i64::MAX);
    next.replaced.seeded.count(hosts.len(), &differences);
    life.pass(Point::Life("save")).await?;
    catalog::save(&mut at, &rule.host.db, &next).await?;
    began.commit().await?;
    let bytes = hosts.iter().map(|host| host.as_bytes().len()).sum();
    Ok(Some(Part { next, hosts: hosts.len(), bytes }))
}
