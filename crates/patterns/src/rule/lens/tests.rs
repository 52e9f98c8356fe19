//! Steps on single documents: both ways, what they leave alone, and that the view says the same as the update of each version.

use super::steps::{Convert, Default, Drop, Join, Nest, Pipelines, Rename, Split, Wrap, stages_of};
use super::{Lens, Migrate, VersionStep, VersionSteps};
use bson::{Bson, Document, bson, doc};
use document::filter::Filter;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Array, Doc, Env, Value};
use std::sync::Arc;

fn path(dotted: &str) -> Path {
    Path::new(dotted)
}

fn stages(stages: Bson) -> Vec<Value<'static>> {
    match Value::from(stages) {
        Value::Array(stages) => stages_of(&stages),
        other => panic!("{other:?}"),
    }
}

fn lens(versions: Vec<VersionSteps>) -> Lens {
    Lens::new("v", versions, Migrate::default()).unwrap()
}

fn of(step: impl VersionStep + 'static) -> Lens {
    lens(vec![vec![Arc::new(step)]])
}

fn nest() -> Nest {
    let with = vec![(path("phone.countryCode"), Value::from("+1"))];
    Nest { from: path("phone"), into: path("phone.number"), with }
}

fn up(lens: &Lens, doc: Document) -> Document {
    let doc = Doc::from(doc);
    let up = lens.up(&doc, &Env::fixed()).unwrap().unwrap_or_else(|| doc.clone());
    let by_view = transformed(lens.view(), &doc);
    assert_eq!(up, by_view, "the view of {doc:?}");
    Document::try_from(&up).unwrap()
}

fn down(lens: &Lens, doc: Document, version: i32) -> Document {
    let doc = Doc::from(doc);
    let down = lens.down(&doc, version, &Env::fixed()).unwrap().unwrap_or(doc);
    Document::try_from(&down).unwrap()
}

fn transformed(stages: &Array<'_>, doc: &Doc<'_>) -> Doc<'static> {
    Pipeline::parse_update(stages, &mut Names::new()).unwrap().transform(doc, &Env::fixed()).unwrap()
}

#[test]
fn steps_go_both_ways() {
    let split = Split { from: path("name"), into: vec![path("first"), path("last")], on: " ".to_owned() };
    let join = Join { into: path("address"), from: vec![path("street"), path("city")], with: ", ".to_owned() };
    let into_itself = Split { from: path("name"), into: vec![path("name"), path("last")], on: " ".to_owned() };
    let inner = Nest { from: path("city"), into: path("address.city"), with: Vec::new() };
    let convert = |from, to| Convert { path: path("age"), from, to };
    let rows: Vec<(Lens, Document, Document)> = vec![
        (of(Rename { from: path("a"), to: path("b") }), doc! { "a": 1 }, doc! { "b": 1, "v": 2 }),
        (of(Rename { from: path("a"), to: path("b") }), doc! { "a": null }, doc! { "b": null, "v": 2 }),
        (of(Rename { from: path("a.x"), to: path("b.y") }), doc! { "a": { "x": 1 } }, doc! { "b": { "y": 1 }, "v": 2 }),
        (of(nest()), doc! { "phone": "555" }, doc! { "phone": { "number": "555", "countryCode": "+1" }, "v": 2 }),
        (
            of(inner),
            doc! { "address": { "zip": 1 }, "city": "B" },
            doc! { "address": { "zip": 1, "city": "B" }, "v": 2 },
        ),
        (of(split.clone()), doc! { "name": "Ada B C" }, doc! { "first": "Ada", "last": "B C", "v": 2 }),
        (of(split.clone()), doc! { "name": "Ada" }, doc! { "first": "Ada", "v": 2 }),
        (of(split), doc! { "name": "" }, doc! { "first": "", "v": 2 }),
        (of(into_itself), doc! { "name": "Ada B" }, doc! { "name": "Ada", "last": "B", "v": 2 }),
        (of(join.clone()), doc! { "street": "S 1", "city": "B" }, doc! { "address": "S 1, B", "v": 2 }),
        (of(join), doc! { "street": "S 1" }, doc! { "address": "S 1", "v": 2 }),
        (of(convert("string", "int")), doc! { "age": "7" }, doc! { "age": 7, "v": 2 }),
        (of(convert("int", "string")), doc! { "age": 7 }, doc! { "age": "7", "v": 2 }),
        (of(Wrap { path: path("email") }), doc! { "email": "a@b" }, doc! { "email": ["a@b"], "v": 2 }),
        (of(Wrap { path: path("email") }), doc! { "email": ["a"] }, doc! { "email": [["a"]], "v": 2 }),
    ];
    for (lens, older, newer) in rows {
        assert_eq!(sorted(up(&lens, older.clone())), sorted(newer.clone()), "up {older}");
        let mut back = older.clone();
        back.insert("v", 1);
        assert_eq!(sorted(down(&lens, newer, 1)), sorted(back), "down {older}");
    }
}

/// Where fields come to stand is not part of a document's meaning.
fn sorted(doc: Document) -> Vec<(String, Bson)> {
    let mut fields: Vec<(String, Bson)> = doc.into_iter().collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

#[test]
fn a_document_without_the_field_is_left_alone_except_by_default() {
    let split = Split { from: path("name"), into: vec![path("first"), path("last")], on: " ".to_owned() };
    let rows: Vec<(Lens, Document, Document)> = vec![
        (of(nest()), doc! { "x": 1 }, doc! { "x": 1, "v": 2 }),
        (of(Rename { from: path("a"), to: path("b") }), doc! { "b": 1 }, doc! { "b": 1, "v": 2 }),
        (of(Rename { from: path("a.x"), to: path("b.y") }), doc! { "a": 1 }, doc! { "a": 1, "v": 2 }),
        (of(split.clone()), doc! { "first": "A" }, doc! { "first": "A", "v": 2 }),
        (of(split), doc! { "name": 7 }, doc! { "name": 7, "v": 2 }),
        (
            of(Convert { path: path("age"), from: "string", to: "int" }),
            doc! { "age": "old" },
            doc! { "age": "old", "v": 2 },
        ),
        (
            of(Convert { path: path("age"), from: "string", to: "int" }),
            doc! { "age": true },
            doc! { "age": true, "v": 2 },
        ),
        (of(Wrap { path: path("email") }), doc! {}, doc! { "v": 2 }),
        (of(Drop { path: path("fax") }), doc! { "fax": 1, "x": 1 }, doc! { "x": 1, "v": 2 }),
        (of(Drop { path: path("a.fax") }), doc! { "a": { "fax": 1 } }, doc! { "a": {}, "v": 2 }),
        (of(Default { path: path("s"), value: Value::from("on") }), doc! {}, doc! { "s": "on", "v": 2 }),
        (of(Default { path: path("s"), value: Value::from("on") }), doc! { "s": null }, doc! { "s": null, "v": 2 }),
        (
            of(Default { path: path("a.s"), value: Value::from("$x") }),
            doc! { "a": { "b": 1 } },
            doc! { "a": { "b": 1, "s": "$x" }, "v": 2 },
        ),
    ];
    for (lens, older, newer) in rows {
        assert_eq!(sorted(up(&lens, older.clone())), sorted(newer), "{older}");
    }
}

#[test]
fn each_version_takes_the_steps_that_it_lacks() {
    let lens = lens(vec![
        vec![
            Arc::new(Rename { from: path("a"), to: path("b") }),
            Arc::new(Default { path: path("s"), value: Value::Int32(0) }),
        ],
        vec![Arc::new(Pipelines {
            up: stages(bson!([{ "$set": { "n": { "$strLenCP": "$b" } } }, { "$unset": "b" }])),
            down: stages(bson!([{ "$set": { "b": { "$toString": "$n" } } }, { "$unset": ["n"] }])),
        })],
    ]);
    assert_eq!(lens.newest(), 3);
    let rows = [
        (doc! { "a": "xy" }, doc! { "s": 0, "n": 2, "v": 3 }),
        (doc! { "a": "xy", "v": 1.0 }, doc! { "s": 0, "n": 2, "v": 3 }),
        (doc! { "b": "xyz", "v": 2 }, doc! { "n": 3, "v": 3 }),
        // Its pipeline would fail on what is newest already.
        (doc! { "b": 7, "v": 3 }, doc! { "b": 7, "v": 3 }),
        (doc! { "b": 7, "v": 4 }, doc! { "b": 7, "v": 4 }),
        (doc! { "b": 7, "v": "two" }, doc! { "b": 7, "v": "two" }),
    ];
    for (stored, newest) in rows {
        assert_eq!(sorted(up(&lens, stored.clone())), sorted(newest), "{stored}");
    }
    assert_eq!(sorted(down(&lens, doc! { "s": 0, "n": 2, "v": 3 }, 1)), sorted(doc! { "s": 0, "a": "2", "v": 1 }));
    assert_eq!(sorted(down(&lens, doc! { "n": 2, "v": 3 }, 2)), sorted(doc! { "b": "2", "v": 2 }));
    assert_eq!(down(&lens, doc! { "n": 2, "v": 9 }, 2), doc! { "n": 2, "v": 9 }, "newer than known");
}

#[test]
fn going_down_takes_what_was_nested_and_nothing_else() {
    let lens = of(Nest {
        from: path("city"),
        into: path("address.city"),
        with: vec![(path("address.country"), Value::from("DE"))],
    });
    let newer = doc! { "address": { "city": "B", "country": "DE" }, "v": 2 };
    assert_eq!(sorted(down(&lens, newer, 1)), sorted(doc! { "city": "B", "v": 1 }));
    let newer = doc! { "address": { "city": "B", "country": "DE", "zip": 1 }, "v": 2 };
    assert_eq!(sorted(down(&lens, newer, 1)), sorted(doc! { "address": { "zip": 1 }, "city": "B", "v": 1 }));
    let wrap = of(Wrap { path: path("email") });
    assert_eq!(sorted(down(&wrap, doc! { "email": [], "v": 2 }, 1)), sorted(doc! { "v": 1 }));
}

fn pushed(lens: &Lens, filter: Document) -> Document {
    let filter = Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap();
    Document::try_from(&lens.push(&filter).source).unwrap()
}

#[test]
fn a_condition_is_asked_of_each_version() {
    let lens = of(nest());
    assert_eq!(pushed(&lens, doc! { "x": 1 }), doc! { "x": 1 });
    assert_eq!(
        pushed(&lens, doc! { "phone.number": "5" }),
        doc! { "$or": [
            { "$and": [{ "v": { "$in": [null, 1] } }, { "phone": { "$eq": "5" } }] },
            { "$and": [{ "v": { "$not": { "$in": [null, 1] } } }, { "phone.number": { "$eq": "5" } }] },
        ] },
        "what was inside of the number has gone with it"
    );
    let renamed = of(Rename { from: path("phone"), to: path("tel") });
    assert_eq!(
        pushed(&renamed, doc! { "tel": "5", "x": 1 }),
        doc! { "$or": [
            { "$and": [{ "v": { "$in": [null, 1] } }, { "x": { "$eq": 1 } }, { "phone": { "$eq": "5" } }] },
            { "$and": [{ "v": { "$in": [null, 1] } }, { "x": { "$eq": 1 } }, { "tel": { "$eq": "5" } }] },
            { "$and": [{ "v": { "$not": { "$in": [null, 1] } } }, { "tel": { "$eq": "5" } }, { "x": { "$eq": 1 } }] },
        ] },
        "each alternative has an index to itself"
    );
    let is_unindexed =
        |filter: Document| lens.is_unindexed(&Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap());
    assert!(!is_unindexed(doc! { "phone.number": "5", "x": 1 }));
    assert!(is_unindexed(doc! { "phone.countryCode": "+1" }));
    assert!(is_unindexed(doc! { "v": 2 }));
}

/// Whatever is asked: what matches afterwards is asked for.
#[test]
fn no_document_that_matches_is_missed() {
    let lenses = [
        of(nest()),
        of(Rename { from: path("phone"), to: path("tel") }),
        of(Wrap { path: path("phone") }),
        of(Default { path: path("phone"), value: Value::from("5") }),
        of(Convert { path: path("phone"), from: "string", to: "int" }),
        lens(vec![
            vec![Arc::new(Rename { from: path("phone"), to: path("tel") })],
            vec![Arc::new(Wrap { path: path("tel") }), Arc::new(Drop { path: path("x") })],
        ]),
    ];
    let values =
        [bson!("5"), bson!(null), bson!(["5", "6"]), bson!({ "number": "5" }), bson!([{ "number": "5" }]), bson!(5)];
    let tests = [
        bson!("5"),
        bson!(null),
        bson!({ "$ne": "5" }),
        bson!({ "$gt": "4" }),
        bson!({ "$exists": true }),
        bson!({ "$exists": false }),
        bson!({ "$in": ["5", null] }),
        bson!({ "$nin": ["5"] }),
        bson!({ "$size": 1 }),
        bson!({ "$elemMatch": { "$eq": "5" } }),
        bson!({ "$type": "array" }),
        bson!(["5", "6"]),
        bson!({ "$not": { "$gt": "4" } }),
    ];
    let names = ["phone", "phone.number", "tel", "tel.0", "x", "v"];
    let mut documents = vec![doc! {}, doc! { "x": 1 }];
    for value in &values {
        for name in ["phone", "tel"] {
            for version in [None, Some(1), Some(2), Some(3), Some(9)] {
                let mut doc = doc! { name: value.clone(), "x": "5" };
                doc.extend(version.map(|version| ("v".to_owned(), Bson::from(version))));
                documents.push(doc);
            }
        }
    }
    let (env, mut found) = (Env::fixed(), 0);
    for lens in &lenses {
        for name in names {
            for test in &tests {
                for filter in [
                    doc! { name: test.clone() },
                    doc! { "$or": [{ name: test.clone() }, { "x": 1 }] },
                    doc! { "$nor": [{ name: test.clone() }] },
                ] {
                    let filter = Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap();
                    let pushed = lens.push(&filter);
                    for stored in &documents {
                        let stored = Doc::from(stored.clone());
                        let newest = lens.up(&stored, &env).unwrap().unwrap_or_else(|| stored.clone());
                        if filter.matches(&newest, &env).unwrap() {
                            found += 1;
                            let is_old = lens.old().matches(&stored, &env).unwrap();
                            assert_eq!(lens.push_to_old(&filter).matches(&stored, &env).unwrap(), is_old);
                            assert!(
                                pushed.matches(&stored, &env).unwrap(),
                                "{:?} for {stored:?} of {lens:?}",
                                filter.source
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(found > 1_000, "{found}");
}

#[test]
fn versions_that_are_taken_back_are_brought_down() {
    let rename = |from: &str, to: &str| -> VersionSteps { vec![Arc::new(Rename { from: path(from), to: path(to) })] };
    let second: VersionSteps = vec![
        Arc::new(Rename { from: path("b"), to: path("c") }),
        Arc::new(Convert { path: path("c"), from: "int", to: "string" }),
    ];
    let own = stages(bson!([{ "$set": { "e": { "$toInt": "$c" } } }, { "$unset": "c" }]));
    let back = stages(bson!([{ "$set": { "c": { "$toString": "$e" } } }, { "$unset": "e" }]));
    let third: VersionSteps = vec![Arc::new(Pipelines { up: own, down: back })];
    let lens = Lens::taking_back("v", vec![rename("a", "b")], vec![second, third], Migrate::default()).unwrap();
    assert_eq!(lens.newest(), 2);
    for (stored, expected) in [
        (doc! { "a": 5 }, doc! { "b": 5, "v": 2 }),
        (doc! { "b": 5, "v": 2 }, doc! { "b": 5, "v": 2 }),
        (doc! { "c": "5", "v": 3 }, doc! { "b": 5, "v": 2 }),
        (doc! { "e": 5, "v": 4 }, doc! { "b": 5, "v": 2 }),
        (doc! { "e": 5, "v": 5 }, doc! { "e": 5, "v": 5 }),
    ] {
        assert_eq!(up(&lens, stored.clone()), expected, "{stored}");
        let stored = Doc::from(stored);
        let is = |filter: Filter| filter.matches(&stored, &Env::fixed()).unwrap();
        let number = stored.get("v").and_then(|v| v.as_i64_exact()).unwrap_or(1);
        assert_eq!(is(lens.old()), [1, 3, 4].contains(&number));
        assert_eq!(is(lens.current()), [2, 5].contains(&number));
        assert_eq!(is(lens.beyond()), [3, 4].contains(&number));
        assert_eq!(is(lens.unknown()), number == 5);
        let asked = Filter::parse(&Doc::from(doc! { "b": 5 }), &mut Names::new()).unwrap();
        assert!(number == 5 || is(lens.push(&asked)), "{number}");
    }
}
