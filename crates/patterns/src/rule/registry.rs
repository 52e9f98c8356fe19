//! An entry of a registry: a field, a shape, an array, versions or a constraint that there is, where people read about it, and the declarations that prove it.

/// One field, shape, form of arrays or of versions, or constraint.
#[derive(Clone, Copy, Debug)]
pub struct RegistryEntry {
    /// The name of its module.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// The page that explains it, from the root of the repository.
    pub page: &'static str,
    /// The folder of its example, from the root of the repository.
    pub example: &'static str,
    /// The declarations that all proofs and crash runs take it from, each the lines below `collections:`. They are written in the
    /// words of the shop whose clients the proofs play (`crates/testing/src/shop.rs`), and no two blocks declare one field.
    pub blocks: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use crate::constraints::CONSTRAINTS;
    use crate::declare::{Severity, from_yaml};
    use crate::fields::FIELDS;
    use crate::rule::lens::LENSES;
    use crate::shapes::{OUTLIERS, SHAPES};
    use std::path::Path;

    #[test]
    fn registries_are_sorted_unique_and_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registries = [
            ("constraints", CONSTRAINTS),
            ("fields", FIELDS),
            ("rule", LENSES),
            ("shapes", OUTLIERS),
            ("shapes", SHAPES),
        ];
        for (folder, entries) in registries {
            assert!(entries.is_sorted_by(|first, second| first.name < second.name), "{entries:?}");
            for entry in entries {
                assert!(entry.help.ends_with('.'), "{}: one sentence", entry.name);
                assert!(root.join(entry.page).is_file(), "{}: {}", entry.name, entry.page);
                for file in ["pleach.yaml", "seed.json", "try.py"] {
                    assert!(root.join(entry.example).join(file).is_file(), "{}: {}/{file}", entry.name, entry.example);
                }
                let module = root.join("crates/patterns/src").join(folder).join(entry.name);
                assert!(module.is_dir() || module.with_extension("rs").is_file(), "{} is no module", entry.name);
            }
        }
    }

    #[test]
    fn every_block_passes_the_check_and_declares_what_it_is_listed_for() {
        let others = SHAPES.iter().chain(OUTLIERS).chain(LENSES).chain(CONSTRAINTS).map(|it| (it, false));
        for (entry, is_field) in FIELDS.iter().map(|it| (it, true)).chain(others) {
            assert!(!entry.blocks.is_empty(), "{} is proven by nothing", entry.name);
            for block in entry.blocks {
                let indented: String = block.lines().map(|line| format!("  {line}\n")).collect();
                let checked = from_yaml("pleach.yaml", &format!("database: shop\ncollections:\n{indented}"));
                let wrong: Vec<_> = checked.findings.iter().filter(|it| it.severity > Severity::Note).collect();
                assert!(wrong.is_empty(), "{}: {block}\n{wrong:?}", entry.name);
                let rules = checked.declaration.unwrap().rules;
                assert!(rules.iter().any(|rule| rule.kept_field().is_some() == is_field), "{}: {block}", entry.name);
            }
        }
    }
}
