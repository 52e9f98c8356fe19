//! What older clients see and what their writes make of newest documents: nothing that they cannot see is lost, and what they wrote they
//! read again.

use super::steps::{Convert, Default, Drop, Join, Nest, Pipelines, Rename, Split, Wrap, stages_of};
use super::{Lens, Migrate, SeenDocument, VersionStep, VersionSteps};
use bson::{Bson, Document, bson, doc};
use document::filter::{Details, Filter};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::value::Path;
use document::{Code, Doc, Env, Error, Value};
use std::sync::Arc;

fn path(dotted: &str) -> Path {
    Path::new(dotted)
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

fn split() -> Split {
    Split { from: path("name"), into: vec![path("first"), path("last")], on: " ".to_owned() }
}

fn pair() -> Pipelines {
    let stages = |stages: Bson| match Value::from(stages) {
        Value::Array(stages) => stages_of(&stages),
        other => panic!("{other:?}"),
    };
    Pipelines {
        up: stages(bson!([{ "$set": { "cents": { "$multiply": ["$price", 100] } } }, { "$unset": "price" }])),
        down: stages(bson!([{ "$set": { "price": { "$divide": ["$cents", 100] } } }, { "$unset": "cents" }])),
    }
}

fn sorted(doc: Document) -> Document {
    let mut fields: Vec<(String, Bson)> = doc.into_iter().collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.into_iter().collect()
}

/// What a client of version 1 sees, and that the stages say the same.
fn seen(lens: &Lens, newest: &Doc<'static>) -> Doc<'static> {
    let seen = lens.seen(newest, 1, &Env::fixed()).unwrap();
    let stages = Pipeline::parse_update(&lens.seen_stages(1), &mut Names::new()).unwrap();
    assert_eq!(stages.transform(newest, &Env::fixed()).unwrap(), seen);
    seen
}

/// The newest document after an update of a client of version 1.
fn updated(lens: &Lens, newest: Document, update: Bson) -> Result<Document, Error> {
    let (newest, env) = (Doc::from(newest), Env::fixed());
    let update = Update::parse(&Value::from(update), &[], &mut Names::new()).unwrap();
    let before = seen(lens, &newest);
    let of = SeenDocument { newest: &newest, seen: &before, details: &Details::default() };
    let Some(sent) = lens.seen_update(&update, of, 1, &env)? else {
        return Ok(sorted(Document::try_from(&newest).unwrap()));
    };
    let after = match sent.apply(&newest, &Details::default(), &env)? {
        Applied::Changed(after) => after,
        Applied::Unchanged => newest,
    };
    Ok(sorted(Document::try_from(&after).unwrap()))
}

#[test]
fn what_is_not_seen_stays() {
    let rows: Vec<(Lens, Document, Bson, Document)> = vec![
        // The country code is not seen.
        (
            of(nest()),
            doc! { "phone": { "number": "1", "countryCode": "+44" }, "v": 2 },
            bson!({ "$set": { "phone": "2" } }),
            doc! { "phone": { "number": "2", "countryCode": "+44" }, "v": 2 },
        ),
        (
            of(nest()),
            doc! { "x": 1, "v": 2 },
            bson!({ "$set": { "phone": "2" } }),
            doc! { "phone": { "number": "2", "countryCode": "+1" }, "v": 2, "x": 1 },
        ),
        (
            of(nest()),
            doc! { "phone": { "number": "1", "countryCode": "+44" }, "v": 2 },
            bson!({ "$unset": { "phone": 1 } }),
            doc! { "v": 2 },
        ),
        (
            of(nest()),
            doc! { "phone": { "number": "1", "countryCode": "+44" }, "v": 2 },
            bson!({ "phone": "3", "x": 2 }),
            doc! { "phone": { "number": "3", "countryCode": "+44" }, "v": 2, "x": 2 },
        ),
        // Items behind the first are not seen.
        (
            of(Wrap { path: path("mail") }),
            doc! { "mail": ["a", "b"], "v": 2 },
            bson!({ "$set": { "mail": "c" } }),
            doc! { "mail": ["c", "b"], "v": 2 },
        ),
        (
            of(Wrap { path: path("mail") }),
            doc! { "v": 2 },
            bson!({ "$set": { "mail": "c" } }),
            doc! { "mail": ["c"], "v": 2 },
        ),
        (
            of(Wrap { path: path("mail") }),
            doc! { "mail": ["a", "b"], "v": 2 },
            bson!({ "$unset": { "mail": 1 } }),
            doc! { "v": 2 },
        ),
        // Where the text is cut is decided anew only for what was written.
        (
            of(split()),
            doc! { "first": "A", "last": "B", "v": 2 },
            bson!({ "$set": { "name": "A C" } }),
            doc! { "first": "A", "last": "C", "v": 2 },
        ),
        (
            of(split()),
            doc! { "first": "A B", "last": "C", "v": 2 },
            bson!({ "$set": { "x": 1 } }),
            doc! { "first": "A B", "last": "C", "v": 2, "x": 1 },
        ),
        (
            of(split()),
            doc! { "first": "A B", "last": "C", "v": 2 },
            bson!({ "$set": { "name": "A B D" } }),
            doc! { "first": "A", "last": "B D", "v": 2 },
        ),
        (
            of(Join { into: path("a"), from: vec![path("s"), path("c")], with: ", ".to_owned() }),
            doc! { "a": "S 1, B", "v": 2 },
            bson!({ "$set": { "c": "H" } }),
            doc! { "a": "S 1, H", "v": 2 },
        ),
        (
            of(Rename { from: path("a"), to: path("b") }),
            doc! { "b": 1, "v": 2 },
            bson!({ "$inc": { "a": 2, "n": 1 } }),
            doc! { "b": 3, "n": 1, "v": 2 },
        ),
        (
            of(Rename { from: path("a"), to: path("b") }),
            doc! { "b": [1], "v": 2 },
            bson!({ "$push": { "a": 2 } }),
            doc! { "b": [1, 2], "v": 2 },
        ),
        (
            of(Convert { path: path("age"), from: "string", to: "int" }),
            doc! { "age": 7, "v": 2 },
            bson!({ "$set": { "age": "8" } }),
            doc! { "age": 8, "v": 2 },
        ),
        (of(Drop { path: path("fax") }), doc! { "v": 2 }, bson!({ "$set": { "fax": "1" } }), doc! { "v": 2 }),
        (
            of(pair()),
            doc! { "cents": 500, "tax": 7, "v": 2 },
            bson!({ "$set": { "price": 6 } }),
            doc! { "cents": 600, "tax": 7, "v": 2 },
        ),
        // A field that came with a later version is not taken away by a client that does not know it.
        (
            of(Default { path: path("on"), value: Value::Bool(true) }),
            doc! { "on": false, "v": 2 },
            bson!({ "x": 1 }),
            doc! { "on": false, "v": 2, "x": 1 },
        ),
        (
            of(Default { path: path("on"), value: Value::Bool(true) }),
            doc! { "on": false, "v": 2 },
            bson!({ "$set": { "x": 1 } }),
            doc! { "on": false, "v": 2, "x": 1 },
        ),
        // A pipeline sees what its client sees.
        (
            of(nest()),
            doc! { "phone": { "number": "1", "countryCode": "+44" }, "v": 2 },
            bson!([{ "$set": { "phone": { "$concat": ["$phone", "0"] }, "n": "$v" } }]),
            doc! { "n": 1, "phone": { "number": "10", "countryCode": "+44" }, "v": 2 },
        ),
        // One whose number is not known is as it is.
        (of(nest()), doc! { "phone": "x", "v": 9 }, bson!({ "$set": { "phone": "2" } }), doc! { "phone": "2", "v": 9 }),
    ];
    for (lens, newest, update, expected) in rows {
        assert_eq!(updated(&lens, newest.clone(), update.clone()).unwrap(), expected, "{newest} {update}");
    }
}

#[test]
fn the_number_is_not_a_clients_to_choose() {
    let lens = of(nest());
    let newest = doc! { "phone": { "number": "1", "countryCode": "+44" }, "v": 2 };
    for update in [bson!({ "$set": { "v": 2 } }), bson!({ "$unset": { "v": 1 } }), bson!([{ "$set": { "v": 7 } }])] {
        assert_eq!(
            updated(&lens, newest.clone(), update.clone()).unwrap_err().code(),
            Code::ImmutableField,
            "{update}"
        );
    }
    assert_eq!(updated(&lens, newest.clone(), bson!({ "$set": { "v": 1 } })).unwrap(), newest);
}

#[test]
fn versions_between_are_seen_too() {
    let lens = lens(vec![
        vec![Arc::new(nest())],
        vec![Arc::new(Rename { from: path("mail"), to: path("email") }), Arc::new(split())],
    ]);
    let newest = Doc::from(
        doc! { "_id": 1, "first": "A", "last": "B", "email": "m", "phone": { "number": "1", "countryCode": "+44" }, "v": 3 },
    );
    let at = |version: i32| {
        let seen = lens.seen(&newest, version, &Env::fixed()).unwrap();
        sorted(Document::try_from(&seen).unwrap())
    };
    assert_eq!(at(1), doc! { "_id": 1, "mail": "m", "name": "A B", "phone": "1", "v": 1 });
    assert_eq!(
        at(2),
        doc! { "_id": 1, "mail": "m", "name": "A B", "phone": { "number": "1", "countryCode": "+44" }, "v": 2 }
    );
    assert_eq!(at(3), sorted(Document::try_from(&newest).unwrap()));
    assert!(lens.changes_since(1, &path("phone")) && !lens.changes_since(2, &path("phone")));
    for (number, from) in [(None, 1), (Some(1), 1), (Some(2), 1), (None, 2)] {
        let mut doc = doc! { "_id": 1, "mail": "m" };
        number.map(|number| doc.insert("v", number));
        let brought = lens.brought(&Doc::from(doc), from, &Env::fixed()).unwrap();
        assert_eq!(sorted(Document::try_from(&brought).unwrap()), doc! { "_id": 1, "email": "m", "v": 3 });
    }
}

#[test]
fn a_condition_finds_all_that_its_client_sees() {
    let lens = lens(vec![
        vec![Arc::new(nest()), Arc::new(Wrap { path: path("nick") })],
        vec![Arc::new(Rename { from: path("mail"), to: path("email") }), Arc::new(split())],
    ]);
    let newest = [
        doc! { "email": "m", "phone": { "number": "1", "countryCode": "+44" }, "nick": ["n", "x"], "v": 3 },
        doc! { "mail": "m", "phone": "1", "nick": "n", "v": 3 },
        doc! { "mail": "m", "phone": "1", "nick": "n", "v": 9 },
        doc! { "nick": [["n"], "x"], "email": null, "v": 3 },
        doc! { "nick": [], "phone": { "number": null }, "v": 3 },
        doc! { "nick": [null, "n"], "first": "A", "last": "B", "v": 3 },
    ];
    let filters = [
        doc! { "mail": "m" },
        doc! { "phone": "1", "x": null },
        doc! { "phone": { "$ne": "1" } },
        doc! { "phone": null },
        doc! { "nick": "n" },
        doc! { "nick": null },
        doc! { "nick": { "$in": [null, "n"] } },
        doc! { "nick": { "$exists": true } },
        doc! { "nick": { "$ne": "n" } },
        doc! { "$or": [{ "mail": "m" }, { "nick": "n" }] },
        doc! { "$nor": [{ "mail": "m" }] },
        doc! { "name": "A B" },
        doc! { "v": 1 },
        doc! { "$expr": { "$eq": ["$mail", "m"] } },
    ];
    let env = Env::fixed();
    for filter in filters {
        let asked = Filter::parse(&Doc::from(filter.clone()), &mut Names::new()).unwrap();
        for version in [1, 2] {
            let parts = lens.seen_filter(&asked, version);
            for doc in &newest {
                let newest = Doc::from(doc.clone());
                let seen = lens.seen(&newest, version, &env).unwrap();
                let expected = asked.matches(&seen, &env).unwrap();
                let found = parts.asked.matches(&newest, &env).unwrap();
                let left = parts.left.as_ref().is_none_or(|left| left.matches(&seen, &env).unwrap());
                assert_eq!(found && left, expected, "{filter} of {version} on {doc}: {:?}", parts.asked.source);
            }
        }
    }
}
