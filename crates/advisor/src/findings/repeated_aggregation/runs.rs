//! The aggregations of children by a key of their parent that traffic shows: which numbers they compute, and over how many documents.

use crate::relation::Relation;
use crate::survey::{Collection, Survey};
use crate::traffic::{Accumulated, CommandShape, Stage};
use crate::values::hash;
use document::Value;
use std::collections::BTreeMap;

/// A condition on a field with so few values may be the same each time.
const ENUMERATED: usize = 12;

/// Aggregations of one collection by one key.
pub(super) struct Runs<'s> {
    pub(super) parent: &'s Collection,
    pub(super) children: &'s Collection,
    pub(super) relation: &'s Relation,
    pub(super) by_source: BTreeMap<usize, Seen>,
    /// The numbers that are computed, each once.
    pub(super) computed: Vec<Computed>,
    /// Some runs have a condition whose value the traffic does not show.
    pub(super) has_hidden_condition: bool,
}

/// What one source has seen of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) count: u64,
    pub(super) examined: u64,
    pub(super) returned: u64,
    /// The source does not say what was examined: it follows from how many children a parent has.
    pub(super) is_estimated: bool,
    pub(super) milliseconds: f64,
}

/// One number of the parent.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    /// What the clients call it.
    pub(super) name: String,
    /// `count`, `sum`, `avg`, `min`, `max`.
    pub(super) word: &'static str,
    pub(super) of: Option<String>,
    pub(super) only: Vec<(String, Value<'static>)>,
}

/// All of a database, in a fixed order.
pub(super) fn all<'s>(survey: &'s Survey<'s>) -> Vec<Runs<'s>> {
    let mut all: BTreeMap<(&str, &str, &str), Runs<'s>> = BTreeMap::new();
    for relation in &survey.relations {
        let (Some(children), Some(parent)) = (survey.collection(&relation.from), survey.collection(&relation.to))
        else {
            continue;
        };
        let found = one(survey, relation, parent, children);
        if found.by_source.is_empty() {
            continue;
        }
        // Of two parents of one key the surer one.
        let key = (children.name(), &*relation.path, parent.name());
        let is_surer = |known: &Runs<'_>| known.relation.confidence >= relation.confidence;
        if !all
            .values()
            .any(|known| (known.children.name(), &*known.relation.path) == (key.0, key.1) && is_surer(known))
        {
            all.retain(|(from, path, _), _| (*from, *path) != (key.0, key.1));
            all.insert(key, found);
        }
    }
    all.into_values().collect()
}

fn one<'s>(
    survey: &'s Survey<'s>,
    relation: &'s Relation,
    parent: &'s Collection,
    children: &'s Collection,
) -> Runs<'s> {
    let mut runs = Runs {
        parent,
        children,
        relation,
        by_source: BTreeMap::new(),
        computed: Vec::new(),
        has_hidden_condition: false,
    };
    for shape in survey.traffic.of(survey.database, children.name()) {
        runs.of_children(survey, shape);
    }
    for shape in survey.traffic.of(survey.database, parent.name()) {
        runs.of_parents(shape);
    }
    // Sources say shapes in the order of what they cost, which is never the same.
    runs.computed.sort_by(|one, other| (&one.of, one.word, &one.name).cmp(&(&other.of, other.word, &other.name)));
    runs
}

impl Runs<'_> {
    /// How many children a parent has.
    fn family(&self) -> u64 {
        self.children.statistics.count.checked_div(self.parent.statistics.count.max(1)).unwrap_or_default().max(1)
    }

    /// `count` or `aggregate` of the children.
    fn of_children(&mut self, survey: &Survey<'_>, shape: &CommandShape) {
        let key = &self.relation.path;
        let is_by_filter = shape.equal.contains(key);
        let folds = match &*shape.kind {
            "count" if is_by_filter => vec![counted("count")],
            "aggregate" => match grouped(shape, key, is_by_filter) {
                Some(folds) => folds,
                None => return,
            },
            _ => return,
        };
        let others: Vec<&String> = shape.filter.iter().filter(|path| *path != key).collect();
        let is_shown = survey.traffic.sources.get(shape.source).is_some_and(|source| source.name != "pleach");
        let Some(only) = self.conditions(shape, &others, is_shown) else { return };
        let each = if is_by_filter { self.family() } else { self.children.statistics.count };
        self.add(shape, each);
        match only {
            Some(only) => folds.iter().for_each(|fold| self.compute(fold, &only)),
            None => self.has_hidden_condition = true,
        }
    }

    /// The conditions beside the key: `None` if they are other ones each time, `Some(None)` if their values are not shown.
    #[expect(clippy::option_option, reason = "both are answers")]
    fn conditions(
        &self,
        shape: &CommandShape,
        others: &[&String],
        is_shown: bool,
    ) -> Option<Option<Vec<(String, Value<'static>)>>> {
        if shape.has_expression {
            return None;
        }
        let mut only = Vec::new();
        let mut is_hidden = false;
        for path in others {
            if !shape.equal.contains(path) {
                return None;
            }
            match shape.constants.iter().find(|(constant, _)| constant == *path) {
                Some(constant) => only.push(constant.clone()),
                None if is_shown => return None,
                None => {
                    let facts = self.children.shape.path(path)?;
                    facts.distinct.few(ENUMERATED)?;
                    is_hidden = true;
                }
            }
        }
        only.sort_by(|(one, _), (other, _)| one.cmp(other));
        Some((!is_hidden).then_some(only))
    }

    /// A `$lookup` of the children, of which only a number is taken.
    fn of_parents(&mut self, shape: &CommandShape) {
        let is_ours = |stage: &&Stage| {
            stage.name == "$lookup"
                && !stage.folds.is_empty()
                && stage.from.as_deref() == Some(self.children.name())
                && stage.local.as_ref() == Some(&self.relation.key)
                && stage.foreign.as_ref() == Some(&self.relation.path)
        };
        let Some(stage) = shape.stages.iter().find(is_ours) else { return };
        let rows = shape.returned.checked_div(shape.count.max(1)).unwrap_or_default().max(1);
        self.add(shape, rows.saturating_mul(self.family()));
        for fold in &stage.folds {
            self.compute(fold, &[]);
        }
    }

    /// Counts the runs, each over so many documents if the source does not say it.
    fn add(&mut self, shape: &CommandShape, each: u64) {
        let seen = self.by_source.entry(shape.source).or_default();
        let estimated = shape.count.saturating_mul(each);
        seen.is_estimated |= shape.examined == 0;
        seen.examined += if shape.examined == 0 { estimated } else { shape.examined };
        seen.count += shape.count;
        seen.returned += shape.returned;
        seen.milliseconds += shape.milliseconds;
    }

    fn compute(&mut self, fold: &Accumulated, only: &[(String, Value<'static>)]) {
        let word = match (&*fold.operator, &fold.path) {
            ("$sum", None) | ("$count", None) => "count",
            ("$sum", Some(_)) => "sum",
            ("$avg", Some(_)) => "avg",
            ("$min", Some(_)) => "min",
            ("$max", Some(_)) => "max",
            _ => return,
        };
        if fold.path.as_ref().is_some_and(|path| self.children.shape.path(path).is_none()) {
            return;
        }
        let is_same = |known: &Computed| {
            known.word == word && known.of == fold.path && known.only.len() == only.len() && same(&known.only, only)
        };
        if !self.computed.iter().any(is_same) {
            let (name, of) = (fold.name.clone(), fold.path.clone());
            self.computed.push(Computed { name, word, of, only: only.to_vec() });
        }
    }
}

fn same(one: &[(String, Value<'static>)], other: &[(String, Value<'static>)]) -> bool {
    one.iter().zip(other).all(|((path, value), (other, same))| path == other && hash(value) == hash(same))
}

fn counted(name: &str) -> Accumulated {
    Accumulated { name: name.to_owned(), operator: "$sum".to_owned(), path: None }
}

/// What a pipeline computes of the children of a key; `None` if it does something else.
fn grouped(shape: &CommandShape, key: &str, is_by_filter: bool) -> Option<Vec<Accumulated>> {
    let mut is_filtered = false;
    for (place, stage) in shape.stages.iter().enumerate() {
        match &*stage.name {
            // Of the first one the paths are known.
            "$match" if place == 0 => is_filtered = true,
            "$sort" | "$project" => {}
            "$count" if is_by_filter => return Some(vec![counted("count")]),
            "$group" => {
                let by_key = stage.keys.iter().all(|path| path == key) && (is_by_filter || stage.keys.len() == 1);
                let is_whole = is_filtered || !is_by_filter;
                return (by_key && is_whole && !stage.folds.is_empty()).then(|| stage.folds.clone());
            }
            _ => return None,
        }
    }
    None
}
