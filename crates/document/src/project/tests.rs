//! Rows of projections and what they make of one document.

use super::*;
use bson::{Bson, bson, doc};

fn sample() -> bson::Document {
    doc! {
        "_id": 1, "arr": [1, 2, 3], "o": [{ "x": [1, 2], "y": 1 }, { "x": [3, 4], "y": 2 }, 7, [{ "x": [5, 6] }]],
        "b": { "c": 1, "arr": [5, 6, 7], "e": 2 }, "a": 1, "z": 9,
    }
}

fn run(projection: &Projection, filter: &Filter, doc: &bson::Document) -> Result<bson::Document> {
    let doc = Doc::from(doc);
    let mut details = Details::default();
    assert!(filter.matches_with(&doc, &Env::fixed(), &mut details).unwrap());
    let output = projection.apply(&doc, &details, &Env::fixed())?;
    crate::raw::validate(output.as_bytes()).unwrap();
    Ok(bson::Document::try_from(&output).unwrap())
}

fn find(filter: bson::Document, spec: bson::Document) -> Result<bson::Document> {
    let filter = Filter::parse(&Doc::from(filter), &mut Names::new())?;
    run(&Projection::parse_find(&Doc::from(spec), &filter, &mut Names::new())?, &filter, &sample())
}

/// Checks a projection of `find`, and that `$project` does the same.
fn check(spec: bson::Document, expected: bson::Document) {
    assert_eq!(find(doc! {}, spec.clone()).unwrap(), expected, "{spec}");
    let stage = Projection::parse_stage(&Doc::from(spec.clone()), &mut Names::new()).unwrap();
    assert_eq!(run(&stage, &Filter::all(), &sample()).unwrap(), expected, "$project {spec}");
}

/// The sample with fields replaced; a `Bson::Undefined` takes one away.
fn with(changes: bson::Document) -> bson::Document {
    let mut doc = sample();
    for (name, value) in changes {
        match value {
            Bson::Undefined => doc.remove(name),
            value => doc.insert(name, value),
        };
    }
    doc
}

#[test]
fn inclusion_keeps_the_order_of_the_document_and_computes_at_the_end() {
    check(doc! { "z": 1, "a": true }, doc! { "_id": 1, "a": 1, "z": 9 });
    check(doc! { "_id": 0, "a": 1 }, doc! { "a": 1 });
    check(doc! { "b.e": 1, "b.c": 1 }, doc! { "_id": 1, "b": { "c": 1, "e": 2 } });
    check(doc! { "b": { "e": 1 }, "b.zz": 1 }, doc! { "_id": 1, "b": { "e": 2 } });
    check(doc! { "o.y": 1 }, doc! { "_id": 1, "o": [{ "y": 1 }, { "y": 2 }, [{}]] });
    check(doc! { "arr.x": 1, "a.b": 1 }, doc! { "_id": 1, "arr": [] });
    check(doc! { "z": 1, "arr": "$z" }, doc! { "_id": 1, "z": 9, "arr": 9 });
    check(doc! { "z": 1, "_id": "$z" }, doc! { "z": 9, "_id": 9 });
    check(doc! { "z": 1, "_id": { "k": "$z" } }, doc! { "_id": { "k": 9 }, "z": 9 });
    check(doc! { "n": "$a", "q.w": "$a", "z": 1 }, doc! { "_id": 1, "z": 9, "n": 1, "q": { "w": 1 } });
    check(doc! { "z": 1, "a.q": "$z" }, doc! { "_id": 1, "a": { "q": 9 }, "z": 9 });
    check(doc! { "arr.q": "$a" }, doc! { "_id": 1, "arr": [{ "q": 1 }, { "q": 1 }, { "q": 1 }] });
    check(doc! { "n": "$$REMOVE", "q.r": "$$REMOVE" }, doc! { "_id": 1, "q": {} });
}

#[test]
fn exclusion_keeps_the_rest() {
    check(doc! { "a": 0, "o": 0 }, with(doc! { "a": Bson::Undefined, "o": Bson::Undefined }));
    check(doc! { "_id": 0 }, with(doc! { "_id": Bson::Undefined }));
    check(doc! { "_id": 1, "z": 0 }, with(doc! { "z": Bson::Undefined }));
    check(doc! { "b.c": 0, "a.x": 0 }, with(doc! { "b": { "arr": [5, 6, 7], "e": 2 } }));
    check(doc! { "o.x": 0 }, with(doc! { "o": [{ "y": 1 }, { "y": 2 }, 7, [{}]] }));
}

#[test]
fn find_has_slices_elements_and_positions() {
    for (filter, spec, expected) in [
        (doc! {}, doc! { "arr": { "$slice": 2 } }, with(doc! { "arr": [1, 2] })),
        (doc! {}, doc! { "arr": { "$slice": [-2, 1] }, "_id": 1 }, doc! { "_id": 1, "arr": [2] }),
        (doc! {}, doc! { "b.arr": { "$slice": -1 }, "b.c": 1 }, doc! { "_id": 1, "b": { "c": 1, "arr": [7] } }),
        (
            doc! {},
            doc! { "o.x": { "$slice": 1 } },
            with(doc! { "o": [{ "x": [1], "y": 1 }, { "x": [3], "y": 2 }, 7, [{ "x": [5, 6] }]] }),
        ),
        (doc! {}, doc! { "arr": { "$elemMatch": { "$gt": 1 } }, "a": 1 }, doc! { "_id": 1, "a": 1, "arr": [2] }),
        (doc! {}, doc! { "arr": { "$elemMatch": { "$gt": 1 } }, "a": 0 }, {
            with(doc! { "arr": [2], "a": Bson::Undefined })
        }),
        (doc! {}, doc! { "o": { "$elemMatch": { "y": 9 } } }, doc! { "_id": 1 }),
        (doc! { "arr": 2 }, doc! { "arr.$": 1, "z": 1 }, doc! { "_id": 1, "arr": [2], "z": 9 }),
        (doc! { "o.y": 2 }, doc! { "o.x.$": 1 }, doc! { "_id": 1, "o": [{ "x": [3, 4] }] }),
        (doc! { "b.arr": 6 }, doc! { "b": { "arr.$": 1 } }, doc! { "_id": 1, "b": { "arr": [6] } }),
        (doc! { "arr": 2 }, doc! { "a.$": 1 }, doc! { "_id": 1, "a": 1 }),
    ] {
        assert_eq!(find(filter, spec.clone()).unwrap(), expected, "{spec}");
    }
}

#[test]
fn added_fields_replace_in_place_or_come_last() {
    for (spec, expected) in [
        (doc! { "n": 1, "a": 2, "m": 0 }, {
            let mut doc = with(doc! { "a": 2 });
            doc.extend(doc! { "n": 1, "m": 0 });
            doc
        }),
        (doc! { "b": { "q": "$a" } }, with(doc! { "b": { "c": 1, "arr": [5, 6, 7], "e": 2, "q": 1 } })),
        (doc! { "arr.q": 1, "b.c": "$$REMOVE" }, {
            with(doc! { "arr": [{ "q": 1 }, { "q": 1 }, { "q": 1 }], "b": { "arr": [5, 6, 7], "e": 2 } })
        }),
        (doc! {}, sample()),
    ] {
        let projection = Projection::parse_add_fields(&Doc::from(spec.clone()), &mut Names::new()).unwrap();
        assert_eq!(run(&projection, &Filter::all(), &sample()).unwrap(), expected, "{spec}");
    }
}

#[test]
fn many_fields_are_found_by_hash() {
    let spec: bson::Document = (0..40).map(|n| (format!("f{n}"), bson!(1))).chain([("z".into(), bson!(1))]).collect();
    check(spec, doc! { "_id": 1, "z": 9 });
}

#[test]
fn errors_are_the_servers() {
    for (spec, code, message) in [
        (doc! { "a": 1, "b": 0 }, 31254, "Cannot do exclusion on field b in inclusion projection"),
        (doc! { "b": 0, "a": 1 }, 31253, "Cannot do inclusion on field a in exclusion projection"),
        (doc! { "b.c": 1, "b": 1 }, 31250, "Path collision at b"),
        (doc! { "b.c": 1, "b.c.d": 1 }, 31249, "Path collision at b.c.d remaining portion c.d"),
        (doc! { "b": { "c": 1, "c.d": 1 } }, 31249, "Path collision at c.d remaining portion d"),
        (doc! { "a": {} }, 51270, "An empty sub-projection is not a valid value. Found empty object at path"),
        (doc! { "a": 0, "n": "$z" }, 31310, "Cannot use an expression n: \"$z\" in an exclusion projection"),
        (doc! { "a": { "$foo": 1 } }, 31325, "Unknown expression $foo"),
        (doc! { "arr.$": 0 }, 31395, "positional projection cannot be used with exclusion"),
        (doc! { "arr.$": 1, "o.$": 1 }, 31276, "Cannot specify more than one positional projection per query."),
        (doc! { "b.c": { "$elemMatch": {} } }, 31275, "Cannot use $elemMatch projection on a nested field."),
        (doc! { "": 1 }, 40352, "FieldPath cannot be constructed with empty string"),
        (doc! { "a": { "$meta": "sortKey" } }, 2, "cannot use sortKey $meta projection without a sort"),
        (doc! { "arr.$": 1 }, 51246, "positional operator '.$' couldn't find a matching element in the array"),
    ] {
        let error = find(doc! {}, spec.clone()).unwrap_err();
        assert_eq!((error.code().number(), error.message()), (code, message), "{spec}");
    }
}

#[test]
fn what_is_read_and_what_is_kept() {
    let parse = |spec: bson::Document| Projection::parse_stage(&Doc::from(spec), &mut Names::new()).unwrap();
    let reads = |spec| parse(spec).reads().map(|paths| paths.iter().map(Path::dotted).collect::<Vec<_>>().join(" "));
    assert_eq!(reads(doc! { "a": 1, "b.c": 1, "n": "$z" }).as_deref(), Some("_id a b.c z"));
    assert_eq!(reads(doc! { "_id": 0, "b.n": "$z" }).as_deref(), Some("b z"));
    assert_eq!(reads(doc! { "a": 0 }), None);
    assert_eq!(reads(doc! { "n": "$$ROOT" }), None);
    for (spec, path, kept) in [
        (doc! { "a": 1 }, "a.b", true),
        (doc! { "a": 1 }, "b", false),
        (doc! { "a.b": 1 }, "a.b", true),
        (doc! { "a.b": 1 }, "a", false),
        (doc! { "a.b": 1 }, "a.0.b", false),
        (doc! { "a.b": 0 }, "a.c", true),
        (doc! { "a.b": 0 }, "a.b.c", false),
        (doc! { "n": "$a", "a": 1 }, "n", false),
    ] {
        assert_eq!(parse(spec.clone()).keeps(&Path::new(path)), kept, "{spec} {path}");
    }
}
