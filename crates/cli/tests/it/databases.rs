//! Files of two databases in one run: one JSON document, one verdict, and the all-clear only if it holds for both.

use crate::doors::{At, at_each_door};
use crate::shop::{Shop, text};
use bson::doc;
use serde_json::Value;

at_each_door!(several_databases_are_one_document_and_one_verdict, rules_that_the_file_lacks_are_named,);

const VERBS: &[&[&str]] = &[&["plan"], &["apply"], &["audit"], &["repair"]];

fn declaration(db: &str) -> String {
    format!("database: {db}\ncollections: {{ posts: {{ computed: {{ likes: {{ count: likes, by: postId }} }} }} }}\n")
}

fn several_databases_are_one_document_and_one_verdict(at: At) {
    let door = at.door("databases");
    let (one, two) = (format!("{}_1", door.db), format!("{}_2", door.db));
    let shop = Shop::new(&format!("databases-{}", door.at.name()), "");
    for (file, db) in [("one.yaml", &one), ("two.yaml", &two)] {
        std::fs::write(shop.folder.join(file), declaration(db)).unwrap();
        let mut client = door.client();
        let insert = |collection: &str, id: i32| doc! { "insert": collection, "documents": [{ "_id": id, "postId": 1 }], "$db": db };
        client.must(&insert("posts", 1)).unwrap();
        client.must(&insert("likes", 1)).unwrap();
    }
    let server = format!("mongodb://{}", door.serving.address);
    let run = |verb: &[&str], more: &[&str]| {
        let mut command = shop.command(verb);
        command.args(["--declare", "one.yaml", "--declare", "two.yaml", "--server", &server]).args(more);
        command.output().unwrap()
    };
    for verb in VERBS {
        let output = run(verb, &["--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let list = told["databases"].as_array().unwrap();
        assert_eq!(
            list.iter().map(|one| one["database"].as_str().unwrap()).collect::<Vec<_>>(),
            [&one, &two],
            "{told}"
        );
        assert!(list.iter().all(|one| one["rules"].is_array() && one.get("error").is_none()), "{verb:?}: {told}");
    }
    let told = run(&["audit"], &[]);
    let (code, out, _) = text(&told);
    assert_eq!((code, out.matches("every derived value is").count()), (Some(0), 1), "{out}");
    assert!(
        out.ends_with("every derived value is what it should be\n") && out.contains(&format!("database {two}:")),
        "{out}"
    );
    // Right in one of them only.
    std::fs::write(shop.folder.join("two.yaml"), declaration(&two).replace("count: likes", "count: zzz")).unwrap();
    let told = run(&["audit"], &[]);
    assert_eq!((text(&told).0, text(&told).1.contains("what it should be\n")), (Some(2), false), "{told:?}");
    // Refused in the first: the second is done all the same.
    std::fs::write(shop.folder.join("one.yaml"), declaration(&one).replace("by: postId", "by: postIt")).unwrap();
    std::fs::write(shop.folder.join("two.yaml"), declaration(&two)).unwrap();
    let output = run(&["repair"], &["--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told["databases"][0]["error"]["message"].is_string() && told["databases"][1]["rules"].is_array(), "{told}");
    let mut client = door.client();
    for db in [&one, &two] {
        client.command(&doc! { "pleach": "uninstall", "forget": true, "$db": db }).unwrap();
        client.command(&doc! { "dropDatabase": 1, "$db": db }).unwrap();
    }
    door.finish();
}

fn rules_that_the_file_lacks_are_named(at: At) {
    let door = at.door("partial");
    let mut client = door.client();
    door.insert(&mut client, "posts", vec![doc! { "_id": 1 }]);
    door.insert(&mut client, "likes", vec![doc! { "_id": 1, "postId": 1 }]);
    let count = || doc! { "count": "likes", "by": "postId" };
    let applied = door.applied(&mut client, doc! { "posts": { "computed": { "likes": count(), "hearts": count() } } });
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    let shop = Shop::new(&format!("partial-{}", door.at.name()), &declaration(&door.db));
    let server = format!("mongodb://{}", door.serving.address);
    let run =
        |args: &[&str]| shop.command(args).args(["--declare", "pleach.yaml", "--server", &server]).output().unwrap();
    let told = run(&["audit"]);
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(0), "{told:?}");
    assert!(out.contains("1 applied rule is not in the declaration and was not checked: posts.hearts"), "{out}");
    assert!(out.contains("every derived value of the declared rules is what it should be"), "{out}");
    let report = door.run(&mut client, doc! { "pleach": "audit", "declaration": declaration(&door.db) });
    assert_eq!(report.get_array("undeclared").unwrap(), &["posts.hearts".into()], "{report}");
    let report = door.run(&mut client, doc! { "pleach": "audit" });
    assert!(!report.contains_key("undeclared"), "{report}");
    // Only what was asked for.
    assert!(!text(&run(&["audit", "--rule", "posts.likes"])).1.contains("posts.hearts"));
    // A rule that the file does not have: its own are named.
    let told = run(&["audit", "--rule", "nul.zz"]);
    assert!(text(&told).2.contains("posts.likes") && !text(&told).2.contains("pleach status"), "{told:?}");
    door.finish();
}
