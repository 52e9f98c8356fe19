//! `pleach check` and `pleach patterns` as a person and a program meet them.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs the binary in a folder of its own that holds `pleach.yaml`.
fn run(name: &str, yaml: Option<&str>, args: &[&str]) -> Output {
    let folder: PathBuf = std::env::temp_dir().join(format!("pleach-check-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    if let Some(yaml) = yaml {
        std::fs::write(folder.join("pleach.yaml"), yaml).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(args)
        .current_dir(&folder)
        .env_remove("PLEACH_DECLARE")
        .output();
    std::fs::remove_dir_all(&folder).unwrap();
    output.unwrap()
}

fn told(output: &Output) -> (Option<i32>, &str, &str) {
    (output.status.code(), std::str::from_utf8(&output.stdout).unwrap(), std::str::from_utf8(&output.stderr).unwrap())
}

const VALID: &str = "\
database: shop
collections:
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name, email] }
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      avgRating: { avg: rating, from: reviews, by: productId }
";

const WRONG: &str = "\
database: shop
collections:
  orders:
    extended_reference:
      customer:
        form: customers
        by: customerId
        fields: [name]
        when_deleted: cascde
  users:
    computed:
      näme: { expr: { $subtrac: [$a, 1] } }
";

const WARNED: &str = "\
database: shop
collections:
  posts:
    computed:
      likes: { count: likes, by: postId, where: { active: yes } }
";

#[test]
fn a_valid_declaration_says_what_it_keeps() {
    let output = run("valid", Some(VALID), &["check"]);
    let (code, out, err) = told(&output);
    assert_eq!((code, err), (Some(0), ""));
    assert_eq!(
        out,
        "\
pleach.yaml is valid: 3 rules for the database `shop`

  orders.customer       copy of customers by customerId
  products.reviewCount  count of reviews by productId
  products.avgRating    avg of rating from reviews by productId
"
    );
}

#[test]
fn errors_show_the_line_and_the_way_out() {
    let output = run("wrong", Some(WRONG), &["check"]);
    let (code, out, err) = told(&output);
    assert_eq!((code, err), (Some(2), ""));
    assert_eq!(
        out,
        "\
error: unknown key `form`
 --> pleach.yaml:6:9
  |
6 |         form: customers
  |         ^^^^
  |
  = at: collections.orders.extended_reference.customer.form
  = hint: did you mean `from`? The keys here are `by`, `client_writes`, `each`, `fields`, `from`, `lag`, `match`, `when_changed` and `when_deleted`

error: `when_deleted` cannot be `cascde`
 --> pleach.yaml:9:23
  |
9 |         when_deleted: cascde
  |                       ^^^^^^
  |
  = at: collections.orders.extended_reference.customer.when_deleted
  = hint: did you mean `cascade`? It is `keep`, `unset`, `reject` or `cascade`

error: `expr` is no expression: Unrecognized expression '$subtrac'
  --> pleach.yaml:12:23
   |
12 |       näme: { expr: { $subtrac: [$a, 1] } }
   |                       ^^^^^^^^
   |
   = at: collections.users.computed.näme.expr
   = hint: write an aggregation expression: `expr: { $subtract: [$price, $cost] }`

3 errors
"
    );
}

#[test]
fn json_has_every_finding_with_its_place() {
    let output = run("json", Some(WRONG), &["check", "--json"]);
    let (code, out, err) = told(&output);
    assert_eq!((code, err), (Some(2), ""));
    let found: serde_json::Value = serde_json::from_str(out).unwrap();
    let rows: Vec<String> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!(
                "{}:{}:{} {} {}",
                it["file"].as_str().unwrap(),
                it["line"],
                it["column"],
                it["severity"],
                it["rule"]
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            "pleach.yaml:6:9 \"error\" \"orders.customer\"",
            "pleach.yaml:9:23 \"error\" \"orders.customer\"",
            "pleach.yaml:12:23 \"error\" \"users.näme\""
        ]
    );
    assert_eq!(
        found["findings"][1],
        serde_json::json!({
            "severity": "error",
            "rule": "orders.customer",
            "file": "pleach.yaml",
            "line": 9,
            "column": 23,
            "field": "collections.orders.extended_reference.customer.when_deleted",
            "message": "`when_deleted` cannot be `cascde`",
            "hint": "did you mean `cascade`? It is `keep`, `unset`, `reject` or `cascade`",
        })
    );
    let output = run("json-fine", Some(VALID), &["check", "--json"]);
    assert_eq!(told(&output), (Some(0), "{\n  \"findings\": []\n}\n", ""));
}

#[test]
fn warnings_alone_exit_with_1() {
    let output = run("warned", Some(WARNED), &["check"]);
    let (code, out, _) = told(&output);
    assert_eq!(code, Some(1));
    assert!(out.starts_with("warning: `yes` is text here, not true or false\n --> pleach.yaml:5:59\n"), "{out}");
    assert!(out.ends_with("1 warning\npleach.yaml is valid: 1 rule for the database `shop`\n\n  posts.likes  count of likes by postId\n"), "{out}");
}

/// SEMANTICS R14: what is worth knowing is said, and the declaration is fine.
#[test]
fn notes_alone_exit_with_0() {
    let yaml = "database: shop\ncollections:\n  readings:\n    bucket: { time: ts, by: [sensor], every: hour }\n";
    let output = run("noted", Some(yaml), &["check"]);
    let (code, out, _) = told(&output);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("note: two readings may have the same `_id`") && out.contains("1 note\n"), "{out}");
    assert!(out.contains("readings.bucket  buckets in readings_buckets"), "{out}");
    let output = run("noted-json", Some(yaml), &["check", "--json"]);
    let (code, out, _) = told(&output);
    let told: serde_json::Value = serde_json::from_str(out).unwrap();
    let finding = &told["findings"][0];
    assert_eq!((code, &finding["severity"], &finding["rule"]), (Some(0), &"note".into(), &"readings.bucket".into()));
    assert_eq!((&finding["line"], &finding["column"]), (&4.into(), &5.into()));
}

#[test]
fn a_missing_file_is_a_failure() {
    let output = run("missing", None, &["check"]);
    let (code, out, err) = told(&output);
    assert_eq!((code, out), (Some(2), ""));
    assert!(
        err.starts_with("error: cannot read pleach.yaml: ")
            && err.contains("hint: name the declaration with --declare FILE"),
        "{err}"
    );
    let output = run("missing-json", None, &["check", "--json"]);
    let (code, out, _) = told(&output);
    let found: serde_json::Value = serde_json::from_str(out).unwrap();
    assert_eq!((code, found["findings"].as_array().unwrap().len()), (Some(2), 1));
}

#[test]
fn not_utf8_is_told_and_no_panic() {
    let folder = std::env::temp_dir().join(format!("pleach-check-{}-bytes.yaml", std::process::id()));
    std::fs::write(&folder, b"database: \xff\xfe\n").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_pleach")).arg("check").arg("--declare").arg(&folder).output().unwrap();
    std::fs::remove_file(&folder).unwrap();
    let (code, out, err) = told(&output);
    assert_eq!((code, out), (Some(2), ""));
    assert!(err.contains("UTF-8"), "{err}");
}

#[test]
fn the_catalogue_of_patterns() {
    let output = run("patterns", None, &["patterns"]);
    let (code, out, _) = told(&output);
    assert_eq!(code, Some(0));
    for name in
        ["bucket", "computed", "extended_reference", "field_names", "outlier", "polymorphic", "subset", "versions"]
    {
        assert!(out.lines().any(|line| line.starts_with(&format!("{name} "))), "{name}: {out}");
    }
    let output = run("pattern", None, &["patterns", "extended-reference"]);
    let (code, out, _) = told(&output);
    assert_eq!(code, Some(0));
    for part in [
        "Extended reference (there)",
        "Problem ",
        "Mechanism ",
        "Symptom ",
        "When not ",
        "when_deleted",
        "from: customers",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let output = run("patterns-json", None, &["patterns", "--json"]);
    let catalogue: serde_json::Value = serde_json::from_str(told(&output).1).unwrap();
    let there: Vec<&str> = catalogue["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pattern| pattern["status"] == "there")
        .map(|pattern| pattern["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        there,
        ["bucket", "computed", "extended_reference", "field_names", "outlier", "polymorphic", "subset", "versions"]
    );
    let output = run("pattern-unknown", None, &["patterns", "nested"]);
    let (code, _, err) = told(&output);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("there is no pattern `nested`") && err.contains("hint: the patterns are bucket, computed"),
        "{err}"
    );
}
