//! Which rule reads what another keeps (SEMANTICS R29): on fields, not on collections. The one order of rules: declarations are
//! checked by it, rules in force react by it, and rules are seeded by it.

use crate::rule::Rule;
use crate::rule::owners::Owners;
use document::op::{Capture, Namespace};
use document::value::Path;
use std::collections::{BTreeSet, HashMap};

/// A path that a rule reads, in the collection that it reads it from.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependency {
    pub namespace: Namespace,
    /// `None` means the whole document.
    pub path: Option<Path>,
    /// Whether it is one side of the link.
    pub key: bool,
}

/// Everything that the value of the rule's field depends on.
pub fn reads(rule: &Rule) -> Vec<Dependency> {
    let Some(field) = rule.kept_field() else { return Vec::new() };
    let (reads, link) = (field.reads(), field.link());
    let read = |namespace: &Namespace, path: &Path, key| Dependency {
        namespace: namespace.clone(),
        path: Some(path.clone()),
        key,
    };
    let is_local = |path: &Path| link.is_some_and(|link| link.local.path == *path);
    let own = reads.host.iter().map(|path| read(&rule.host, path, is_local(path)));
    let mut all: Vec<Dependency> = own.collect();
    let Some(link) = link else { return all };
    match &reads.source {
        Capture::Nothing => {}
        Capture::Everything => {
            all.extend(link.foreign.paths().iter().map(|path| read(&link.source, path, true)));
            all.push(Dependency { namespace: link.source.clone(), path: None, key: false });
        }
        Capture::Paths(paths) => {
            all.extend(paths.iter().map(|path| read(&link.source, path, link.foreign.paths().contains(path))));
        }
    }
    all
}

impl Dependency {
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
    let needs = needs(&rules.iter().collect::<Vec<_>>());
    let mut walk = Walk { needs: &needs, state: vec![State::New; rules.len()], done: Vec::new(), way: Vec::new() };
    for rule in 0..rules.len() {
        walk.visit(rule)?;
    }
    Ok(walk.done)
}

/// For each rule the others whose fields it reads.
fn needs(rules: &[&Rule]) -> Vec<Vec<usize>> {
    let owners = Owners::new(rules.iter().map(|rule| (&rule.host, &rule.field)));
    let shaped = |rule: &Rule| match (rule.shape(), rule.outlier()) {
        (Some(_), _) => Some(rule.host.clone()),
        (None, outlier) => outlier.map(|outlier| outlier.items()),
    };
    let shapes = rules.iter().enumerate().filter_map(|(number, rule)| Some((shaped(rule)?, number)));
    let shapes: HashMap<Namespace, usize> = shapes.collect();
    let mut makers: HashMap<&Namespace, Vec<usize>> = HashMap::new();
    for (number, rule) in rules.iter().enumerate() {
        if rule.link().is_some_and(|link| link.create && link.source != rule.host) {
            makers.entry(&rule.host).or_default().push(number);
        }
    }
    let needed = |rule: &&Rule| {
        let reads = reads(rule);
        let mut needed: BTreeSet<usize> =
            reads.iter().flat_map(|read| owners.overlapping(&read.namespace, read.path.as_ref())).collect();
        let source = rule.link().map(|link| &link.source);
        // A collection takes its form before fields are kept from it, and roll-ups make its documents.
        needed.extend(source.and_then(|source| shapes.get(source)));
        needed.extend(source.and_then(|source| makers.get(source)).into_iter().flatten());
        needed.into_iter().collect()
    };
    rules.iter().map(needed).collect()
}

/// How rules in force stand to each other.
pub struct Levels {
    /// Rules by number, level by level: each level reads only fields of those before it.
    pub levels: Vec<Vec<usize>>,
    /// Of each rule whether another one reads its field.
    pub is_read: Vec<bool>,
}

impl Levels {
    pub fn of(rules: &[&Rule]) -> Levels {
        let needs = needs(rules);
        let mut is_read = vec![false; rules.len()];
        for (reader, needed) in needs.iter().enumerate() {
            for number in needed.iter().filter(|number| **number != reader) {
                if let Some(read) = is_read.get_mut(*number) {
                    *read = true;
                }
            }
        }
        let needs_any = |reader: &usize, left: &[usize]| {
            needs.get(*reader).is_some_and(|needed| needed.iter().any(|other| other != reader && left.contains(other)))
        };
        let mut left: Vec<usize> = (0..rules.len()).collect();
        let mut levels = Vec::new();
        while !left.is_empty() {
            let (ready, waiting): (Vec<usize>, Vec<usize>) = left.iter().partition(|reader| !needs_any(reader, &left));
            // A cycle between fields is refused when a declaration is checked: what is left of one runs in its order.
            let (ready, waiting) = if ready.is_empty() { (waiting, Vec::new()) } else { (ready, waiting) };
            levels.push(ready);
            left = waiting;
        }
        Levels { levels, is_read }
    }
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
