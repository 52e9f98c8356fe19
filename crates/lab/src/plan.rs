//! What is sampled: the collections that the rules of all candidates touch, and by what their documents belong together.
//!
//! Parents come with all their children, series as a whole. Every collection is in exactly one family: the unit of a family is a
//! document of its root with all that hangs on it, or a series.

use crate::keys::Key;
use document::value::Path;
use patterns::rule::{KeyPath, LinkKey, Refers, Rule};
use std::collections::BTreeSet;

/// A collection as clients see it.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: String,
    /// By what its documents belong to a unit.
    pub key: Key,
    /// The collection that it follows; `None` if its family begins with it.
    pub follows: Option<Follows>,
    /// By what other collections refer to its documents, beside its own key.
    pub referred: Vec<Key>,
}

#[derive(Clone, Debug)]
pub struct Follows {
    /// Its place in the plan, which is before the child's.
    pub parent: usize,
    /// The field of the parent that the child's key names.
    pub by: Key,
}

/// Documents that must be there too, so that the sampled ones are as they are in the whole.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Whose documents refer.
    pub from: usize,
    pub local: KeyPath,
    pub to: usize,
    pub foreign: Path,
    /// Whether only the documents of units are followed, not those that were taken for others.
    pub of_units: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Parents before their children.
    pub members: Vec<Member>,
    pub references: Vec<Reference>,
}

struct Edge {
    parent: String,
    parent_key: Path,
    child: String,
    child_key: Path,
    /// The parent's field depends on all children.
    needs_all: bool,
}

impl Plan {
    /// Of the rules of all candidates.
    pub fn of<'r>(rules: impl Iterator<Item = &'r Rule> + Clone) -> Plan {
        let names = collections(rules.clone());
        let edges = edges(rules.clone(), &names);
        let mut chosen: Vec<(&str, Option<&Edge>)> = names.iter().map(|name| (&**name, None)).collect();
        for at in 0..chosen.len() {
            let Some(name) = chosen.get(at).map(|(name, _)| *name) else { continue };
            let series = series(rules.clone(), name);
            let fits = |edge: &&Edge| {
                let in_series = series.as_ref().is_none_or(|fields| fields.contains(&edge.child_key.dotted()));
                edge.child == name && in_series && !leads_to(&chosen, &edge.parent, name)
            };
            let mut fitting: Vec<&Edge> = edges.iter().filter(fits).collect();
            fitting.sort_by_key(|edge| !edge.needs_all);
            let first = fitting.first().copied();
            if let Some(slot) = chosen.get_mut(at) {
                slot.1 = first;
            }
        }
        let mut plan = Plan::default();
        while plan.members.len() < chosen.len() {
            let before = plan.members.len();
            for (name, edge) in &chosen {
                if plan.place(name).is_some() {
                    continue;
                }
                let parent = edge.and_then(|edge| plan.place(&edge.parent));
                if edge.is_none() || parent.is_some() {
                    let member = plan.member(name, *edge, parent, &edges, series(rules.clone(), name));
                    plan.members.push(member);
                }
            }
            if plan.members.len() == before {
                break;
            }
        }
        plan.references = references(rules, &plan);
        plan
    }

    pub fn place(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member.name == name)
    }

    /// The collection that a family begins with.
    pub fn root(&self, mut at: usize) -> usize {
        while let Some(follows) = self.members.get(at).and_then(|member| member.follows.as_ref()) {
            at = follows.parent;
        }
        at
    }

    /// By what units of a collection's documents are found: the place of a collection, and its field.
    pub fn unit_key(&self, at: usize) -> (usize, Vec<String>) {
        match self.members.get(at).map(|member| (member, &member.follows)) {
            Some((_, Some(follows))) => (follows.parent, follows.by.dotted()),
            Some((member, None)) => (at, member.key.dotted()),
            None => (at, Vec::new()),
        }
    }

    fn member(
        &self,
        name: &str,
        edge: Option<&Edge>,
        parent: Option<usize>,
        edges: &[Edge],
        series: Option<Vec<String>>,
    ) -> Member {
        let mut referred: Vec<Key> = vec![Key::id()];
        let mut parent_keys: Vec<Key> = Vec::new();
        for edge in edges.iter().filter(|edge| edge.parent == name) {
            parent_keys.push(Key::of_path(&edge.parent_key));
        }
        let (key, follows) = match (edge, parent, series) {
            (Some(edge), Some(parent), _) => {
                let by = Key::of_path(&edge.parent_key);
                (Key::of_path(&edge.child_key), Some(Follows { parent, by }))
            }
            (_, _, Some(fields)) => (Key::of_fields(fields.iter().map(|field| &**field)), None),
            _ if parent_keys.is_empty() || parent_keys.contains(&Key::id()) => (Key::id(), None),
            _ => (parent_keys.first().cloned().unwrap_or_else(Key::id), None),
        };
        referred.extend(parent_keys);
        referred.dedup();
        Member { name: name.to_owned(), key, follows, referred }
    }
}

/// The collections that clients know and that the rules touch: hosts and sources.
fn collections<'r>(rules: impl Iterator<Item = &'r Rule> + Clone) -> BTreeSet<String> {
    let virtual_items: BTreeSet<String> =
        rules.clone().filter_map(Rule::outlier).map(|outlier| outlier.items().collection.to_string()).collect();
    let mut names = BTreeSet::new();
    for rule in rules {
        names.insert(rule.host.collection.to_string());
        if let Some(link) = rule.link()
            && link.source.db == rule.host.db
        {
            names.insert(link.source.collection.to_string());
        }
    }
    names.retain(|name| !virtual_items.contains(name));
    names
}

/// The series fields of a collection that some candidate stores in buckets.
fn series<'r>(rules: impl Iterator<Item = &'r Rule>, name: &str) -> Option<Vec<String>> {
    let mut all = rules.filter(|rule| *rule.host.collection == *name).filter_map(Rule::bucket);
    let first: Vec<String> = all.next()?.by.iter().map(|series| series.field.to_string()).collect();
    // Where candidates name different series, those of the fields that all have in common are whole in each.
    let common = all.fold(first, |common, bucket| {
        common.into_iter().filter(|field| bucket.by.iter().any(|series| *series.field == **field)).collect()
    });
    (!common.is_empty()).then_some(common)
}

fn edges<'r>(rules: impl Iterator<Item = &'r Rule>, names: &BTreeSet<String>) -> Vec<Edge> {
    let edge = |rule: &Rule| {
        let link = rule.link()?;
        let LinkKey::Path(foreign) = &link.foreign else { return None };
        let (host, source) = (rule.host.collection.to_string(), link.source.collection.to_string());
        let is_scalar = !link.local.each && !foreign.each && link.shared_with(&rule.field) == 0;
        let both = names.contains(&host) && names.contains(&source) && host != source;
        let (local, foreign) = (link.local.path.clone(), foreign.path.clone());
        let edge = match link.refers {
            Refers::Source => {
                Edge { parent: host, parent_key: local, child: source, child_key: foreign, needs_all: true }
            }
            Refers::Host => {
                Edge { parent: source, parent_key: foreign, child: host, child_key: local, needs_all: false }
            }
        };
        (is_scalar && both && !link.create).then_some(edge)
    };
    rules.filter_map(edge).collect()
}

/// Whether following parents from `from` comes to `name`.
fn leads_to(chosen: &[(&str, Option<&Edge>)], from: &str, name: &str) -> bool {
    let mut at = from;
    for _ in 0..=chosen.len() {
        if at == name {
            return true;
        }
        match chosen.iter().find(|(other, _)| *other == at).and_then(|(_, edge)| *edge) {
            Some(edge) => at = &edge.parent,
            None => return false,
        }
    }
    true
}

/// What units refer to and is not of their family's way down.
fn references<'r>(rules: impl Iterator<Item = &'r Rule>, plan: &Plan) -> Vec<Reference> {
    let mut all: Vec<Reference> = Vec::new();
    for rule in rules {
        let Some(link) = rule.link() else { continue };
        let LinkKey::Path(foreign) = &link.foreign else { continue };
        let (Some(host), Some(source)) = (plan.place(&rule.host.collection), plan.place(&link.source.collection))
        else {
            continue;
        };
        // Children that follow this host are there already, and a copy's source that its host follows.
        let (parent, child, child_key) = match link.refers {
            Refers::Source => (host, source, &foreign.path),
            Refers::Host => (source, host, &link.local.path),
        };
        let follows = plan.members.get(child).is_some_and(|member| {
            member.key == Key::of_path(child_key)
                && member.follows.as_ref().is_some_and(|follows| follows.parent == parent)
        });
        let new = Reference {
            from: host,
            local: link.local.clone(),
            to: source,
            foreign: foreign.path.clone(),
            of_units: link.refers == Refers::Source,
        };
        let is_known = all.iter().any(|old| {
            (old.from, old.to) == (new.from, new.to) && old.local == new.local && old.foreign == new.foreign
        });
        if !follows && !is_known {
            all.push(new);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(collections: &str) -> Plan {
        let text = format!("database: shop\ncollections:\n{collections}");
        let declared = patterns::declare::from_yaml("pleach.yaml", &text).into_result();
        Plan::of(declared.unwrap_or_else(|error| panic!("{error}\n{text}")).rules.iter())
    }

    fn shown(plan: &Plan) -> Vec<String> {
        let one = |member: &Member| {
            let parent = member.follows.as_ref().and_then(|follows| plan.members.get(follows.parent));
            let parent = parent.map(|parent| format!(" in {}", parent.name)).unwrap_or_default();
            format!("{} by {}{parent}", member.name, member.key.dotted().join("+"))
        };
        plan.members.iter().map(one).collect()
    }

    #[test]
    fn parents_come_with_their_children() {
        let plan = plan(
            "  posts:\n    extended_reference:\n      author: { from: users, by: authorId, fields: [name] }\n    computed:\n      likes: { count: likes, by: postId }\n",
        );
        assert_eq!(shown(&plan), ["users by _id", "posts by authorId in users", "likes by postId in posts"]);
        assert!(plan.references.is_empty(), "{:?}", plan.references);
    }

    #[test]
    fn a_second_parent_is_sampled_by_itself_with_what_it_needs() {
        let plan = plan(
            "  products:\n    computed:\n      reviewCount: { count: reviews, by: productId }\n  users:\n    computed:\n      reviewCount: { count: reviews, by: userId }\n",
        );
        assert_eq!(shown(&plan), ["products by _id", "reviews by productId in products", "users by _id"]);
        assert!(plan.references.iter().any(|reference| reference.of_units && reference.from == 2));
    }

    #[test]
    fn series_are_whole() {
        let plan = plan("  readings:\n    bucket: { time: ts, by: [sensorId, kind], every: hour }\n");
        assert_eq!(shown(&plan), ["readings by sensorId+kind"]);
    }
}
