//! `--json`: one JSON document on stdout, whatever happens, and every failure as `{ error: { code, message, hint } }`.

use crate::serving::{Serving, pleach};
use crate::shop::Shop;
use serde_json::{Value, json};
use std::process::Output;

const DECLARATION: &str = "\
database: shop
collections:
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
";

/// Verbs that take a declaration and a target, each with what else it needs.
const VERBS: &[&[&str]] = &[
    &["apply"],
    &["audit"],
    &["drop", "orders.customer"],
    &["explain", "{ \"find\": \"orders\" }"],
    &["plan"],
    &["repair"],
    &["status"],
];

/// The failure that a program reads; all of stdout is that document.
fn failure(output: &Output) -> Value {
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(2), "{told}");
    let error = &told["error"];
    assert!(error["code"].is_i64() || error["code"].is_string(), "{told}");
    let message = error["message"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(!message.is_empty() && !message.contains('\n') && !message.starts_with("error"), "{told}");
    assert!(!message.contains("::") && !message.ends_with(':') && !message.contains(": :"), "{told}");
    assert!(error.get("hint").is_none_or(|hint| hint.as_str().is_some_and(|hint| !hint.is_empty())), "{told}");
    // People read the same on stderr.
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
    error.clone()
}

fn run(shop: &Shop, verb: &[&str], more: &[&str]) -> Output {
    shop.command(verb).args(more).arg("--json").output().unwrap()
}

#[test]
fn every_failure_is_a_document() {
    let shop = Shop::new("json", DECLARATION);
    std::fs::write(shop.folder.join("bad.yaml"), "database: shop\ncollections:\n  a:\n    nonsense: {}\n").unwrap();
    for verb in VERBS {
        let target = ["--data", "data"];
        assert_eq!(failure(&run(&shop, verb, &["--nonsense"]))["code"], "usage", "{verb:?}");
        let missing = failure(&run(&shop, verb, &["--declare", "missing.yaml", target[0], target[1]]));
        assert_eq!(missing["code"], "file", "{verb:?}: {missing}");
        assert!(missing["message"].as_str().unwrap().contains("missing.yaml"), "{missing}");
        let bad = failure(&run(&shop, verb, &["--declare", "bad.yaml", target[0], target[1]]));
        assert_eq!(bad["code"], "declaration", "{verb:?}: {bad}");
        assert_eq!(bad["findings"][0]["line"], 4, "{bad}");
        let declare = ["--declare", "pleach.yaml"];
        assert_eq!(failure(&run(&shop, verb, &declare))["code"], "target", "{verb:?}");
        let nowhere = failure(&run(&shop, verb, &[declare[0], declare[1], "--data", "nowhere"]));
        assert_eq!(nowhere["code"], "target", "{verb:?}: {nowhere}");
        let uri = failure(&run(&shop, verb, &[declare[0], declare[1], "--server", "http://127.0.0.1"]));
        assert_eq!(uri["code"], "target", "{verb:?}: {uri}");
    }
    // Without a verb, without what it needs, with what it does not know.
    assert_eq!(failure(&shop.command(&["nonsense", "--json"]).output().unwrap())["code"], "usage");
    assert_eq!(failure(&run(&shop, &["drop"], &["--data", "data"]))["code"], "usage");
    let garbled = failure(&run(&shop, &["explain", "{ find"], &["--db", "shop", "--data", "data"]));
    assert_eq!(garbled["code"], "usage", "{garbled}");
    assert_eq!(failure(&run(&shop, &["patterns", "nonsense"], &[]))["code"], "usage");
    let check = run(&shop, &["check"], &["--declare", "missing.yaml"]);
    let told: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!((&told["error"]["code"], told["findings"].as_array().unwrap().len()), (&json!("file"), 1), "{told}");
    assert_eq!(check.status.code(), Some(2));
}

#[test]
fn what_the_target_refuses_has_its_number() {
    let shop = Shop::new("json-target", DECLARATION);
    let serving = shop.serve(&[]);
    let server = format!("mongodb://{}", serving.address);
    for target in [["--server", &*server], ["--data", "data"]] {
        let unknown = failure(&run(&shop, &["drop", "orders.nothing"], &["--db", "shop", target[0], target[1]]));
        assert!(unknown["code"].is_i64(), "{unknown}");
        assert!(unknown["message"].as_str().unwrap().contains("orders.nothing"), "{unknown}");
        let wrong = "{ \"update\": \"orders\", \"updates\": 5 }";
        let refused = failure(&run(&shop, &["explain", wrong], &["--db", "shop", target[0], target[1]]));
        assert_eq!(refused["code"], 14, "{refused}");
    }
    shop.stop(serving);
    // Nobody answers there.
    let dead = failure(&run(&shop, &["status"], &["--server", &server]));
    assert!(dead["code"].is_i64() || dead["code"].is_string(), "{dead}");
}

#[test]
fn every_success_is_a_document() {
    let shop = Shop::new("json-success", DECLARATION);
    let one = |args: &[&str]| {
        let output = shop.command(args).arg("--json").output().unwrap();
        let told: Result<Value, _> = serde_json::from_slice(&output.stdout);
        told.unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
    };
    let serving = Serving::start(&[]);
    let server = format!("mongodb://{}", serving.address);
    for verb in VERBS {
        let mut args = verb.to_vec();
        args.extend(["--declare", "pleach.yaml", "--server", &server]);
        one(&args);
    }
    assert!(one(&["plan", "--as", "node"])["code"].as_str().unwrap().contains("orders"));
    one(&["check"]);
    one(&["patterns"]);
    one(&["patterns", "bucket"]);
    let help = pleach().args(["apply", "--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
}
