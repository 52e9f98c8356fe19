//! Which rule reads what another keeps (SEMANTICS R29): on fields, not on collections.

use crate::declare::owners::Owners;
use crate::rule::{Fold, Rule, Tally, Upkeep};
use document::op::Namespace;
use document::value::Path;
use std::collections::BTreeSet;

/// A path that a rule reads, in the collection that it reads it from.
#[derive(Clone, Debug, PartialEq)]
pub struct Reads {
    pub namespace: Namespace,
    /// Nothing means the whole document.
    pub path: Option<Path>,
    /// Whether it is one side of the link.
    pub key: bool,
}

/// Everything that the value of the rule's field depends on.
pub fn reads(rule: &Rule) -> Vec<Reads> {
    let read =
        |namespace: &Namespace, path: &Path, key| Reads { namespace: namespace.clone(), path: Some(path.clone()), key };
    match &rule.upkeep {
        Upkeep::Expression(expression) => expression.reads.iter().map(|path| read(&rule.host, path, false)).collect(),
        Upkeep::Bucket(_) => Vec::new(),
        Upkeep::Link(link) => {
            let mut all = vec![read(&rule.host, &link.local.path, true), read(&link.source, &link.foreign.path, true)];
            match &link.fold {
                Fold::One { fields } => all.extend(fields.iter().map(|(_, path)| read(&link.source, path, false))),
                Fold::Tally(Tally::Count) => {}
                Fold::Tally(Tally::Sum(path) | Tally::Avg(path)) => all.push(read(&link.source, path, false)),
            }
            match link.filter.as_ref().map(|filter| filter.reads()) {
                None => {}
                Some(None) => all.push(Reads { namespace: link.source.clone(), path: None, key: false }),
                Some(Some(paths)) => all.extend(paths.iter().map(|path| read(&link.source, path, false))),
            }
            all
        }
    }
}

impl Reads {
    /// Whether it reads what `rule` keeps, or a part of it.
    pub fn touches(&self, rule: &Rule) -> bool {
        self.namespace == rule.host && self.path.as_ref().is_none_or(|path| overlap(path, &rule.field))
    }
}

/// Whether one is the other or leads to it.
pub(crate) fn overlap(a: &Path, b: &Path) -> bool {
    a.is_prefix_of(b) || b.is_prefix_of(a)
}

/// The rules so that each comes after those whose fields it reads, otherwise as they were; or a cycle, as positions of rules
/// that each read the next one's field, and the last the first's.
pub fn order(rules: &[Rule]) -> Result<Vec<usize>, Vec<usize>> {
    let owners = Owners::new(rules.iter().map(|rule| (&rule.host, &rule.field)));
    let needed = |rule: &Rule| {
        let reads = reads(rule);
        let needed: BTreeSet<usize> =
            reads.iter().flat_map(|read| owners.overlapping(&read.namespace, read.path.as_ref())).collect();
        needed.into_iter().collect()
    };
    let needs: Vec<Vec<usize>> = rules.iter().map(needed).collect();
    let mut walk = Walk { needs: &needs, state: vec![State::New; rules.len()], done: Vec::new(), way: Vec::new() };
    for rule in 0..rules.len() {
        walk.visit(rule)?;
    }
    Ok(walk.done)
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
}

struct Walk<'a> {
    needs: &'a [Vec<usize>],
    state: Vec<State>,
    done: Vec<usize>,
    way: Vec<usize>,
}

impl Walk<'_> {
    /// As deep as the longest chain of copies of copies.
    fn visit(&mut self, rule: usize) -> Result<(), Vec<usize>> {
        match self.state.get(rule) {
            Some(State::Open) => {
                let start = self.way.iter().position(|other| *other == rule).unwrap_or(0);
                return Err(self.way.split_off(start));
            }
            Some(State::New) => {}
            _ => return Ok(()),
        }
        self.set(rule, State::Open);
        self.way.push(rule);
        for needed in self.needs.get(rule).into_iter().flatten() {
            self.visit(*needed)?;
        }
        self.way.pop();
        self.set(rule, State::Done);
        self.done.push(rule);
        Ok(())
    }

    fn set(&mut self, rule: usize, state: State) {
        if let Some(place) = self.state.get_mut(rule) {
            *place = state;
        }
    }
}
