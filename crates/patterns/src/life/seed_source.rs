//! Seeding of a roll-up, its first phase (SEMANTICS R2): walks the *source* in `_id` order and adds each document to the state of its
//! host, making the hosts that are not there. The walk over the hosts ([`crate::life::seed`]) then shows the values.
//!
//! An addition must not happen twice, so the walk has the fence on the rule to itself, and position and additions are one
//! transaction. A writer passes the same fence shared, reads the position in its own transaction, and counts the change of a
//! document exactly if it is behind it (see [`crate::execute::roll_up`]).

use crate::execute::access::{Access, find, update_one, update_op};
use crate::execute::gate::Point;
use crate::execute::read;
use crate::execute::roll_up::{WHOLE_RULE, empty_values};
use crate::fields::HostUpdate;
use crate::life::reconcile::set_state;
use crate::life::replaced::{Keeping, Replaced};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog, replaced, retire, unkeyed, write_differences};
use crate::rule::fence::fence_key;
use crate::rule::state::State;
use crate::rule::{Field, Rule, key};
use document::backend::{Answer, Mode, Session};
use document::filter::Filter;
use document::op::{ReadOp, UpdateStatement};
use document::{Doc, Env, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// A part holds about so many bytes of source documents.
const PACE: Pace = Pace { first: 500, most: 4_000, bytes: 16 << 20 };

/// Each part of a view is found by reading and sorting all of it, so that there are few.
const PACE_IN_VIEW: Pace = Pace { first: 20_000, most: 50_000, bytes: 16 << 20 };

/// Whether the rule's source is stored in another form.
fn is_view(life: &Life, rule: &Rule) -> bool {
    rule.link().is_some_and(|link| life.patterned.rules().shaped(&link.source).is_some())
}

/// Begins with hosts that count nothing: what an earlier form of the rule has left in them goes.
pub(super) async fn begin(life: &Life, entry: &CatalogRule) -> Result<()> {
    retire::tidy(life, entry).await?;
    set_state(life, entry, State::Gathering { position: None }).await
}

/// Counts what is left of the source; the caller goes on with the hosts if all of it is counted.
pub(super) async fn seed(life: &Life, entry: &CatalogRule) -> Result<bool> {
    let State::Gathering { position } = &entry.row.state else { return Ok(true) };
    if matches!(position, Some(Value::MaxKey)) {
        return Ok(true);
    }
    let mut gathering = Gathering { life, rule: &entry.rule, row: entry.row.clone() };
    let pace = if is_view(life, &entry.rule) { PACE_IN_VIEW } else { PACE };
    match walk(life, pace, position.clone(), &mut gathering).await? {
        WalkEnd::Reached => Ok(true),
        // The reconciler looks at it anew.
        WalkEnd::Superseded => life.reload().await.map(|()| false),
    }
}

struct Gathering<'a> {
    life: &'a Life,
    rule: &'a Arc<Rule>,
    row: catalog::Row,
}

impl PartWork for Gathering<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl Gathering<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, rule, row) = (self.life, self.rule, &self.row);
        let context = &life.adding_context();
        let (Some(field), Some(link)) = (rule.kept_field(), rule.link()) else { return Ok(None) };
        let mut outside = Session::default();
        let mut at = Access { backend: &*life.backend, session: &mut outside, context };
        let is_view = is_view(life, rule);
        let to = match is_view {
            true => walk::boundary_in_view(&mut at, &link.source, part.from, part.size).await?,
            false => walk::boundary(&mut at, &link.source, part.from, part.size).await?,
        };
        let mut began = OwnTransaction::begin_for(life, context, rule).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        life.pass(Point::Life("fence")).await?;
        at.backend.fences(at.session, &[(fence_key(rule, &WHOLE_RULE), Mode::Exclusive)]).await?;
        match catalog::one(&mut at, &rule.host.db, &row.rule).await? {
            Some(now) if now.epoch == row.epoch && now.state == row.state => {}
            // A commit whose reply was lost has counted this part already.
            Some(now) if now.epoch == row.epoch => {
                life.advanced(&rule.host.db, &now);
                return Ok(None);
            }
            _ => return Ok(None),
        }
        let part_of_source = match is_view {
            true => walk::range_in_view(&link.source, part.from, to.as_ref())?,
            false => walk::range(&link.source, part.from, to.as_ref()),
        };
        let rules = life.patterned.rules();
        let sources = match rules.shaped(&link.source).filter(|stack| stack.is_virtual()) {
            Some(stack) => {
                let op = ReadOp::Find(part_of_source);
                let cursor = read::open(at.backend, &rules, at.session, context, &op, stack).await?;
                at.drained(cursor).await?
            }
            None => at.find(part_of_source).await?,
        };
        life.pass(Point::Life("evaluate")).await?;
        let additions = additions(field, &sources, &context.env)?;
        if let Some(keeping) = Keeping::of(rule, &row.state, &row.replaced).filter(|_| !additions.is_empty()) {
            life.pass(Point::Life("keep")).await?;
            keep(&mut at, &keeping, rule, &additions).await?;
        }
        life.pass(Point::Life("write")).await?;
        let statements = statements(life, rule, additions);
        if !statements.is_empty() {
            write_differences::run(life, &mut began, rule, &update_op(&rule.host, statements)).await?;
        }
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        let mut next = row.clone();
        next.replaced.seeded.unkeyed += unkeyed::among(link, &sources, &context.env)?;
        next.state = State::Gathering { position: Some(to.clone().unwrap_or(Value::MaxKey)) };
        life.pass(Point::Life("save")).await?;
        catalog::save(&mut at, &rule.host.db, &next).await?;
        began.commit().await?;
        life.advanced(&rule.host.db, &next);
        self.row = next;
        Ok(Some(PartDone::of(&sources, to)))
    }
}

/// Keeps what the hosts had; those that are about to be made had nothing.
async fn keep(
    at: &mut Access<'_>,
    keeping: &Keeping,
    rule: &Rule,
    additions: &[(Value<'static>, HostUpdate)],
) -> Result<()> {
    let keys: Vec<Value<'static>> = additions.iter().map(|(key, _)| key.clone()).collect();
    let found = at.find(find(&rule.host, Filter::among("_id", keys.clone()))).await?;
    let by_id = |host: &Doc<'static>| host.get("_id").map(|id| key::bytes(&id));
    let found: HashMap<Vec<u8>, &Doc<'static>> = found.iter().filter_map(|host| Some((by_id(host)?, host))).collect();
    let hosts = keys.into_iter().map(|id| Replaced { before: found.get(&key::bytes(&id)).copied(), id });
    replaced::keep_some(at, std::slice::from_ref(keeping), &hosts.collect::<Vec<_>>()).await
}

/// What some source documents add to the state of each host.
fn additions(field: &Arc<dyn Field>, sources: &[Doc<'static>], env: &Env) -> Result<Vec<(Value<'static>, HostUpdate)>> {
    let mut list: Vec<(Value<'static>, HostUpdate)> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    for source in sources {
        for (key, effect) in field.contribution(source, env)? {
            let Some(delta) = effect.into_delta() else { continue };
            let at = *places.entry(key::bytes(&key)).or_insert_with(|| {
                list.push((key, HostUpdate::new()));
                list.len() - 1
            });
            if let Some((_, update)) = list.get_mut(at) {
                update.add(field, delta.hidden())?;
            }
        }
    }
    Ok(list)
}

fn statements(life: &Life, rule: &Arc<Rule>, additions: Vec<(Value<'static>, HostUpdate)>) -> Vec<UpdateStatement> {
    let rules = life.patterned.rules();
    let own: Vec<_> = rules.find(&rule.host.db, &rule.name).cloned().into_iter().collect();
    let defaults = rules.of(&rule.host).map(|local| empty_values(local, &own)).unwrap_or_default();
    let one = |(key, mut update): (Value<'static>, HostUpdate)| {
        update.may_make(defaults.clone());
        let update = update_one(Filter::equality("_id", &key), update.into_update_while_seeding()?);
        Some(UpdateStatement { upsert: true, ..update })
    };
    additions.into_iter().filter_map(one).collect()
}
