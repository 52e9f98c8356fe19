//! Rewriting a pipeline into one that gives the same results sooner: conditions move ahead, windows close up, empty
//! conditions go.

use super::limit::Limit;
use super::match_::Match;
use super::skip::Skip;
use super::sort::Sort;
use super::{Pipeline, Role, Stage};
use crate::filter::Filter;
use std::sync::Arc;

type Stages = Vec<Arc<dyn Stage>>;

impl Pipeline {
    /// The same pipeline, rewritten.
    pub(super) fn optimised(mut self) -> Pipeline {
        let mut stages = Stages::with_capacity(self.stages.len());
        for stage in std::mem::take(&mut self.stages) {
            match stage.role() {
                Role::Match(matching) => place_conditions(&mut stages, matching),
                Role::Limit(count) => place_window(&mut stages, |window| window.then_limit(count)),
                Role::Skip(count) => place_window(&mut stages, |window| window.then_skip(count)),
                _ => stages.push(stage),
            }
        }
        Pipeline { stages, ..self }
    }
}

/// Puts each condition as far ahead as it may go, into a `$match` that is there or one of its own.
fn place_conditions(stages: &mut Stages, matching: &Match) {
    for condition in matching.conditions.iter().filter(|condition| !condition.is_all()) {
        let at = earliest(stages, condition);
        let neighbour = [at.checked_sub(1), Some(at)].into_iter().flatten().find_map(|near| {
            let Role::Match(found) = stages.get(near)?.role() else { return None };
            Some((near, found.clone()))
        });
        match neighbour {
            Some((near, found)) => {
                let mut conditions = found.conditions;
                conditions.push(condition.clone());
                if let Some(place) = stages.get_mut(near) {
                    *place = Arc::new(Match::all(conditions));
                }
            }
            None => stages.insert(at, Arc::new(Match::all(vec![condition.clone()]))),
        }
    }
}

/// The first place where the condition means the same as at the end.
fn earliest(stages: &Stages, condition: &Filter) -> usize {
    // A condition on no field at all may be one on chance, unless it plainly never holds.
    let paths = condition.root.reads().filter(|paths| !paths.is_empty() || condition.is_none());
    // MongoDB leaves these behind what computes, whose errors then show.
    let tests_arrays = condition.root.tests_arrays();
    let passes = |stage: &Arc<dyn Stage>| match stage.role() {
        Role::Match(_) => true,
        Role::Transform(_) if tests_arrays => false,
        _ => paths.as_ref().is_some_and(|paths| paths.iter().all(|path| stage.keeps(path))),
    };
    stages.len() - stages.iter().rev().take_while(|stage| passes(stage)).count()
}

/// The `$skip` and `$limit` that stand together, as one: first so many are left out, then so many wanted.
#[derive(Clone, Copy, Default)]
struct Window {
    skip: u64,
    limit: Option<u64>,
}

impl Window {
    fn then_skip(self, count: u64) -> Window {
        let limit = self.limit.map(|limit| limit.saturating_sub(count));
        Window { skip: self.skip.saturating_add(count), limit }
    }

    fn then_limit(self, count: u64) -> Window {
        Window { limit: Some(self.limit.map_or(count, |limit| limit.min(count))), ..self }
    }
}

/// Puts a `$skip` or `$limit` ahead of stages that give one document for each, together with the window that is there, and
/// lets a sort before it keep no more than is wanted.
fn place_window(stages: &mut Stages, narrow: impl Fn(Window) -> Window) {
    let end = stages.len() - stages.iter().rev().take_while(|stage| stage.one_to_one()).count();
    let role = |at: usize| at.checked_sub(1).and_then(|before| stages.get(before)).map(|stage| stage.role());
    let (mut start, mut window) = (end, Window::default());
    if let Some(Role::Limit(count)) = role(start) {
        (start, window.limit) = (start - 1, Some(count));
    }
    if let Some(Role::Skip(count)) = role(start) {
        (start, window.skip) = (start - 1, count);
    }
    let mut window = narrow(window);
    let mut replacement = Stages::new();
    if let (Some(Role::Sort(sort)), Some(limit)) = (role(start), window.limit) {
        let wanted = window.skip.saturating_add(limit);
        let limit = Some(sort.limit.map_or(wanted, |limit| limit.min(wanted)));
        replacement.push(Arc::new(Sort { spec: sort.spec.clone(), limit }));
        (start, window.limit) = (start - 1, None);
    }
    if window.skip > 0 {
        replacement.push(Arc::new(Skip(window.skip)));
    }
    if let Some(count) = window.limit {
        replacement.push(Arc::new(Limit(count)));
    }
    stages.splice(start..end, replacement);
}
