//! Which rules keep a field, found by the field's path: comparing every rule with every other would take the square of a
//! file's length.

use document::op::Namespace;
use document::value::Path;
use std::collections::HashMap;

/// Rules by the collection and field that each keeps.
#[derive(Default)]
pub(crate) struct Owners(HashMap<Namespace, Branch>);

#[derive(Default)]
struct Branch {
    /// The rules that keep what this is the path of.
    here: Vec<usize>,
    /// The rules that keep it or something inside.
    inside: Vec<usize>,
    parts: HashMap<String, Branch>,
}

impl Owners {
    /// Of rules in their order: the collection and the field of each.
    pub(crate) fn new<'a>(kept: impl IntoIterator<Item = (&'a Namespace, &'a Path)>) -> Owners {
        let mut owners = Owners::default();
        for (number, (namespace, field)) in kept.into_iter().enumerate() {
            let mut branch = owners.0.entry(namespace.clone()).or_default();
            branch.inside.push(number);
            for part in &field.parts {
                branch = branch.parts.entry(part.name.to_string()).or_default();
                branch.inside.push(number);
            }
            branch.here.push(number);
        }
        owners
    }

    /// The numbers of the rules whose field is the path, leads to it or lies in it; without a path all of the collection's.
    pub(crate) fn overlapping(&self, namespace: &Namespace, path: Option<&Path>) -> Vec<usize> {
        let Some(mut branch) = self.0.get(namespace) else { return Vec::new() };
        let mut found = Vec::new();
        for part in path.iter().flat_map(|path| &path.parts) {
            found.extend(&branch.here);
            match branch.parts.get(&*part.name) {
                Some(next) => branch = next,
                None => return found,
            }
        }
        found.extend(&branch.inside);
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_those_that_overlap() {
        let (ns, other) = (Namespace::new("d", "c"), Namespace::new("d", "o"));
        let kept = ["a", "b.c", "b.d.e", "bc", "b.c"].map(Path::new);
        let owners = Owners::new(kept.iter().map(|path| (&ns, path)).chain([(&other, &kept[0])]));
        let found = |path: &str| owners.overlapping(&ns, Some(&Path::new(path)));
        assert_eq!(found("a"), [0]);
        assert_eq!(found("a.x.y"), [0]);
        assert_eq!(found("b"), [1, 2, 4]);
        assert_eq!(found("b.c"), [1, 4]);
        assert_eq!(found("b.d"), [2]);
        assert_eq!(found("x"), [] as [usize; 0]);
        assert_eq!(owners.overlapping(&ns, None), [0, 1, 2, 3, 4]);
        assert_eq!(owners.overlapping(&other, Some(&Path::new("a"))), [5]);
    }
}
