//! The choice among the plans that a query allows.
//!
//! One `_id` needs no choice. Otherwise each index that has bounds for the filter, or gives the order, is a candidate; a
//! collection is read whole only if there is none. Several candidates are tried on the data itself, as MongoDB does: each
//! does a little work, and the one that found most for its work is taken and remembered.

use super::candidate::Candidate;
use super::plan::{ByHand, Covering, IndexScan, MergedPlans, Plan, Source};
use super::predicate::Conditions;
use super::shape::{Choice, Shape};
use super::{hint, text};
use crate::catalog::Collection;
use crate::index::scan::{Scan, Want};
use crate::store::keys::document_key;
use crate::transaction::snapshot::ReadSnapshot;
use document::filter::{Filter, Node, Test};
use document::op::{Hint, SortSpec};
use document::value::Path;
use document::{Doc, Env, Result, Value};
use std::sync::Arc;

/// What is asked of a collection.
#[derive(Clone, Copy)]
pub struct Query<'q> {
    pub filter: &'q Filter,
    pub sort: Option<&'q SortSpec>,
    pub hint: Option<&'q Hint>,
    pub min: Option<&'q Doc<'static>>,
    pub max: Option<&'q Doc<'static>>,
    /// The paths that will be read of the documents, those of the order too; nothing means all.
    pub needed: Option<&'q [Path]>,
    /// How many documents are wanted, those to be skipped too.
    pub limit: Option<u64>,
    /// Whether the documents are to carry the score of the text search.
    pub score: bool,
    pub env: &'q Env,
}

impl<'q> Query<'q> {
    pub fn new(filter: &'q Filter, env: &'q Env) -> Query<'q> {
        Query { filter, sort: None, hint: None, min: None, max: None, needed: None, limit: None, score: false, env }
    }

    pub(crate) fn sort(&self) -> Option<&'q SortSpec> {
        self.sort.filter(|sort| !sort.keys.is_empty())
    }
}

/// A plan, and what there is to tell about how it was chosen.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub plan: Plan,
    /// The others, for `explain`.
    pub rejected: Vec<Plan>,
    /// Set if the choice is remembered: tell [`super::PlanCache::report`] how it went.
    pub shape: Option<Shape>,
}

impl Chosen {
    fn only(plan: Plan) -> Chosen {
        Chosen { plan, rejected: Vec::new(), shape: None }
    }
}

/// The plan for `query`. With `explain` nothing remembered is used, so that the plans not taken are known too.
pub fn choose(collection: &Collection, snapshot: &ReadSnapshot, query: Query<'_>, explain: bool) -> Result<Chosen> {
    if query.filter.has_text() {
        return Ok(Chosen::only(text::plan(collection, &query)?));
    }
    let natural = match query.hint {
        Some(Hint::Natural { descending }) => Some(*descending),
        _ => None,
    };
    let by_hand = query.min.is_some() || query.max.is_some();
    let hint = query.hint.filter(|hint| !matches!(hint, Hint::Keys(keys) if keys.is_empty()));
    if hint.is_none()
        && !by_hand
        && let Some(plan) = by_id(query.filter)
    {
        return Ok(Chosen::only(plan));
    }
    if let (Some(reverse), false) = (natural, by_hand) {
        return Ok(Chosen::only(Plan::collection(query.filter, reverse, query.sort().is_none())));
    }
    let conditions = Conditions::of(&query.filter.root, query.env);
    if by_hand {
        let bounds = ByHand { min: query.min.cloned(), max: query.max.cloned() };
        let scan = hint::by_hand(collection, &query, &conditions, hint, bounds)?;
        return Ok(Chosen::only(finish(scan, &conditions, &query)));
    }
    if let Some(index) = hint.map(|hint| hint::hinted(collection, hint, &query)).transpose()?.flatten() {
        let scan = IndexScan::new(Candidate::new(&index, &conditions), false, query.filter);
        return Ok(Chosen::only(finish(scan, &conditions, &query)));
    }
    let mut plans = candidates(collection, &conditions, &query);
    match plans.len() {
        0 => return Ok(Chosen::only(Plan::collection(query.filter, false, query.sort().is_none()))),
        1 => return Ok(Chosen::only(plans.swap_remove(0))),
        _ => {}
    }
    if let Some(point) = plans.iter().position(is_unique_point) {
        let plan = plans.remove(point);
        return Ok(Chosen { plan, rejected: plans, shape: None });
    }
    let shape = Shape::of(&query);
    let remembered = if explain { None } else { collection.life.plans.get(shape, collection) };
    if let Some(best) = remembered.and_then(|choice| plans.iter().position(|plan| choice_of(plan) == choice)) {
        let plan = plans.swap_remove(best);
        return Ok(Chosen { plan, rejected: Vec::new(), shape: Some(shape) });
    }
    let (best, works) = race(&plans, collection, snapshot, &query)?;
    let plan = plans.remove(best);
    if !explain {
        collection.life.plans.put(shape, collection, choice_of(&plan), works);
    }
    Ok(Chosen { plan, rejected: plans, shape: Some(shape) })
}

/// The plan for a filter that is nothing but one `_id`.
fn by_id(filter: &Filter) -> Option<Plan> {
    let Node::Field { path, test: Test::Eq(id) } = &filter.root else { return None };
    let one = matches!(path.parts.as_slice(), [only] if &*only.name == "_id");
    // Null and arrays stand for more than themselves.
    if !one || matches!(id, Value::Null | Value::Array(_)) {
        return None;
    }
    let source = Source::Id { key: document_key(id) };
    Some(Plan { source, residual: None, ordered: true })
}

fn is_unique_point(plan: &Plan) -> bool {
    matches!(&plan.source, Source::Index(scan) if scan.candidate.is_unique_point())
}

fn choice_of(plan: &Plan) -> Choice {
    match &plan.source {
        Source::Index(scan) => Choice::Index(scan.index().id),
        _ => Choice::Union,
    }
}

/// Every plan that one index allows.
pub(super) fn by_one_index(collection: &Collection, conditions: &Conditions<'_>, query: &Query<'_>) -> Vec<Plan> {
    let root = &query.filter.root;
    let usable = || collection.indexes.iter().filter(|index| index.ready && !index.hidden && index.text.is_none());
    let plan = |candidate| finish(IndexScan::new(candidate, false, query.filter), conditions, query);
    let mut plans: Vec<Plan> =
        usable().filter_map(|index| Candidate::bounded(index, root, conditions, query.env)).map(plan).collect();
    // An index is read whole for its order only if no bounded one gives the order too.
    if let Some(sort) = query.sort()
        && !plans.iter().any(|plan| plan.ordered)
    {
        let whole = usable().map(|index| Candidate::new(index, conditions));
        let gives_order = |candidate: &Candidate| {
            candidate.bounded == 0
                && candidate.order(sort).is_some()
                && candidate.is_complete(root, conditions, query.env)
        };
        plans.extend(whole.filter(gives_order).map(plan));
    }
    plans
}

/// Every plan that an index or several allow.
fn candidates(collection: &Collection, conditions: &Conditions<'_>, query: &Query<'_>) -> Vec<Plan> {
    let mut plans = by_one_index(collection, conditions, query);
    // If some index serves an $or as one range of conditions, a union has nothing to add.
    for (at, node) in conditions.nodes.iter().enumerate() {
        let Node::Or(branches) = node else { continue };
        let served = conditions.predicates.iter().any(|predicate| {
            let leads =
                |index: &Arc<crate::catalog::Index>| index.keys.first().is_some_and(|key| key.path == predicate.path);
            predicate.node == at && collection.indexes.iter().any(leads)
        });
        if !served && let Some(plan) = union(collection, conditions, at, branches, query) {
            plans.push(plan);
        }
    }
    plans
}

/// One plan for each alternative, together with the other conditions; `None` if one of them has no index. They are merged if each has an
/// index that gives the order and reads no more than another would.
fn union(
    collection: &Collection,
    conditions: &Conditions<'_>,
    at: usize,
    branches: &[Node],
    query: &Query<'_>,
) -> Option<Plan> {
    let others: Vec<Node> = conditions
        .nodes
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != at)
        .map(|(_, node)| (*node).clone())
        .collect();
    let mut plans = Vec::with_capacity(branches.len());
    let mut in_order = query.sort().map(|order| (order, Vec::with_capacity(branches.len())));
    for branch in branches {
        let filter = Filter::from_node(Node::all_of(std::iter::once(branch.clone()).chain(others.iter().cloned())));
        let branch_query = Query { filter: &filter, sort: None, needed: None, ..*query };
        let branch_conditions = Conditions::of(&filter.root, query.env);
        // Unions in unions would multiply: an alternative has one index.
        let best = by_one_index(collection, &branch_conditions, &branch_query).into_iter().min_by_key(promise)?;
        in_order = in_order.and_then(|(order, mut ordered)| {
            let sorted = Query { sort: query.sort, ..branch_query };
            let some = by_one_index(collection, &branch_conditions, &sorted).into_iter();
            let first = some.filter(|plan| plan.ordered && is_bounded(plan)).min_by_key(promise)?;
            ordered.push(first);
            ordered.last().is_some_and(|plan| promise(plan) <= promise(&best)).then_some((order, ordered))
        });
        plans.push(best);
    }
    if let Some((order, plans)) = in_order.filter(|(_, plans)| !plans.is_empty()) {
        let merged = MergedPlans { plans, order: order.clone() };
        return Some(Plan { source: Source::Merge(Arc::new(merged)), residual: None, ordered: true });
    }
    (!plans.is_empty()).then_some(Plan {
        source: Source::Union(plans),
        residual: None,
        ordered: query.sort().is_none(),
    })
}

fn is_bounded(plan: &Plan) -> bool {
    matches!(&plan.source, Source::Index(scan) if scan.candidate.bounded > 0)
}

/// How much an alternative's plan is likely to read, less first: by its bounds alone.
pub(super) fn promise(plan: &Plan) -> (u8, usize, usize) {
    match &plan.source {
        Source::Index(scan) if scan.candidate.is_unique_point() => (0, 0, 0),
        Source::Index(scan) => {
            let points = scan.candidate.bounds.iter().take_while(|bounds| bounds.all_points()).count();
            let bounded = scan.candidate.bounds.iter().take_while(|bounds| !bounds.is_full()).count();
            (1, usize::MAX - points, usize::MAX - bounded)
        }
        _ => (2, 0, 0),
    }
}

/// Gives the plan its direction, what is left to test, and whether documents can be made of entries.
fn finish(mut scan: IndexScan, conditions: &Conditions<'_>, query: &Query<'_>) -> Plan {
    let order = query.sort().map(|sort| scan.candidate.order(sort));
    scan.reverse = order.flatten().unwrap_or(false);
    scan.order = order.flatten().and(query.sort()).cloned();
    let ordered = order.is_none_or(|order| order.is_some());
    let unproven = scan.candidate.unproven.iter().zip(&conditions.nodes).filter(|(unproven, _)| **unproven);
    let unproven: Vec<Node> = unproven.map(|(_, node)| (*node).clone()).collect();
    let residual = (!unproven.is_empty()).then(|| Node::all_of(unproven));
    if residual.is_none()
        && let Some(needed) = query.needed
    {
        scan.covering = Covering::of(&scan.candidate, needed);
    }
    Plan { source: Source::Index(Arc::new(scan)), residual, ordered }
}

/// How many results make a trial long enough.
const ENOUGH: u64 = 101;

struct Trial {
    scan: Scan,
    ended: bool,
}

/// Lets the plans work in turns until one has found enough or ended; gives the best and its work.
fn race(plans: &[Plan], collection: &Collection, snapshot: &ReadSnapshot, query: &Query<'_>) -> Result<(usize, u64)> {
    let enough = query.limit.map_or(ENOUGH, |limit| limit.clamp(1, ENOUGH));
    let mut trials = plans
        .iter()
        .map(|plan| {
            let scan = Scan::new(Arc::new(plan.clone()), Some(collection), query.env, Want::Documents)?;
            Ok(Trial { scan, ended: false })
        })
        .collect::<Result<Vec<_>>>()?;
    'rounds: for budget in [128, 1024, 10_000] {
        let mut decided = false;
        for trial in &mut trials {
            while trial.scan.counters().works() < budget {
                if trial.scan.next(snapshot)?.is_none() {
                    trial.ended = true;
                    decided = true;
                    break;
                }
                let rows = trial.scan.counters().rows;
                if trial.scan.plan().ordered && rows >= enough {
                    // With all that is wanted it has ended.
                    trial.ended = query.limit.is_some_and(|limit| rows >= limit);
                    decided = true;
                    break;
                }
            }
        }
        if decided {
            break 'rounds;
        }
    }
    let scores = trials.iter().map(|trial| (score(trial, query.limit), narrowness(trial.scan.plan()), trial));
    let best = scores.enumerate().max_by(|(at, (a, narrow, _)), (other, (b, narrower, _))| {
        a.total_cmp(b).then(narrow.cmp(narrower)).then(other.cmp(at))
    });
    Ok(best.map_or((0, 0), |(at, (.., trial))| (at, trial.scan.counters().works())))
}

/// Of plans that did equally well, perhaps because there was nothing to find, the one that reads less elsewhere: by an index that
/// lacks documents, or by more bounded keys.
fn narrowness(plan: &Plan) -> (bool, usize) {
    match &plan.source {
        Source::Index(scan) => (scan.index().partial.is_some(), scan.candidate.bounded),
        _ => (false, 0),
    }
}

/// MongoDB's measure: results per work, a bonus for having ended, and hairs to split ties by. What must be sorted gives no more than
/// is wanted of it, each with a work of its own.
fn score(trial: &Trial, limit: Option<u64>) -> f64 {
    const HAIR: f64 = 1e-4;
    let counters = trial.scan.counters();
    let plan = trial.scan.plan();
    let blocked = !plan.ordered && !trial.ended;
    let (results, works) = match plan.ordered {
        true => (counters.rows, counters.works()),
        false => {
            let results = limit.map_or(counters.rows, |limit| limit.min(counters.rows));
            (results, counters.works() + results)
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "a trial is short")]
    let productivity = if blocked { 0.0 } else { results as f64 / works.max(1) as f64 };
    let hair = |better: bool| if better { HAIR } else { 0.0 };
    1.0 + productivity
        + if trial.ended { 1.0 } else { 0.0 }
        + hair(counters.documents == 0 || plan.is_covered())
        + hair(plan.ordered)
}
