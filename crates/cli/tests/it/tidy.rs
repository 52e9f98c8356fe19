//! The rules of the tree that no compiler checks. Each failure names the file, the rule and the way out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates each crate may depend on.
const LAYERS: &[(&str, &[&str])] = &[
    ("cli", &["document", "engine", "patterns", "server", "upstream", "wire"]),
    ("document", &[]),
    ("engine", &["document"]),
    ("patterns", &["document"]),
    ("server", &["document", "wire"]),
    ("testing", &["document"]),
    ("upstream", &["document", "wire"]),
    ("wire", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target" && name != "node_modules") {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for krate in fs::read_dir(root().join("crates")).unwrap().flatten() {
        files(&krate.path().join("src"), "rs", &mut found);
    }
    found.sort();
    assert!(found.len() > 20, "the walk found too little: {found:?}");
    found
        .into_iter()
        .map(|path| (path.strip_prefix(root()).unwrap().display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect()
}

fn report(rule: &str, way_out: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{rule}; {way_out}:\n  {}", offenders.join("\n  "));
}

#[test]
fn every_file_opens_with_its_responsibility() {
    let bare: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(name, _)| name).collect();
    report("D1: a file opens with //! and what it is responsible for", "say it in one line", &bare);
}

#[test]
fn no_file_is_too_long() {
    let long: Vec<_> = sources()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("tests.rs"))
        .map(|(name, text)| (name, text.lines().take_while(|line| *line != "mod tests {").count()))
        .filter(|(_, lines)| *lines > 600)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    report("S2: no file above 600 lines outside its tests", "split it by responsibility", &long);
}

#[test]
fn crates_depend_only_downward() {
    let names = ["document", "engine", "server", "wire"];
    let mut wrong = Vec::new();
    for (krate, allowed) in LAYERS {
        let manifest = fs::read_to_string(root().join(format!("crates/{krate}/Cargo.toml"))).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
        for name in names {
            if dependencies.contains(&format!("\n{name}.workspace")) && !allowed.contains(&name) {
                wrong.push(format!("{krate} depends on {name}"));
            }
        }
    }
    report("S3: crates depend only downward (ARCHITECTURE.md)", "move the shared noun to document", &wrong);
}

#[test]
fn heavy_crates_are_named_in_one_place() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            if (line.contains("fjall::") || line.contains("lsm_tree::"))
                && name != "crates/engine/src/store/key_value.rs"
            {
                wrong.push(format!("{name}: {}", line.trim()));
            }
            if line.contains("mongodb::") && !line.contains("mongodb://") {
                wrong.push(format!("{name}: {}", line.trim()));
            }
        }
    }
    report(
        "S4: the storage crate is named only in store/key_value.rs, the official driver only under clients/",
        "go through engine::store",
        &wrong,
    );
}

#[test]
fn no_loose_ends() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    let loose: Vec<_> = sources()
        .into_iter()
        .flat_map(|(name, text)| {
            text.lines()
                .filter(|line| marks.iter().any(|mark| line.contains(mark)) && !line.contains('#'))
                .map(|line| format!("{name}: {}", line.trim()))
                .collect::<Vec<_>>()
        })
        .collect();
    report("D9: no loose end without an issue number", "finish it or name the issue", &loose);
}

#[test]
fn every_pattern_has_its_page_and_its_example() {
    let mut missing = Vec::new();
    for pattern in patterns::kinds::PATTERNS.iter().filter(|pattern| pattern.is_there()) {
        for path in [
            format!("docs/concepts/{}.md", pattern.name),
            format!("examples/{}/pleach.yaml", pattern.name),
            format!("examples/{}/seed.json", pattern.name),
            format!("examples/{}/try.py", pattern.name),
        ] {
            if !root().join(&path).is_file() {
                missing.push(path);
            }
        }
    }
    report("a pattern that is there has a concept page and an example folder", "copy a neighbour's", &missing);
}

#[test]
fn verbs_are_sorted_unique_and_documented() {
    let names = crate::columns::subcommands(&[]);
    assert!(names.len() > 10 && names.is_sorted_by(|first, second| first < second), "{names:?}");
    let mut pages = vec![root().join("README.md")];
    files(&root().join("docs/guide"), "md", &mut pages);
    let text: String = pages.iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    let mut missing = Vec::new();
    for name in &names {
        let file = format!("crates/cli/src/verbs/{name}.rs");
        if !root().join(&file).is_file() {
            missing.push(file);
        }
        if !text.contains(&format!("pleach {name}")) {
            missing.push(format!("`pleach {name}` in docs/guide"));
        }
    }
    // The verbs of the wire command are verbs of the command line too.
    for verb in patterns::life::verbs::VERBS {
        let file = format!("crates/patterns/src/life/verbs/{}.rs", verb.name);
        if !root().join(&file).is_file() {
            missing.push(file);
        }
        if !names.iter().any(|name| name == verb.name) {
            missing.push(format!("`pleach {}` on the command line", verb.name));
        }
    }
    report("R2: a verb has a file of its own and is in a guide", "CONTRIBUTING.md has the recipe", &missing);
}

#[test]
fn every_declaration_in_the_documents_is_valid() {
    let mut declarations: Vec<(String, String)> = Vec::new();
    let mut pages = Vec::new();
    files(&root().join("docs"), "md", &mut pages);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
        declarations.extend(blocks.map(|block| (page.display().to_string(), block)));
    }
    let mut examples = Vec::new();
    files(&root().join("examples"), "yaml", &mut examples);
    declarations.extend(examples.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap())));
    for pattern in patterns::kinds::PATTERNS.iter().filter(|pattern| pattern.is_there()) {
        let indented: String = pattern.example.lines().map(|line| format!("  {line}\n")).collect();
        declarations.push((pattern.name.to_owned(), format!("database: shop\ncollections:\n{indented}")));
    }
    assert!(declarations.len() >= 7, "the walk found too little: {declarations:?}");
    let wrong: Vec<String> = declarations
        .iter()
        .flat_map(|(name, text)| patterns::declare::from_yaml(name, text).findings)
        .filter(|finding| finding.severity > patterns::declare::Severity::Note)
        .map(|finding| format!("{}: {}", finding.file.unwrap_or_default(), finding.message))
        .collect();
    report("every declaration that we show is valid", "run `pleach check` on it", &wrong);
}

/// The words of a text that begin with `letter` and go on with digits only: `R12`.
fn rule_numbers(text: &str, letter: char) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_number = |word: &&str| {
        word.strip_prefix(letter)
            .is_some_and(|rest| (1..=2).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    words.filter(is_number).map(str::to_owned).collect()
}

#[test]
fn every_rule_that_is_cited_is_in_the_document() {
    let document = fs::read_to_string(root().join("docs/semantics.md")).unwrap();
    let headings: String = document.lines().filter(|line| line.starts_with("### ")).collect::<Vec<_>>().join("\n");
    let known = rule_numbers(&headings, 'R');
    assert!(known.len() > 30, "the document has few rules: {known:?}");
    let mut unknown = Vec::new();
    for (path, text) in sources() {
        let cited = text.lines().filter(|line| line.contains("SEMANTICS R"));
        let numbers = cited.flat_map(|line| rule_numbers(line, 'R'));
        unknown.extend(numbers.filter(|number| !known.contains(number)).map(|number| format!("{path}: {number}")));
    }
    report("a rule that a comment cites is in docs/semantics.md", "describe it there, or correct the number", &unknown);
}

#[test]
fn every_file_that_documents_name_exists() {
    let mut pages = vec![root().join("docs/semantics.md"), root().join("docs/glossary.md")];
    files(&root().join("docs/decisions"), "md", &mut pages);
    let is_crate = |name: &str| LAYERS.iter().any(|(krate, _)| *krate == name);
    let (mut missing, mut named) = (Vec::new(), 0);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for word in text.split('`').filter(|word| !word.contains(['*', ' ', '{', '<'])) {
            let path = match word.split_once('/') {
                Some(("crates", _)) => word.trim_end_matches('/').to_owned(),
                // Short for a file of that crate.
                Some((krate, file)) if is_crate(krate) && file.ends_with(".rs") => format!("crates/{krate}/src/{file}"),
                _ => continue,
            };
            named += 1;
            if !root().join(path).exists() {
                missing.push(format!("{}: {word}", page.display()));
            }
        }
    }
    assert!(named > 50, "the walk found too little: {named}");
    report("a file that a document names exists", "name the file where it is now", &missing);
}
