//! The rules of the tree that no compiler checks. Each failure names the file, the rule and the way out.

mod folders;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates each crate may depend on, and which its tests may name beside. `testing` puts rules on either backend, for the
/// tests of those above it; with its feature `rules` off, as the tests of `engine` and `upstream` have it, it depends on `document`.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    ("advisor", &["document", "patterns"], &["engine", "testing"]),
    ("cli", &["advisor", "document", "engine", "lab", "patterns", "server", "upstream", "wire"], &["testing"]),
    ("document", &[], &[]),
    ("engine", &["document"], &["testing"]),
    ("lab", &["document", "patterns"], &[]),
    ("patterns", &["document"], &["engine", "testing"]),
    ("server", &["document", "wire"], &[]),
    ("testing", &["document", "engine", "patterns", "upstream"], &[]),
    ("upstream", &["document", "wire"], &["testing"]),
    ("wire", &[], &[]),
];

/// Where code depends on what a backend is. The list may only shrink: what differs belongs in the backend.
const FACTS: &[&str] = &[
    "crates/document/src/backend/front.rs",
    "crates/lab/src/meter.rs",
    "crates/patterns/src/execute/attempt.rs",
    "crates/patterns/src/execute/direct.rs",
    "crates/patterns/src/execute/evaluate.rs",
    "crates/patterns/src/execute/newest.rs",
    "crates/patterns/src/execute/read/explain.rs",
    "crates/patterns/src/execute/read/run.rs",
    "crates/patterns/src/execute/read/versioned.rs",
    "crates/patterns/src/execute/read/versioned_explain.rs",
    "crates/patterns/src/execute/resend_after_move.rs",
    "crates/patterns/src/front/mod.rs",
    "crates/patterns/src/front/ttl_indexes.rs",
    "crates/patterns/src/layer/mod.rs",
    "crates/patterns/src/life/audit/mod.rs",
    "crates/patterns/src/life/expiry.rs",
    "crates/patterns/src/life/explain.rs",
    "crates/patterns/src/life/leases.rs",
    "crates/patterns/src/life/load.rs",
    "crates/patterns/src/life/outbox.rs",
    "crates/patterns/src/life/preview/counts.rs",
    "crates/patterns/src/life/preview/references.rs",
    "crates/patterns/src/life/relocate/health.rs",
    "crates/patterns/src/life/replaced/mod.rs",
    "crates/patterns/src/life/restore.rs",
    "crates/patterns/src/life/timeseries/mod.rs",
    "crates/patterns/src/life/verbs/selection.rs",
    "crates/patterns/src/life/write_differences.rs",
    "crates/server/src/dispatch.rs",
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

/// The lines before a file's tests that are no comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| *line != "mod tests {").filter(|line| !line.trim_start().starts_with("//"))
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
        .filter(|(_, lines)| *lines > 520)
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect();
    report("S2: no file above 520 lines outside its tests", "split it by responsibility", &long);
}

#[test]
fn crates_depend_only_downward() {
    let listed: BTreeSet<String> = LAYERS.iter().map(|(krate, ..)| (*krate).to_owned()).collect();
    let there = fs::read_dir(root().join("crates")).unwrap().flatten();
    let there: BTreeSet<String> = there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, there, "LAYERS lists all crates");
    let mut wrong = Vec::new();
    for (krate, allowed, allowed_in_tests) in LAYERS {
        let manifest = fs::read_to_string(root().join(format!("crates/{krate}/Cargo.toml"))).unwrap();
        let section = |name: &str| match manifest.split_once(&format!("\n[{name}]\n")) {
            Some((_, rest)) => rest.split("\n[").next().unwrap().to_owned(),
            None => String::new(),
        };
        let names = |section: &str, other: &str| {
            section.lines().any(|line| line.strip_prefix(other).is_some_and(|rest| rest.starts_with(['.', ' ', '='])))
        };
        for (other, ..) in LAYERS {
            let may_be_tested_with = allowed.contains(other) || allowed_in_tests.contains(other);
            if names(&section("dependencies"), other) && !allowed.contains(other) {
                wrong.push(format!("{krate} depends on {other}"));
            }
            if names(&section("dev-dependencies"), other) && !may_be_tested_with {
                wrong.push(format!("the tests of {krate} depend on {other}"));
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
        // Steps that lose something are warned about wherever they are.
        .filter(|finding| !finding.message.contains("loses something"))
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

/// What a comment cites: rules by `R` always, those of the engine, `E`, only behind the document's name.
fn cited_rules(comment: &str) -> BTreeSet<String> {
    let of_engine = comment.split_once("SEMANTICS").map(|(_, rest)| rule_numbers(rest, 'E'));
    rule_numbers(comment, 'R').into_iter().chain(of_engine.into_iter().flatten()).collect()
}

/// The comments of a source, whole lines and ends of lines. Addresses have slashes too.
fn comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':')).map(|(at, _)| &line[at..])
    })
}

#[test]
fn every_rule_that_is_cited_is_in_the_document() {
    let document = fs::read_to_string(root().join("docs/semantics.md")).unwrap();
    let headings: String = document.lines().filter(|line| line.starts_with("### ")).collect::<Vec<_>>().join("\n");
    let known: BTreeSet<String> = ['E', 'R'].iter().flat_map(|letter| rule_numbers(&headings, *letter)).collect();
    let all = (1..=10).map(|number| format!("E{number}")).chain((1..=37).map(|number| format!("R{number}")));
    let missing: Vec<String> = all.filter(|number| !known.contains(number)).collect();
    report("docs/semantics.md has a heading for each rule", "a number is never used again, nor left out", &missing);
    let mut tests = Vec::new();
    for krate in fs::read_dir(root().join("crates")).unwrap().flatten().filter(|it| it.path().join("tests").is_dir()) {
        files(&krate.path().join("tests"), "rs", &mut tests);
    }
    let tests = tests.iter().map(|path| (path.display().to_string(), fs::read_to_string(path).unwrap()));
    let (mut unknown, mut cited) = (Vec::new(), 0);
    for (path, text) in sources().into_iter().chain(tests) {
        for number in comments(&text).flat_map(cited_rules) {
            cited += 1;
            if !known.contains(&number) {
                unknown.push(format!("{path}: {number}"));
            }
        }
    }
    assert!(cited > 100, "the walk found too little: {cited}");
    report("a rule that a comment cites is in docs/semantics.md", "describe it there, or correct the number", &unknown);
}

#[test]
fn rules_are_found_in_comments_only() {
    let text = "let series = [\"R33\"]; // see R31 and https://x/R32\n/// R1, R14–R16 (R2).\nlet url = \"http://R34\";";
    let found: BTreeSet<String> = comments(text).flat_map(cited_rules).collect();
    assert_eq!(found, ["R1", "R14", "R16", "R2", "R31", "R32"].map(str::to_owned).into());
    assert_eq!(cited_rules("// 2E5 and E4 are numbers, SEMANTICS E1 a rule"), ["E1".to_owned()].into());
}

/// Where the file or folder is that a word of a document names. Returns `None` if the word names none.
fn named_path(word: &str) -> Option<String> {
    let is_crate = |name: &str| LAYERS.iter().any(|(krate, ..)| *krate == name);
    let word = word.trim_end_matches('/');
    match word.split_once('/') {
        _ if word.contains(['*', ' ', '{', '<', '…']) => None,
        Some(("crates", _)) => Some(word.to_owned()),
        // Short for a file of that crate, or of that folder of the patterns.
        Some((krate, file)) if is_crate(krate) => Some(format!("crates/{krate}/src/{file}")),
        Some((folder, _)) if folders::is_folder(folder) => Some(format!("crates/patterns/src/{word}")),
        _ => None,
    }
}

/// The words of a text that name what does not exist; second, how many name something.
fn names_of_nothing(text: &str) -> (Vec<&str>, usize) {
    let named: Vec<(&str, String)> =
        text.split('`').filter_map(|word| named_path(word).map(|path| (word, path))).collect();
    // A module may be named without its ending.
    let exists = |path: &str| root().join(path).exists() || root().join(format!("{path}.rs")).exists();
    (named.iter().filter(|(_, path)| !exists(path)).map(|(word, _)| *word).collect(), named.len())
}

#[test]
fn every_file_that_documents_name_exists() {
    let pages = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/semantics.md", "docs/glossary.md"];
    let mut pages: Vec<PathBuf> = pages.iter().map(|page| root().join(page)).collect();
    files(&root().join("docs/decisions"), "md", &mut pages);
    let (mut missing, mut named) = (Vec::new(), 0);
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let (wrong, all) = names_of_nothing(&text);
        named += all;
        missing.extend(wrong.iter().map(|word| format!("{}: {word}", page.display())));
    }
    assert!(named > 50, "the walk found too little: {named}");
    report("a file that a document names exists", "name the file where it is now", &missing);
}

#[test]
fn files_are_found_with_and_without_their_crate() {
    let text = "`crates/document/src/gone.rs` `patterns/rule/gone.rs` `front/gone.rs` `layer/read.rs` `life/replaced` `rule/` `docs/x.md` \
                `server/commands` `life/gone` `upstream/retries` `front/{a,b}.rs`";
    let (missing, named) = names_of_nothing(text);
    assert_eq!(missing, ["crates/document/src/gone.rs", "patterns/rule/gone.rs", "front/gone.rs", "life/gone"]);
    assert_eq!(named, 8);
}

#[test]
fn decisions_are_numbered_and_listed() {
    let list = fs::read_to_string(root().join("docs/decisions/README.md")).unwrap();
    let mut pages = Vec::new();
    files(&root().join("docs/decisions"), "md", &mut pages);
    let mut names: Vec<String> = pages.iter().map(|page| page.file_name().unwrap().to_string_lossy().into()).collect();
    names.retain(|name| name != "README.md");
    names.sort();
    report("a decision has the next number", "numbers are not left out", &out_of_order(&names));
    let missing: Vec<String> = names.into_iter().filter(|name| !list.contains(&format!("]({name})"))).collect();
    report("docs/decisions/README.md lists every decision", "add a row", &missing);
}

/// Names of decisions that do not begin with the number of their place.
fn out_of_order(names: &[String]) -> Vec<String> {
    let numbered = names.iter().zip(1..);
    numbered.filter(|(name, at)| !name.starts_with(&format!("{at:04}-"))).map(|(name, _)| name.clone()).collect()
}

#[test]
fn a_number_that_is_left_out_is_found() {
    let names = ["0001-a.md", "0003-b.md"].map(str::to_owned);
    assert_eq!(out_of_order(&names), ["0003-b.md"]);
    assert!(out_of_order(&names[..1]).is_empty());
}
