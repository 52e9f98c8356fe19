//! The worlds that proofs are run in, built from the registries of fields, shapes and constraints: what is listed there is proven.

use crate::world::declaration;
use patterns::constraints::CONSTRAINTS;
use patterns::fields::FIELDS;
use patterns::rule::lens::LENSES;
use patterns::rule::{Outlier, Rule, WhenChanged};
use patterns::shapes::{OUTLIERS, SHAPES};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::sync::Arc;

/// A declaration of the shop, and what it is made of.
#[derive(Clone, Debug)]
pub struct Declared {
    pub name: String,
    /// What stands below `collections:`.
    pub collections: String,
}

/// All blocks of all fields.
pub fn field_blocks() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().flat_map(|entry| entry.blocks).copied()
}

/// All blocks of all shapes.
pub fn shape_blocks() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().flat_map(|entry| entry.blocks).copied()
}

/// All blocks of all constraints.
pub fn constraint_blocks() -> impl Iterator<Item = &'static str> {
    CONSTRAINTS.iter().flat_map(|entry| entry.blocks).copied()
}

/// All blocks of outlier arrays and of versions: documents stay where they are.
pub fn form_blocks() -> impl Iterator<Item = &'static str> {
    OUTLIERS.iter().chain(LENSES).flat_map(|entry| entry.blocks).copied()
}

/// The blocks that worlds are built on: none, each shape with the versions that go with it, all outlier arrays and versions.
pub fn bases() -> Vec<Vec<&'static str>> {
    let versions = || LENSES.iter().flat_map(|entry| entry.blocks).copied();
    let shaped = shape_blocks().map(|shape| {
        let beside = versions().filter(move |lens| goes_with(lens, shape));
        std::iter::once(shape).chain(beside).collect()
    });
    std::iter::once(Vec::new()).chain(shaped).chain([form_blocks().collect()]).collect()
}

/// The same field with versions of all collections that it is about, as far as they go together.
pub fn beside_versions(field: &str) -> String {
    let about = collections_of(field);
    let is_about = |lens: &&str| collections_of(lens).iter().all(|name| about.contains(name));
    let lenses = LENSES.iter().flat_map(|entry| entry.blocks).copied();
    let beside = lenses.filter(is_about).filter(|lens| goes_with(field, lens));
    merged(&std::iter::once(field).chain(beside).collect::<Vec<_>>())
}

/// The fields that go with all blocks of a base.
pub fn fields_on(base: &[&'static str]) -> Vec<&'static str> {
    field_blocks().filter(|field| base.iter().all(|block| goes_with(field, block))).collect()
}

/// Every field on collections as they are and beside all constraints; every shape, beside versions, with all fields that go with it;
/// and outlier arrays and versions with all fields that go with them, beside all constraints.
pub fn worlds() -> Vec<Declared> {
    let fields: Vec<&str> = field_blocks().collect();
    let beside: Vec<&str> = fields.iter().copied().chain(constraint_blocks()).collect();
    let plain = Declared { name: "all fields".to_owned(), collections: merged(&beside) };
    let names = SHAPES.iter().flat_map(|entry| (0..entry.blocks.len()).map(move |at| (entry.name, at)));
    let shaped = names.zip(bases().into_iter().skip(1)).map(|((name, at), base)| {
        let blocks: Vec<&str> = base.iter().copied().chain(fields_on(&base)).collect();
        Declared { name: format!("all fields on {name} {at}"), collections: merged(&blocks) }
    });
    let forms: Vec<&str> = form_blocks().collect();
    let on_forms: Vec<&str> = fields_on(&forms).into_iter().chain(constraint_blocks()).chain(forms).collect();
    let forms = Declared { name: "all fields on forms".to_owned(), collections: merged(&on_forms) };
    std::iter::once(plain).chain(shaped).chain([forms]).collect()
}

/// Every block by itself, and every pair of a field and a shape, an outlier array or versions that stack.
pub fn small_worlds() -> Vec<Declared> {
    let alone = |block: &&str| Declared { name: (*block).to_owned(), collections: (*block).to_owned() };
    let blocks = || shape_blocks().chain(form_blocks());
    let mut all: Vec<Declared> = field_blocks().chain(blocks()).map(|block| alone(&block)).collect();
    for shape in blocks() {
        for field in field_blocks().filter(|field| stacks(field, shape)) {
            let collections = merged(&[shape, field]);
            all.push(Declared { name: collections.clone(), collections });
        }
    }
    all
}

/// The first block of every field by itself: where no other field passes its fences and captures its paths for it.
pub fn fields_alone() -> Vec<Declared> {
    let first = FIELDS.iter().filter_map(|entry| entry.blocks.first());
    first.map(|block| Declared { name: (*block).to_owned(), collections: (*block).to_owned() }).collect()
}

/// So many of them, always the same by one seed.
pub fn some<T: Clone>(of: &[T], number: usize, seed: u64) -> Vec<T> {
    of.sample(&mut StdRng::seed_from_u64(seed), number).cloned().collect()
}

/// The blocks that keep a field of `host` from `source`.
pub fn between(host: &str, source: &str) -> Vec<&'static str> {
    let links = |rule: &Rule| {
        *rule.host.collection == *host && rule.link().is_some_and(|link| *link.source.collection == *source)
    };
    field_blocks().filter(|block| rules(block).iter().any(links)).collect()
}

/// Whether a block defers something.
pub fn is_deferred(block: &str) -> bool {
    rules(block).iter().any(|rule| rule.link().is_some_and(|link| link.lag.is_some()))
}

/// The collections that the rules read or write.
pub fn collections_of(collections: &str) -> Vec<String> {
    let rules = rules(collections);
    rules.iter().flat_map(Rule::namespaces).map(|ns| ns.collection.to_string()).collect()
}

/// The collections that proofs of these rules are about: those stored in another form or else in another place, or else all.
pub fn focus_of(collections: &str) -> Vec<String> {
    let rules = rules(collections);
    let hosts = |is_one: &dyn Fn(&Rule) -> bool| -> Vec<String> {
        rules.iter().filter(|rule| is_one(rule)).map(|rule| rule.host.collection.to_string()).collect()
    };
    let (shaped, forms) =
        (hosts(&|rule| rule.shape().is_some()), hosts(&|rule| rule.outlier().is_some() || rule.lens().is_some()));
    match (shaped.is_empty(), forms.is_empty()) {
        (false, _) => shaped,
        (true, false) => forms,
        (true, true) => collections_of(collections),
    }
}

/// The outlier arrays of a declaration.
pub fn outliers(collections: &str) -> Vec<Arc<Outlier>> {
    rules(collections).iter().filter_map(|rule| rule.outlier().cloned()).collect()
}

/// What rules add to documents beside fields: flags, counts and numbers of versions, with their collections.
pub fn marks(collections: &str) -> Vec<(String, String)> {
    let of = |rule: &Rule| -> Vec<(String, String)> {
        let arrays = rule.outlier().into_iter().flat_map(|outlier| [outlier.flag.clone(), outlier.count.clone()]);
        let names = arrays.chain(rule.lens().map(|lens| lens.field.to_string()));
        names.map(|name| (rule.host.collection.to_string(), name)).collect()
    };
    rules(collections).iter().flat_map(of).collect()
}

/// The paths that the rules own, with their collections.
pub fn owned(collections: &str) -> Vec<(String, String)> {
    let fields = rules(collections).into_iter().filter(|rule| rule.kept_field().is_some());
    fields.map(|rule| (rule.host.collection.to_string(), rule.field.dotted().to_string())).collect()
}

/// The same without copies that stay as they were made: whatever they hold is right.
pub fn refreshed(collections: &str) -> Vec<(String, String)> {
    let is_frozen = |rule: &Rule| rule.link().is_some_and(|link| link.when_changed == WhenChanged::Keep);
    let fields = rules(collections).into_iter().filter(|rule| rule.kept_field().is_some() && !is_frozen(rule));
    fields.map(|rule| (rule.host.collection.to_string(), rule.field.dotted().to_string())).collect()
}

/// Whether the check allows a field beside a shape.
pub fn goes_with(field: &str, shape: &str) -> bool {
    let text = declaration("shop", &merged(&[field, shape]));
    patterns::declare::from_yaml("pleach.yaml", &text).declaration.is_some()
}

/// Whether a field stands on a collection that a shape stores.
fn stacks(field: &str, shape: &str) -> bool {
    let shaped = focus_of(shape);
    collections_of(field).iter().any(|name| shaped.contains(name)) && goes_with(field, shape)
}

fn rules(collections: &str) -> Vec<Rule> {
    crate::world::declared("shop", collections).rules
}

/// Several blocks as one: lines that are the same, and stand below the same lines, are one line.
pub fn merged(blocks: &[&str]) -> String {
    let lines: Vec<(usize, &str)> = blocks
        .iter()
        .flat_map(|block| block.lines())
        .map(|line| (line.len() - line.trim_start().len(), line.trim()))
        .collect();
    let mut text = String::new();
    print(&lines, 0, &mut text);
    text
}

/// The lines of one depth, each once, followed by all lines below any of its repetitions.
fn print(lines: &[(usize, &str)], depth: usize, text: &mut String) {
    let starts: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].0 == depth).collect();
    let mut done: Vec<&str> = Vec::new();
    for (_, line) in starts.iter().map(|at| lines[*at]) {
        if done.contains(&line) {
            continue;
        }
        done.push(line);
        text.push_str(&format!("{}{line}\n", " ".repeat(depth)));
        let below: Vec<(usize, &str)> = starts
            .iter()
            .filter(|at| lines[**at].1 == line)
            .flat_map(|at| lines[at + 1..].iter().take_while(|(indent, _)| *indent > depth))
            .copied()
            .collect();
        print(&below, depth + 2, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::declared;

    #[test]
    fn blocks_merge_by_their_lines() {
        let (count, sum) = ("a:\n  computed:\n    n: { count: b, by: aId }", "a:\n  computed:\n    s: { sum: x }");
        let (copy, again) = ("b:\n  extended_reference:\n    c: { from: a }", count);
        assert_eq!(
            merged(&[count, copy, sum, again]),
            "a:\n  computed:\n    n: { count: b, by: aId }\n    s: { sum: x }\nb:\n  extended_reference:\n    c: { from: a }\n"
        );
    }

    #[test]
    fn every_block_is_in_a_world_and_every_world_is_allowed() {
        let worlds = worlds();
        assert_eq!(worlds.len(), 2 + shape_blocks().count());
        for world in &worlds {
            declared("shop", &world.collections);
        }
        let all: String = worlds.iter().map(|world| &*world.collections).collect();
        for leaf in field_blocks()
            .chain(shape_blocks())
            .chain(form_blocks())
            .chain(constraint_blocks())
            .filter_map(|block| block.lines().last())
        {
            assert!(all.contains(leaf.trim()), "{leaf}");
        }
        // Some field stands on each shape, array and version.
        for shape in shape_blocks().chain(form_blocks()) {
            assert!(field_blocks().any(|field| stacks(field, shape)), "nothing stacks on {shape}");
        }
    }

    #[test]
    fn no_two_blocks_declare_one_field() {
        let everything = merged(&field_blocks().collect::<Vec<_>>());
        let mut owned = owned(&everything);
        let count = owned.len();
        owned.sort();
        owned.dedup();
        assert_eq!(owned.len(), count);
    }
}
