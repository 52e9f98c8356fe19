//! What a plan says about each rule, and what `apply` did, as people read it: a line per rule, what is odd beneath it.

use crate::ask::{grouped, list, number, text};
use crate::table::folded;
use bson::{Bson, Document};
use document::{Doc, Value};

/// A line for each rule of a plan that has something to do.
pub(crate) fn lines(rules: &[&Document], steps: &[&Document]) -> String {
    let rules: Vec<&&Document> = rules.iter().filter(|rule| text(rule, "work") != "none").collect();
    let width = rules.iter().map(|rule| text(rule, "rule").len()).max().unwrap_or(0);
    let mut out = String::new();
    for rule in rules {
        let name = text(rule, "rule");
        let of_rule = |kind: &str| {
            let same = |step: &&&Document| text(step, "rule") == name && text(step, "kind") == kind;
            steps.iter().filter(same).count()
        };
        let mut line = format!("{name:width$}  {}", work(rule, steps));
        match of_rule("index") {
            0 => {}
            1 if text(rule, "work") == "index" => {}
            1 => line.push_str("; 1 index"),
            indexes => line.push_str(&format!("; {indexes} indexes")),
        }
        out.push_str(&folded("", &line));
        beneath(rule, &mut out);
    }
    out
}

fn work(rule: &Document, steps: &[&Document]) -> String {
    match text(rule, "work") {
        "seed" => format!("new: {}", counts(rule)),
        "rebuild" => format!("changed: {}", counts(rule)),
        "lift" => rule.get_document("lift").map_or_else(|_| "lifts an array".to_owned(), lifted),
        "upkeep" => "changed: only how it is kept".to_owned(),
        "index" => "needs an index".to_owned(),
        "expiry" => "its source expires by Pleach from now on".to_owned(),
        "move" => {
            let is_move = |step: &&&Document| text(step, "rule") == text(rule, "rule") && step.contains_key("readings");
            let moved = steps.iter().find(is_move).map_or_else(|| "0 documents".to_owned(), |step| moved(step));
            let mut line = format!("comes into buckets: {moved}");
            for (name, what) in
                [("ids_lost", "`_id`s lost"), ("times_cut", "times cut"), ("cannot_move", "cannot move")]
            {
                if number(rule, name) > 0 {
                    line.push_str(&format!(", {} {what}", grouped(number(rule, name))));
                }
            }
            line
        }
        "constrain" => constrained(rule),
        "convert" if rule.contains_key("versions") => versions(rule),
        "remove" => removal(rule),
        other => other.to_owned(),
    }
}

/// `1,000 documents: 900 right, 80 corrected, 10 removed, 10 filled`
fn counts(rule: &Document) -> String {
    let hosts = number(rule, "hosts");
    let kinds = [
        ("right", "right"),
        ("sourceless", "left without a source"),
        ("corrected", "corrected"),
        ("removed", "removed"),
        ("filled", "filled"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter(|(name, _)| number(rule, name) > 0)
        .map(|(name, words)| format!("{} {words}", grouped(number(rule, name))))
        .collect();
    match (hosts, parts.is_empty()) {
        (0, _) => "no documents yet".to_owned(),
        (hosts, true) => format!("{}, nothing to write", documents(hosts)),
        (hosts, false) => format!("{}: {}", documents(hosts), parts.join(", ")),
    }
}

/// `reviews: 1,200 items of 40 documents become documents of productReviews`
fn lifted(lift: &Document) -> String {
    let (array, into, hosts) = (text(lift, "array"), text(lift, "into"), documents(number(lift, "documents")));
    match number(lift, "items") {
        1 => format!("lifts `{array}`: 1 item of {hosts} becomes a document of `{into}`"),
        items => format!("lifts `{array}`: {} items of {hosts} become documents of `{into}`", grouped(items)),
    }
}

/// `checks documents from now on: 1,000 documents, 3 break it`
fn constrained(rule: &Document) -> String {
    let said = match (number(rule, "hosts"), number(rule, "breaking")) {
        (0, _) => "no documents yet".to_owned(),
        (hosts, 0) => format!("{}, all as declared", documents(hosts)),
        (hosts, 1) => format!("{}, 1 breaks it", documents(hosts)),
        (hosts, breaking) => format!("{}, {} break it", documents(hosts), grouped(breaking)),
    };
    format!("checks documents from now on: {said}")
}

/// `documents are read as version 3: 1,000 of version 1, 20 of version 3; 1,000 migrated`
fn versions(rule: &Document) -> String {
    let mut line = format!("documents are read as version {}: ", number(rule, "newest"));
    line.push_str(&match rule.get_document("versions").map(by_version) {
        Ok(some) if !some.is_empty() => some,
        _ => "none yet".to_owned(),
    });
    for (name, what) in [("taken_back", "brought back"), ("migrated", "migrated")] {
        if number(rule, name) > 0 {
            line.push_str(&format!("; {} {what}", grouped(number(rule, name))));
        }
    }
    line
}

/// `1,000 of version 1, 20 of version 3`; versions without documents are left out.
pub(crate) fn by_version(versions: &Document) -> String {
    let one = |version: &String| match (number(versions, version), version.as_str()) {
        (0, _) => None,
        (some, "other") => Some(format!("{} of an unknown version", grouped(some))),
        (some, version) => Some(format!("{} of version {version}", grouped(some))),
    };
    versions.keys().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// `8 buckets, 1,000 readings`
pub(crate) fn moved(step: &Document) -> String {
    let (buckets, readings) = (number(step, "buckets"), number(step, "readings"));
    match buckets {
        0 => documents(readings),
        buckets => format!("{} buckets, {} readings", grouped(buckets), grouped(readings)),
    }
}

fn removal(rule: &Document) -> String {
    if !rule.contains_key("documents") {
        return "gone from the declaration".to_owned();
    }
    let fields: Vec<&str> =
        rule.get_array("fields").map_or_else(|_| Vec::new(), |fields| fields.iter().filter_map(Bson::as_str).collect());
    if rule.get_bool("constraint").unwrap_or(false) {
        return "removed: documents are no longer checked, none changes".to_owned();
    }
    if rule.contains_key("older") {
        return match number(rule, "older") {
            0 => "removed: documents stay as they are stored".to_owned(),
            older => {
                format!("removed: documents stay as they are stored, {} of them in older versions", grouped(older))
            }
        };
    }
    let touched = documents(number(rule, "documents"));
    match fields.as_slice() {
        [] if number(rule, "documents") > 0 => format!("removed: {touched} become plain documents again"),
        [] => "removed: its field stays as an ordinary one, no document changes".to_owned(),
        fields => format!("removed: {} taken from {touched}", fields.join(", ")),
    }
}

/// What is odd about a rule, and what `apply` would refuse.
fn beneath(rule: &Document, out: &mut String) {
    for note in rule.get_array("notes").into_iter().flatten().filter_map(Bson::as_str) {
        out.push_str(&folded("  note: ", note));
    }
    for refused in list(rule, "refused") {
        let reason = text(refused, "reason");
        let own = format!("rule {}: ", text(rule, "rule"));
        let reason = reason.strip_prefix(&own).unwrap_or(reason);
        match (refused.get_str("flag"), refused.get_document("command")) {
            (Ok(flag), _) => out.push_str(&folded(&format!("  needs --{}: ", flag.replace('_', "-")), reason)),
            (_, Ok(command)) => {
                let command = patterns::print::in_shell(&Value::Document(Doc::from(command)));
                out.push_str(&folded("  refused: ", reason));
                // To be copied: on one line.
                out.push_str(&format!("  run first: db.runCommand({command})\n"));
            }
            _ => out.push_str(&folded("  refused: ", reason)),
        }
    }
}

/// What `apply` did to each rule; `status` is that of the end.
pub(crate) fn done(rules: &[&Document], status: &[&Document]) -> String {
    let mut out = String::new();
    for rule in rules.iter().filter(|rule| text(rule, "work") != "none") {
        let name = text(rule, "rule");
        if text(rule, "work") == "remove" {
            out.push_str(&folded(&format!("{name}: "), &removal(rule)));
            continue;
        }
        let Some(row) = status.iter().find(|row| text(row, "rule") == name) else { continue };
        if let Ok(seeded) = row.get_document("seeded") {
            let part = |what: &&str| format!("{} {what}", grouped(number(seeded, what)));
            let said = match number(seeded, "moved") {
                0 => ["corrected", "filled", "removed", "left"].iter().map(part).collect::<Vec<_>>().join(", "),
                moved => format!("{} moved into buckets", grouped(moved)),
            };
            let said = match number(seeded, "lifted") {
                0 => said,
                lifted => format!("{} items lifted; {said}", grouped(lifted)),
            };
            out.push_str(&folded(&format!("{name}: "), &said));
        }
        for note in rule.get_array("notes").into_iter().flatten().filter_map(Bson::as_str) {
            out.push_str(&folded(&format!("{name}: "), note));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn documents(number: i64) -> String {
    match number {
        1 => "1 document".to_owned(),
        number => format!("{} documents", grouped(number)),
    }
}
