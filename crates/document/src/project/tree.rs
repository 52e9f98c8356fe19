//! What a projection does with each field, as a tree by field name.

use crate::error::{Error, Result};
use crate::filter::Test;
use crate::op::SortSpec;
use crate::pipeline::expr::{Expr, Names};
use crate::value::Path;
use crate::value::path::Part;
use hashbrown::HashMap;
use std::sync::Arc;

/// What happens to fields that the projection does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Keep,
    Drop,
}

/// The steps for the fields of one (sub-)document, in the order of the specification.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    pub(super) steps: Vec<(Arc<str>, Step)>,
    /// Filled by [`Branch::finish`] when there are many steps.
    index: Option<HashMap<Arc<str>, usize>>,
    /// Whether anything below is computed: then a scalar in the way gives place to a document.
    pub(super) computes: bool,
    /// Whether anything below is computed or taken away.
    pub(super) changes: bool,
    /// How many steps let something of the input through: when all were met, the rest of a document need not be read.
    pub(super) wanted: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Include,
    Exclude,
    Branch(Branch),
    Compute(Compute),
}

impl Step {
    /// Whether it makes something of nothing.
    pub(super) fn computes(&self) -> bool {
        match self {
            Step::Include | Step::Exclude => false,
            Step::Branch(branch) => branch.computes,
            Step::Compute(_) => true,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Compute {
    Expr(Expr),
    /// The first element of a top-level array that passes.
    ElemMatch {
        field: Arc<str>,
        test: Test,
    },
    SortKey(Option<SortSpec>),
    /// Metadata that no document here has.
    Nothing,
}

/// Above this, names are looked up by hash.
const MANY: usize = 16;

impl Branch {
    pub(super) fn step(&self, name: &str) -> Option<&Step> {
        self.find(name.as_bytes()).map(|(_, step)| step)
    }

    /// The step of a field, with its number.
    pub(super) fn find(&self, name: &[u8]) -> Option<(usize, &Step)> {
        let at = match &self.index {
            None => self.steps.iter().position(|(own, _)| own.as_bytes() == name)?,
            Some(index) => *index.get(std::str::from_utf8(name).ok()?)?,
        };
        self.steps.get(at).map(|(_, step)| (at, step))
    }

    /// The branch under `name`, made if need be; `None` if something else stands there.
    pub(super) fn enter(&mut self, name: &Arc<str>) -> Option<&mut Branch> {
        let at = match self.steps.iter().position(|(own, _)| own == name) {
            Some(at) => at,
            None => {
                self.steps.push((name.clone(), Step::Branch(Branch::default())));
                self.steps.len() - 1
            }
        };
        match self.steps.get_mut(at) {
            Some((_, Step::Branch(branch))) => Some(branch),
            _ => None,
        }
    }

    /// Sums up what the steps are, once all are there.
    pub(super) fn finish(&mut self) {
        for (_, step) in &mut self.steps {
            match step {
                Step::Include => self.wanted += 1,
                Step::Exclude => self.changes = true,
                Step::Branch(branch) => {
                    branch.finish();
                    self.wanted += 1;
                    self.computes |= branch.computes;
                    self.changes |= branch.changes;
                }
                Step::Compute(_) => {
                    self.computes = true;
                    self.changes = true;
                }
            }
        }
        if self.steps.len() > MANY {
            self.index = Some(self.steps.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect());
        }
    }

    /// Whether fields that go are to leave their places.
    pub(super) fn leaves_places(&self, names: &mut Names) -> bool {
        self.steps.iter().any(|(name, step)| match step {
            Step::Include => false,
            Step::Exclude | Step::Compute(_) => names.leaves_place(name),
            Step::Branch(branch) => names.leaves_place(name) || branch.leaves_places(names),
        })
    }

    pub(super) fn set_sort(&mut self, sort: Option<&SortSpec>) -> Result<()> {
        for (_, step) in &mut self.steps {
            match step {
                Step::Branch(branch) => branch.set_sort(sort)?,
                Step::Compute(Compute::SortKey(own)) => *own = Some(sort.ok_or_else(without_sort)?.clone()),
                Step::Include | Step::Exclude | Step::Compute(_) => {}
            }
        }
        Ok(())
    }

    /// Adds the paths that an inclusion reads; false if it needs whole documents.
    pub(super) fn collect_reads(&self, above: &mut Vec<Part>, paths: &mut Vec<Path>) -> bool {
        self.steps.iter().all(|(name, step)| {
            above.push(Part::new(name));
            let here = Path { parts: above.clone() };
            let narrow = match step {
                Step::Exclude => true,
                Step::Include => {
                    paths.push(here);
                    true
                }
                Step::Branch(branch) => {
                    // Computed fields are put into whatever is there: its shape matters.
                    if branch.computes {
                        paths.push(here);
                    }
                    branch.collect_reads(above, paths)
                }
                Step::Compute(Compute::Expr(expr)) => match expr.reads() {
                    Some(read) => {
                        paths.extend(read);
                        true
                    }
                    None => false,
                },
                Step::Compute(Compute::ElemMatch { field, .. }) => {
                    paths.push(Path::new(field));
                    true
                }
                Step::Compute(Compute::SortKey(_)) => false,
                Step::Compute(Compute::Nothing) => true,
            };
            above.pop();
            narrow
        })
    }

    pub(super) fn keeps(&self, parts: &[Part], others: Others) -> bool {
        let Some((first, rest)) = parts.split_first() else { return false };
        match self.step(&first.name) {
            None => others == Others::Keep,
            Some(Step::Include) => true,
            Some(Step::Exclude | Step::Compute(_)) => false,
            // Inside arrays, elements may be dropped (indexes move) or become documents.
            Some(Step::Branch(branch)) => {
                !branch.computes && rest.iter().all(|part| part.index.is_none()) && branch.keeps(rest, others)
            }
        }
    }
}

pub(super) fn without_sort() -> Error {
    Error::bad_value("cannot use sortKey $meta projection without a sort")
}
