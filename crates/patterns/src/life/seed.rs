//! Seeding (SEMANTICS R2): walks the hosts in `_id` order and makes each field right, while clients go on writing.
//!
//! One part of the hosts is one transaction: fences, the values by the transaction's own snapshot, what is wrong written, the
//! position saved. So it can be killed anywhere and goes on from the position. Before a part is begun, writers are told that it
//! is reached (see [`crate::rule::state`]). What the hosts had is kept in the same transaction (see [`crate::life::replaced`]).

use crate::execute::access::Access;
use crate::execute::evaluate::Evaluator;
use crate::execute::gate::Point;
use crate::execute::host_queue::{self, HostHash};
use crate::life::replaced::Keeping;
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog, replaced, write_differences};
use crate::rule::key;
use crate::rule::state::State;
use document::backend::Answer;
use document::{Result, Value};

/// A part holds about so many bytes of hosts.
const PACE: Pace = Pace { first: 500, most: 4_000, bytes: 16 << 20 };

/// After so many in a row the hosts of the part are too busy to be caught between two writes: their writers wait for a turn then.
const CONFLICTS_BEFORE_TURN: u32 = 8;

/// Seeds what is left; the caller turns the rule on.
pub(crate) async fn seed(life: &Life, entry: &CatalogRule) -> Result<()> {
    let State::Seeding { position } = &entry.row.state else { return Ok(()) };
    if matches!(position, Some(Value::MaxKey)) {
        return Ok(());
    }
    let evaluator = Evaluator::to_seed(&entry.rule)?.through(&life.patterned.executor);
    let mut seeding = Seeding { life, evaluator, row: entry.row.clone(), busy: Vec::new() };
    match walk(life, PACE, position.clone(), &mut seeding).await? {
        WalkEnd::Reached => Ok(()),
        // The reconciler looks at it anew.
        WalkEnd::Superseded => life.reload().await,
    }
}

struct Seeding<'a> {
    life: &'a Life,
    evaluator: Evaluator,
    row: catalog::Row,
    /// The hosts of the last part.
    busy: Vec<HostHash>,
}

impl PartWork for Seeding<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl Seeding<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, from) = (self.life, part.from);
        let context = &life.adding_context();
        let busy = std::mem::take(&mut self.busy);
        let turn_of = if part.conflicts > CONFLICTS_BEFORE_TURN { busy } else { Vec::new() };
        let _turn = life.patterned.executor.lines.take(turn_of).await;
        let (evaluator, row) = (&self.evaluator, &self.row);
        let rule = evaluator.rule();
        let mut outside = document::backend::Session::default();
        let mut at = Access { backend: &*life.backend, session: &mut outside, context };
        let to = walk::boundary(&mut at, &rule.host, from, part.size).await?;
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
        self.busy = keys.map(|key| host_queue::hash(&rule.host, &key::bytes(&key))).collect();
        life.pass(Point::Life("fence")).await?;
        at.backend.fences(at.session, &evaluator.fences(&hosts)).await?;
        life.pass(Point::Life("evaluate")).await?;
        let differences = evaluator.differences(&mut at, &hosts).await?;
        if let Some(keeping) = Keeping::of(rule, &row.state, &row.replaced) {
            life.pass(Point::Life("keep")).await?;
            replaced::keep_part(&mut at, &keeping, &hosts, (from, to.as_ref())).await?;
        }
        life.pass(Point::Life("write")).await?;
        write_differences::write(life, &mut began, rule, &differences).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        let mut next = row.clone();
        next.state = State::Seeding { position: Some(reached) };
        next.done += i64::try_from(hosts.len()).unwrap_or(i64::MAX);
        next.replaced.seeded.count(hosts.len(), &differences);
        life.pass(Point::Life("save")).await?;
        catalog::save(&mut at, &rule.host.db, &next).await?;
        began.commit().await?;
        life.advanced(&rule.host.db, &next);
        self.row = next;
        Ok(Some(PartDone::of(&hosts, to)))
    }
}
