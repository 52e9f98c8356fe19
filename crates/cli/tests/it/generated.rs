//! COMPAT.md and the table of symptoms in docs/guide/choose.md are written from the registries: these tests fail when they are out of
//! date, and write them with `PLEACH_GENERATE=1`.

use advisor::findings::FINDINGS;
use document::filter::FILTERS;
use document::pipeline::STAGES;
use document::pipeline::expr::EXPRESSIONS;
use document::pipeline::expr::accumulator::ACCUMULATORS;
use document::update::UPDATE_OPERATORS;
use server::{Access, COMMANDS};
use std::fmt::Write;
use std::path::Path;

const DIFFERENCES: &str = include_str!("differences.md");

fn table(out: &mut String, title: &str, about: &str, rows: &[(String, &str)]) {
    write!(out, "\n## {title}\n\n{about}\n\n| name | what it does |\n| --- | --- |\n").unwrap();
    for (name, help) in rows {
        writeln!(out, "| {name} | {} |", help.replace('|', "\\|")).unwrap();
    }
}

fn named(name: &str) -> String {
    format!("`{name}`")
}

fn compat() -> String {
    let mut out = String::from(
        "# Compatibility\n\nWritten from the registries in the source (`just gen`); do not edit. The reference is MongoDB 6.0: every entry is\n\
         compared with a real server by the scripts under `crates/cli/tests/compat/`. What is marked *refused* is known and answered\n\
         with an error that says so. Anything that is not listed is answered as MongoDB answers an unknown name.\n\n\
         ## Deliberate differences\n\nAny other difference is a bug.\n\n",
    );
    out.push_str(DIFFERENCES);
    let commands: Vec<_> = COMMANDS
        .iter()
        .map(|command| {
            let names: Vec<String> = command.names.iter().map(|name| named(name)).collect();
            let refused = if matches!(command.access, Access::Refused) { " *refused*" } else { "" };
            (format!("{}{refused}", names.join(", ")), command.help)
        })
        .collect();
    table(&mut out, "Commands", "Names and aliases.", &commands);
    let filters: Vec<_> = FILTERS.iter().map(|def| (named(def.name), def.help)).collect();
    table(&mut out, "Query operators", "In filters, `$match`, validators and partial indexes.", &filters);
    let updates: Vec<_> = UPDATE_OPERATORS.iter().map(|def| (named(def.name), def.help)).collect();
    table(&mut out, "Update operators", "Besides replacements and update pipelines.", &updates);
    let stages: Vec<_> = STAGES
        .iter()
        .map(|def| (format!("{}{}", named(def.name), if def.refused { " *refused*" } else { "" }), def.help))
        .collect();
    table(&mut out, "Aggregation stages", "In `aggregate`, views and sub-pipelines.", &stages);
    let expressions: Vec<_> = EXPRESSIONS.iter().map(|def| (named(def.name), def.help)).collect();
    table(&mut out, "Expressions", "In pipelines, `$expr` and projections.", &expressions);
    let accumulators: Vec<_> = ACCUMULATORS.iter().map(|def| (named(def.name), def.help)).collect();
    table(&mut out, "Accumulators", "In `$group` and its like.", &accumulators);
    out
}

#[test]
fn compat_is_what_the_registries_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../COMPAT.md");
    let expected = compat();
    if std::env::var_os("PLEACH_GENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == expected, "COMPAT.md is out of date; write it anew with `just gen`");
}

/// What stands around the table is written by hand.
const TABLE: [&str; 2] = ["<!-- symptoms, from the registry: `just gen` -->\n", "<!-- end of symptoms -->\n"];

#[test]
fn the_symptoms_of_the_guide_are_those_of_the_registry() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/choose.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = written.split_once(TABLE[0]).unwrap();
    let (_, after) = rest.split_once(TABLE[1]).unwrap();
    let mut table =
        String::from("| symptom | pattern | `advise` looks at | reasons against |\n| --- | --- | --- | --- |\n");
    for symptom in FINDINGS {
        let page = format!("../concepts/{}.md", symptom.pattern);
        assert!(path.with_file_name(&page).is_file(), "{page}");
        let cells = [symptom.looks_at, symptom.reasons_against].map(|text| text.replace('|', "\\|"));
        let [looks_at, against] = &cells;
        let (name, help, pattern) = (symptom.name, symptom.help, symptom.pattern);
        writeln!(table, "| **`{name}`** {help} | [{pattern}]({page}) | {looks_at} | {against} |").unwrap();
    }
    let expected = [before, TABLE[0], &table, TABLE[1], after].concat();
    if std::env::var_os("PLEACH_GENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == expected, "docs/guide/choose.md is out of date; write it anew with `just gen`");
}
