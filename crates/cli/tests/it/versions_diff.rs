//! `pleach versions diff`: what it prints passes `check`, as text and for programs; what it cannot read is said.

use crate::serving::pleach;
use crate::shop::Shop;
use serde_json::{Value, json};
use std::path::Path;

const OLD: &str = "{ \"_id\": 1, \"phone\": \"1\", \"mail\": \"a@x\", \"fax\": 1 }\n{ \"_id\": 2, \"phone\": \"2\", \"mail\": \"b@x\", \"fax\": 2 }\n";
const NEW: &str = "[{ \"_id\": 1, \"phone\": { \"number\": \"1\", \"code\": \"+1\" }, \"email\": \"a@x\" },
    { \"_id\": 2, \"phone\": { \"number\": \"2\", \"code\": \"+1\" }, \"email\": \"b@x\" }]";

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = pleach().current_dir(folder).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn folder(name: &str, files: &[(&str, &str)]) -> Shop {
    let shop = Shop::new(name, "");
    for (file, text) in files {
        std::fs::write(shop.folder.join(file), text).unwrap();
    }
    shop
}

#[test]
fn what_is_printed_is_a_declaration() {
    let shop = folder("diff-samples", &[("old.json", OLD), ("users.json", NEW)]);
    let (code, text, _) = run(&shop.folder, &["versions", "diff", "old.json", "users.json"]);
    assert_eq!(code, Some(0), "{text}");
    for said in [
        "nest: { phone: { into: phone.number, with: { phone.code: \"+1\" } } }",
        "rename: { mail: email }",
        "# sure: in all 2 documents",
        "# loses something: `fax`",
        "# tried: 2 of 2 older documents get the shape of the newer ones; 2 of the 2 that",
    ] {
        assert!(text.contains(said), "{said} in {text}");
    }
    assert!(
        text.lines().filter(|line| line.trim_start().starts_with('#')).all(|line| line.chars().count() <= 80),
        "{text}"
    );
    shop.declare(&text);
    let (code, checked, _) = run(&shop.folder, &["check"]);
    // Warnings: what the steps lose.
    assert_eq!(code, Some(1), "{checked}");
    assert!(checked.contains("is valid: 1 rule") && checked.contains("documents of 2 versions"), "{checked}");
}

#[test]
fn programs_get_steps_with_their_evidence() {
    let shop = folder("diff-json", &[("old.json", OLD), ("new.json", NEW)]);
    let args =
        ["versions", "diff", "old.json", "new.json", "--db", "app", "--collection", "people", "--field", "v", "--json"];
    let (code, text, _) = run(&shop.folder, &args);
    assert_eq!(code, Some(0), "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let [proposal] = answer["proposals"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(proposal["collection"], json!("people"));
    let step = |word: &str| {
        let steps = proposal["steps"].as_array().unwrap();
        steps.iter().find(|step| step["step"].get(word).is_some()).unwrap_or_else(|| panic!("{word}: {proposal}"))
    };
    assert_eq!((&step("rename")["sure"], &step("rename")["losses"]), (&json!(true), &json!([])));
    assert_eq!(step("drop")["step"], json!({ "drop": ["fax"] }));
    assert!(step("drop")["losses"][0].as_str().unwrap().contains("`fax`"));
    assert_eq!(
        proposal["tried"],
        json!({ "documents": 2, "same_shape": 2, "in_both": 2, "equal": 2, "example": null })
    );
    let declaration = answer["declaration"].as_str().unwrap();
    assert!(
        declaration.starts_with("database: app\ncollections:\n  people:\n    versions:\n      field: v\n"),
        "{declaration}"
    );
    // Nothing differs.
    let (code, text, _) = run(&shop.folder, &["versions", "diff", "old.json", "old.json"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("# nothing to propose"), "{text}");
}

#[test]
fn declarations_are_compared_by_their_schemas() {
    let declared = |kind: &str| {
        format!(
            "database: shop\ncollections:\n  products:\n    polymorphic:\n      discriminator: type\n      kinds: {{ book: {kind} }}\n"
        )
    };
    let old = declared(
        "{ required: [title, isbn], schema: { properties: { isbn: { bsonType: string }, pages: { bsonType: string } } } }",
    );
    let new = declared(
        "{ required: [title, isbnNumber], schema: { properties: { isbnNumber: { bsonType: string }, pages: { bsonType: int } } } }",
    );
    let shop = folder("diff-schemas", &[("a.yaml", &old), ("b.yaml", &new)]);
    let (code, text, _) = run(&shop.folder, &["versions", "diff", "a.yaml", "b.yaml"]);
    assert_eq!(code, Some(0), "{text}");
    for said in ["rename: { isbn: isbnNumber }", "convert: { pages: { from: string, to: int } }", "# guess: "] {
        assert!(text.contains(said), "{said} in {text}");
    }
    let (code, text, said) = run(&shop.folder, &["versions", "diff", "a.yaml", "b.yaml", "--collection", "users"]);
    assert_eq!(code, Some(2), "{text}{said}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let files = [
        ("old.json", OLD),
        ("broken.json", "{ \"_id\": "),
        ("empty.json", ""),
        ("a.yaml", "database: shop\ncollections: {}\n"),
    ];
    let shop = folder("diff-wrong", &files);
    for (older, newer, expected) in [
        ("old.json", "broken.json", "broken.json is no sample"),
        ("empty.json", "old.json", "empty.json has no documents"),
        ("missing.json", "old.json", "cannot read missing.json"),
        ("a.yaml", "old.json", "declaration"),
    ] {
        let (code, text, said) = run(&shop.folder, &["versions", "diff", older, newer]);
        assert_eq!(code, Some(2), "{older} {newer}: {text}");
        assert!(text.is_empty() && said.contains(expected) && said.contains("hint: "), "{older} {newer}: {said}");
    }
    let (code, _, said) = run(&shop.folder, &["versions", "diff", "old.json", "old.json", "--db", "a.b"]);
    assert!(code == Some(2) && said.contains("a.b"), "{said}");
}
