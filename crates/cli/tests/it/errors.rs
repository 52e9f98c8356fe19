//! `docs/errors.md` lists every code that the source originates, and none of them means to a driver what it does not mean to us.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Codes on which a driver does more than show the error.
const SPECIAL: &[i32] = &[
    6, 7, 20, 26, 43, 48, 50, 63, 64, 79, 89, 91, 100, 133, 134, 150, 189, 234, 237, 251, 262, 391, 9001, 10058, 10107,
    11600, 11602, 13388, 13435, 13436,
];

/// Where the answer is MongoDB's own 20, not ours.
const MONGODBS_OWN_20: &[&str] = &[
    "document/src/update/upsert.rs",
    "engine/src/admin/rename.rs",
    "server/src/commands/drop_database.rs",
    "server/src/commands/explain.rs",
    "server/src/commands/rename_collection.rs",
    "server/src/commands/set_parameter.rs",
    "server/src/profiler/collection.rs",
    "server/src/sink.rs",
];

/// Texts that some drivers take for codes.
const TAKEN_FOR_CODES: &[&str] = &["not master", "node is recovering", "node is shutting down", "Transaction numbers"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The source without its tests, by path below `crates/`.
fn source() -> BTreeMap<String, String> {
    let crates = root().join("crates");
    let mut paths = Vec::new();
    for name in ["cli", "document", "engine", "patterns", "server", "upstream"] {
        sources(&crates.join(name).join("src"), &mut paths);
    }
    let name = |path: &PathBuf| path.strip_prefix(&crates).unwrap().display().to_string();
    let is_test = |name: &str| name.contains("tests") || name == "document/src/code.rs";
    let text = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned()
    };
    paths.iter().map(|path| (name(path), text(path))).filter(|(name, _)| !is_test(name)).collect()
}

/// What follows each `prefix` of a text, as far as `of_word` says.
fn after<'t>(text: &'t str, prefix: &'t str, of_word: fn(char) -> bool) -> impl Iterator<Item = &'t str> {
    text.match_indices(prefix).map(move |(at, _)| {
        let rest = &text[at + prefix.len()..];
        &rest[..rest.find(|letter| !of_word(letter)).unwrap_or(rest.len())]
    })
}

/// The code of that name, as its number.
fn number(name: &str) -> Option<i32> {
    let table = std::fs::read_to_string(root().join("crates/document/src/code.rs")).unwrap();
    let row = table.lines().find(|line| line.trim_start().starts_with(&format!("(Code::{name}, ")))?;
    row.split(", ").nth(1)?.parse().ok()
}

#[test]
fn every_code_is_listed() {
    let page = std::fs::read_to_string(root().join("docs/errors.md")).unwrap();
    let used: BTreeSet<String> = source()
        .values()
        .flat_map(|text| {
            after(text, "Code::", |letter| letter.is_ascii_alphanumeric()).map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|name| number(name).is_some())
        .collect();
    assert!(used.len() > 80, "{used:?}");
    for name in &used {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/errors.md does not list {name}: say when it is answered, and what drivers make of it"
        );
    }
    for name in after(&page, "`", |letter| letter.is_ascii_alphanumeric()) {
        assert!(
            number(name).is_none() || used.contains(name),
            "docs/errors.md lists {name}, which nothing answers any more"
        );
    }
    // `96 `OperationFailed``: the number beside a name is its number.
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        for (before, name) in line.split(" `").zip(after(line, " `", |letter| letter.is_ascii_alphanumeric())) {
            let told = before.rsplit([' ', '`']).next().and_then(|word| word.parse::<i32>().ok());
            assert!(told.is_none() || told == number(name), "{line}");
        }
    }
}

#[test]
fn no_number_without_a_name_means_more_to_a_driver() {
    let mut found = 0;
    // There MongoDB's answers are read.
    let reads = |path: &str| path == "server/src/labels.rs" || path.starts_with("upstream/");
    for (path, text) in source().into_iter().filter(|(path, _)| !reads(path)) {
        for digits in after(&text, "Location(", |letter| letter.is_ascii_digit() || letter == '_') {
            let Ok(number) = digits.replace('_', "").parse::<i32>() else { continue };
            assert!(!SPECIAL.contains(&number), "{path}: {number}");
            found += 1;
        }
    }
    assert!(found > 50, "{found}");
}

/// The Node driver replaces every 20 on a write: ours are 96.
#[test]
fn only_mongodbs_own_refusals_are_20() {
    let with: Vec<String> = source()
        .into_iter()
        .filter(|(_, text)| text.contains("Code::IllegalOperation"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(with, MONGODBS_OWN_20);
}

#[test]
fn no_text_is_taken_for_a_code() {
    for (path, text) in source() {
        for words in TAKEN_FOR_CODES {
            assert!(!text.contains(words), "{path}: {words}");
        }
        // A refusal with these words is swallowed where a collection is dropped.
        let refuses = ["patterns/src/layer", "patterns/src/front"].iter().any(|folder| path.starts_with(folder))
            && text.contains("ns not found");
        assert!(!refuses, "{path}");
    }
}
