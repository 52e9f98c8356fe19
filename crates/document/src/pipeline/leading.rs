//! What of a pipeline an access layer can answer itself: the filter, order and window at its beginning, and which fields
//! the rest needs.

use super::{Pipeline, Role, implied};
use crate::filter::Filter;
use crate::op::SortSpec;
use crate::value::Path;

/// A pipeline in two: what an index may answer, and what is left to run.
#[derive(Clone, Debug)]
pub struct Split {
    pub leading: Leading,
    pub rest: Pipeline,
    /// The paths that `rest` reads of what the leading part gives (which may need others itself); nothing means all.
    /// Sorted; none of them leads to another.
    pub needed: Option<Vec<Path>>,
}

/// The leading stages in the order they apply: filter, sort, skip, limit.
#[derive(Clone, Debug)]
pub struct Leading {
    pub filter: Filter,
    pub sort: Option<SortSpec>,
    pub skip: u64,
    /// How many documents are wanted after skipping.
    pub limit: Option<u64>,
}

impl Pipeline {
    pub fn split(&self) -> Split {
        let mut leading = Leading { filter: Filter::all(), sort: None, skip: 0, limit: None };
        let taken = self.stages.iter().take_while(|stage| leading.take(&stage.role())).count();
        leading.filter = implied::constants(&leading.filter).and(leading.filter);
        let stages = self.stages.get(taken..).unwrap_or_default().to_vec();
        let rest = Pipeline { stages, sink: self.sink.clone(), source: None, reads_score: self.reads_score };
        let needed = rest.needs();
        Split { leading, rest, needed }
    }

    /// The paths of its input that it reads; nothing means all.
    pub fn needs(&self) -> Option<Vec<Path>> {
        let needed = self.stages.iter().rev().fold(None, |after, stage| stage.needs(after))?;
        Some(without_inner(needed))
    }
}

impl Leading {
    /// Takes a stage over, if it fits behind those taken before.
    fn take(&mut self, role: &Role<'_>) -> bool {
        let windowed = self.skip > 0 || self.limit.is_some();
        match role {
            Role::Match(stage) if !windowed => {
                self.filter = std::mem::replace(&mut self.filter, Filter::all()).and(stage.filter.clone());
            }
            Role::Sort(stage) if !windowed && self.sort.is_none() => {
                self.sort = Some(stage.spec.clone());
                self.limit = stage.limit;
            }
            Role::Skip(count) => {
                self.skip = self.skip.saturating_add(*count);
                self.limit = self.limit.map(|limit| limit.saturating_sub(*count));
            }
            Role::Limit(count) => self.limit = Some(self.limit.map_or(*count, |limit| limit.min(*count))),
            _ => return false,
        }
        true
    }
}

/// Leaves out the paths that others lead to.
fn without_inner(mut paths: Vec<Path>) -> Vec<Path> {
    paths.sort();
    let mut outer: Vec<Path> = Vec::with_capacity(paths.len());
    for path in paths {
        if !outer.last().is_some_and(|last| last.is_prefix_of(&path)) {
            outer.push(path);
        }
    }
    outer
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::parse;
    use bson::{Bson, bson};

    /// Filter, sort, skip, limit, how many stages are left, and what these need.
    type Parts = (String, Vec<String>, u64, Option<u64>, usize, Option<Vec<String>>);

    fn parts(stages: Bson) -> Parts {
        let split = parse(stages).unwrap().split();
        let leading = split.leading;
        let sort = leading.sort.map(|sort| sort.keys.iter().map(|key| key.path.dotted()).collect()).unwrap_or_default();
        let needed = split.needed.map(|paths| paths.iter().map(|path| path.dotted()).collect());
        let filter = crate::value::show::document(&leading.filter.source).to_string();
        (filter, sort, leading.skip, leading.limit, split.rest.stages.len(), needed)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_beginning_is_split_off() {
        let none = || "{}".to_owned();
        assert_eq!(parts(bson!([])), (none(), vec![], 0, None, 0, None));
        let matched = bson!([{ "$match": { "a": 1 } }, { "$sort": { "b": 1 } }, { "$skip": 2 }, { "$limit": 3 }, { "$count": "n" }]);
        assert_eq!(parts(matched), ("{ a: 1 }".to_owned(), names(&["b"]), 2, Some(3), 1, Some(vec![])));
        let limited = bson!([{ "$limit": 5 }, { "$skip": 2 }, { "$match": { "a": 1 } }]);
        assert_eq!(parts(limited), (none(), vec![], 2, Some(3), 1, None));
        let sorted_twice = bson!([{ "$sort": { "a": 1 } }, { "$limit": 5 }, { "$sort": { "b": 1 } }, { "$limit": 2 }]);
        assert_eq!(parts(sorted_twice), (none(), names(&["a"]), 0, Some(5), 1, None));
    }

    #[test]
    fn only_what_is_read_is_needed() {
        let check = |stages: Bson, expected: Option<&[&str]>| assert_eq!(parts(stages).5, expected.map(names));
        check(bson!([{ "$match": { "a": 1 } }]), None);
        check(bson!([{ "$unwind": "$a" }, { "$count": "n" }]), Some(&["a"]));
        check(
            bson!([{ "$unwind": "$a.b" }, { "$match": { "a": 1, "c": 2, "c.d": 3 } }, { "$count": "n" }]),
            Some(&["a"]),
        );
        check(bson!([{ "$replaceWith": { "x": "$a.b", "y": "$c" } }]), Some(&["a.b", "c"]));
    }
}
