//! The indexes that printed code makes: those that `apply` makes for the same rules.

use crate::languages::literals::{Style, one_line, quoted};
use crate::print::Kept;
use crate::rule::IndexNeed;
use crate::rule::needs::Direction;
use document::Value;

/// An index with a name that no other has.
pub(super) struct PrintedIndex {
    need: IndexNeed,
    name: String,
}

/// What the rules need, each index once; one that another begins with finds nothing more.
pub(super) fn all(kept: &[Kept]) -> Vec<PrintedIndex> {
    let needs: Vec<IndexNeed> = kept.iter().flat_map(|rule| &rule.indexes).flat_map(with_finding).collect();
    let mut printed: Vec<PrintedIndex> = Vec::new();
    for (at, need) in needs.iter().enumerate() {
        let is_made = |(other_at, other): (usize, &IndexNeed)| match serves(other, need) || other == need {
            true => other_at < at || other.keys.len() > need.keys.len(),
            false => false,
        };
        if needs.iter().enumerate().any(is_made) {
            continue;
        }
        let plain = need.name();
        let number = printed.iter().filter(|other| other.need.ns == need.ns && other.need.name() == plain).count();
        let name = if number == 0 { plain } else { format!("{plain}_{}", number + 1) };
        printed.push(PrintedIndex { need: need.clone(), name });
    }
    printed
}

/// Whether one index finds all that another is for.
fn serves(index: &IndexNeed, need: &IndexNeed) -> bool {
    let is_plain = |index: &IndexNeed| !index.unique && index.partial.is_none();
    let serves = |((path, direction), (own, own_direction)): (&(_, Direction), &(_, Direction))| {
        path == own && (*own_direction == Direction::Any || direction.number() == own_direction.number())
    };
    index.ns == need.ns
        && is_plain(index)
        && is_plain(need)
        && index.keys.len() >= need.keys.len()
        && index.keys.iter().zip(&need.keys).all(serves)
}

/// MongoDB finds nothing by a unique index that leaves null alone: a plain one does.
fn with_finding(need: &IndexNeed) -> Vec<IndexNeed> {
    let paths = need.keys.iter().map(|(path, _)| path.clone());
    let plain = (need.unique && need.partial.is_some()).then(|| IndexNeed::lookup(&need.ns, paths));
    std::iter::once(need.clone()).chain(plain).collect()
}

impl PrintedIndex {
    fn collection(&self) -> String {
        quoted(&self.need.ns.collection)
    }

    pub(super) fn javascript(&self, wait: &str, style: &Style) -> String {
        let key = one_line(&Value::Document(self.need.key()), style);
        let mut options = vec![format!("name: {}", quoted(&self.name))];
        if self.need.unique {
            options.push("unique: true".to_owned());
        }
        if let Some(partial) = &self.need.partial {
            options.push(format!("partialFilterExpression: {}", one_line(&Value::Document(partial.borrow()), style)));
        }
        format!("  {wait}collection({}).createIndex({key}, {{ {} }});\n", self.collection(), options.join(", "))
    }

    pub(super) fn python(&self, style: &Style) -> String {
        let key = one_line(&Value::Document(self.need.key()), style);
        let mut options = vec![format!("name={}", quoted(&self.name))];
        if self.need.unique {
            options.push("unique=True".to_owned());
        }
        if let Some(partial) = &self.need.partial {
            options.push(format!("partialFilterExpression={}", one_line(&Value::Document(partial.borrow()), style)));
        }
        format!("    db[{}].create_index({key}, {})\n", self.collection(), options.join(", "))
    }
}
