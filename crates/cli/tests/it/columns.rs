//! What people read fits 80 columns, and is plain where nobody looks at a terminal.

use crate::doors::{At, at_each_door};
use crate::serving::pleach;
use bson::{Document, doc};
use std::process::Command;

at_each_door!(tables_fit,);

/// All verbs, and what has verbs of its own.
fn verbs() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for verb in subcommands(&[]) {
        let inner = subcommands(std::slice::from_ref(&verb));
        all.extend(inner.into_iter().map(|name| vec![verb.clone(), name]));
        all.push(vec![verb]);
    }
    all
}

/// The verbs that the help lists, in its order.
pub(crate) fn subcommands(of: &[String]) -> Vec<String> {
    let help = said(pleach().args(of).arg("--help"));
    let rows =
        help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1).take_while(|line| !line.is_empty());
    // Rows that go on from the line before are indented further.
    let names = rows.filter(|row| !row.starts_with("   ")).filter_map(|row| row.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

fn said(command: &mut Command) -> String {
    let output = command.env_remove("COLUMNS").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn fits(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what}: {} columns: {line}", line.chars().count());
    }
    assert!(!text.contains('\u{1b}'), "{what}: {text}");
}

#[test]
fn help_fits() {
    let verbs = verbs();
    assert!(verbs.len() > 10, "{verbs:?}");
    for verb in verbs {
        for flag in ["--help", "-h"] {
            fits(&format!("{verb:?} {flag}"), &said(pleach().args(&verb).arg(flag)));
        }
    }
    fits("patterns", &said(pleach().arg("patterns")));
    let catalogue: serde_json::Value = serde_json::from_str(&said(pleach().args(["patterns", "--json"]))).unwrap();
    for pattern in catalogue["patterns"].as_array().unwrap() {
        let name = pattern["name"].as_str().unwrap();
        fits(name, &said(pleach().args(["patterns", name])));
    }
}

/// Names of collections, fields and series as long as they get, on both doors.
fn tables_fit(at: At) {
    let door = at.door("columns");
    let long = |name: &str| format!("{name}_{}", "of_a_collection_with_a_very_long_name_".repeat(2));
    let (orders, customers, readings) = (long("orders"), long("customers"), long("readings"));
    let field = "customer_of_the_order_as_it_was_when_the_order_was_made";
    let collections = doc! {
        &orders: { "extended_reference": { field: { "from": &customers, "by": "customerId", "fields": ["name"] } } },
        &readings: { "bucket": { "into": long("hours"), "time": "at", "by": ["s"], "every": "hour", "at_most": 10, "stats": { "v": ["min", "max"] } } },
    };
    door.apply(collections);
    let name = "a name that is rather long, and then goes on and on".repeat(3);
    let customer: Document = doc! { "_id": "c".repeat(90), "name": &name };
    door.must(doc! { "insert": &customers, "documents": [&customer] });
    door.must(doc! { "insert": &orders, "documents": [{ "_id": "o".repeat(90), "customerId": "c".repeat(90) }] });
    door.must(doc! { "insert": &readings, "documents": [{ "_id": 1, "s": "s".repeat(90), "at": bson::DateTime::now(), "v": 1 }] });
    let update = format!(
        "{{ \"update\": \"{customers}\", \"updates\": [{{ \"q\": {{}}, \"u\": {{ \"$set\": {{ \"name\": \"x\" }} }} }}] }}"
    );
    let verbs: [&[&str]; 4] = [&["status"], &["audit"], &["repair"], &["explain", "--db", &door.db, &update]];
    for verb in verbs {
        fits(&format!("{verb:?}"), &said(pleach().args(verb).args(["--server", &door.uri()])));
    }
    door.finish();
}

/// A pipe or a file is no terminal: neither findings nor logs have escape sequences in them.
#[test]
fn colours_are_for_terminals() {
    let shop = crate::shop::Shop::new("colours", "database: shop\ncollections:\n  a:\n    nonsense: {}\n");
    for verb in [&["check"][..], &["plan", "--data", "data"], &["nonsense"]] {
        let output = shop.command(verb).output().unwrap();
        for stream in [&output.stdout, &output.stderr] {
            assert!(!stream.contains(&0x1b), "{output:?}");
        }
        assert!(!output.stderr.is_empty() || !output.stdout.is_empty());
    }
    // Rules that are switched off are worth a warning in the log.
    shop.declare("database: shop\ncollections:\n  a: { computed: { n: { count: b, by: a } } }\n");
    shop.serve(&[]).stop();
    assert_eq!(shop.run(&["apply"]).status.code(), Some(0));
    let serving = shop.serve(&["--raw"]);
    let log = shop.stop(serving);
    assert!(log.contains("WARN") && !log.contains('\u{1b}'), "{log}");
}
