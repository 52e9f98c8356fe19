//! Updates against a real server's answers, recorded in `tests/data/updates.json`; and what no recording can show.

use super::*;
use crate::code::Code;
use bson::{Bson, doc};
use proptest::prelude::*;

/// Parses, finds the document if there is one, applies. The error is the server's: code and message.
fn run(row: &bson::Document) -> std::result::Result<(Option<bool>, bson::Document), Error> {
    let spec = Value::from(row.get("update").unwrap().clone());
    let filters: Vec<Doc<'static>> = match row.get("arrayFilters") {
        Some(Bson::Array(filters)) => filters.iter().filter_map(Bson::as_document).map(Doc::from).collect(),
        _ => Vec::new(),
    };
    let env = Env::fixed();
    let filter = Filter::parse(&Doc::from(row.get_document("filter").unwrap()), &mut Names::new())?;
    let update = Update::parse(&spec, &filters, &mut Names::new())?;
    let back = |doc: &Doc<'_>| {
        crate::raw::validate(doc.as_bytes()).unwrap();
        bson::Document::try_from(doc).unwrap()
    };
    match row.get("document") {
        Some(Bson::Document(document)) => {
            let document = Doc::from(document);
            let mut details = Details::default();
            assert!(filter.matches_with(&document, &env, &mut details)?, "the filter must match: {row}");
            match update.apply(&document, &details, &env)? {
                Applied::Unchanged => Ok((Some(false), back(&document))),
                Applied::Changed(changed) => Ok((Some(true), back(&changed))),
            }
        }
        _ => Ok((None, back(&update.upsert(&filter, &env)?))),
    }
}

/// Times and generated ids differ between any two runs.
fn normal(value: &Bson) -> Bson {
    match value {
        Bson::Document(doc) => Bson::Document(doc.iter().map(|(name, value)| (name.clone(), normal(value))).collect()),
        Bson::Array(items) => Bson::Array(items.iter().map(normal).collect()),
        Bson::DateTime(_) => Bson::DateTime(bson::DateTime::from_millis(0)),
        Bson::Timestamp(bson::Timestamp { time: 1.., .. }) => {
            Bson::Timestamp(bson::Timestamp { time: 1, increment: 0 })
        }
        Bson::ObjectId(_) => Bson::ObjectId(bson::oid::ObjectId::from_bytes([0; 12])),
        other => other.clone(),
    }
}

#[test]
fn updates_answer_as_the_real_server_did() {
    let rows: Vec<bson::Document> =
        serde_json::from_str(include_str!("../../tests/data/updates.json")).expect("recorded file");
    let mut wrong = Vec::new();
    for row in &rows {
        let expected = row.get_document("result").unwrap();
        let ours = match run(row) {
            Ok((modified, document)) => {
                let mut result = doc! {};
                if let Some(modified) = modified {
                    result.insert("modified", modified);
                }
                result.insert("document", document);
                result
            }
            Err(error) => doc! { "code": error.code().number(), "message": error.message() },
        };
        let (ours, expected) = (normal(&Bson::Document(ours)), normal(&Bson::Document(expected.clone())));
        // Not `==`, for which NaN differs from itself.
        if format!("{ours:?}") != format!("{expected:?}") {
            wrong.push(format!("{row}\n  ours {ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() > 500);
}

#[test]
fn the_registry_is_sorted_and_documented() {
    assert!(UPDATE_OPERATORS.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(UPDATE_OPERATORS.iter().all(|def| def.name.starts_with('$') && def.help.ends_with('.')));
}

fn applied(spec: bson::Document, document: bson::Document) -> Result<Applied> {
    let update = Update::parse(&Value::from(Bson::Document(spec)), &[], &mut Names::new())?;
    update.apply(&Doc::from(document), &Details::default(), &Env::fixed())
}

#[test]
fn sizes_depths_and_padding_are_limited() {
    let code = |spec, document| applied(spec, document).err().map(|error| error.code().number());
    let text = |megabytes: usize| "x".repeat(megabytes << 20);
    assert_eq!(code(doc! { "$set": { "b": text(8) } }, doc! { "_id": 1, "a": text(9) }), Some(10334));
    let just_over = "x".repeat((8 << 20) - 20);
    assert_eq!(code(doc! { "$set": { "b": just_over } }, doc! { "_id": 1, "a": text(8) }), Some(17419));
    let path = |length: usize| vec!["a"; length].join(".");
    assert_eq!(code(doc! { "$set": { path(180): 1 } }, doc! { "_id": 1 }), None);
    assert_eq!(code(doc! { "$set": { path(181): 1 } }, doc! { "_id": 1 }), Some(15));
    let nested = |depth: usize| (0..depth).fold(doc! {}, |inner, _| doc! { "a": inner });
    assert_eq!(code(doc! { "$set": { "x": nested(178) } }, doc! { "_id": 1 }), None);
    assert_eq!(code(doc! { "$set": { "x": nested(179) } }, doc! { "_id": 1 }), Some(15));
    assert_eq!(code(doc! { "$set": { "a.1500001": 1 } }, doc! { "_id": 1, "a": [] }), Some(34));
    assert_eq!(code(doc! { "$unset": { "a.1500001": 1 } }, doc! { "_id": 1, "a": [] }), None);
}

#[test]
fn a_conflict_comes_before_an_unknown_array_filter() {
    let code = |spec| applied(spec, doc! { "_id": 1 }).unwrap_err().code().number();
    assert_eq!(code(doc! { "$addToSet": { "t": 1 }, "$inc": { "t.$[x]": 1 } }), 40);
    assert_eq!(code(doc! { "$rename": { "a": "c.b" }, "$inc": { "a.$[x]": 1 } }), 40);
    assert_eq!(code(doc! { "$inc": { "a.$[x]": 1 } }), 2);
}

#[test]
fn constants_of_a_pipeline_are_evaluated_only_when_reached() {
    let stages = |expr: Bson| Value::from(Bson::Array(vec![Bson::Document(doc! { "$set": { "a": expr } })]));
    let apply = |expr| {
        let update = Update::parse(&stages(expr), &[], &mut Names::new()).unwrap();
        update.apply(&Doc::from(doc! { "_id": 1 }), &Details::default(), &Env::fixed())
    };
    let impossible = doc! { "$divide": [1, 0] };
    assert_eq!(apply(impossible.clone().into()).unwrap_err().message(), "can't $divide by zero");
    assert!(apply(doc! { "$cond": ["$b", impossible, 5] }.into()).is_ok());
}

/// The real server ends here: two spellings of one index.
#[test]
fn one_element_named_twice_is_a_conflict() {
    let document = doc! { "_id": 1, "a": [1, 2] };
    let error = applied(doc! { "$set": { "a.1": 5, "a.01": 3 } }, document).unwrap_err();
    assert_eq!(error.code(), Code::ConflictingUpdateOperators);
}

#[test]
fn a_number_is_replaced_in_place() {
    let before = doc! { "_id": 1, "big": "x".repeat(1000), "n": 5, "after": [1, { "a": 1 }] };
    let Applied::Changed(after) = applied(doc! { "$inc": { "n": 1 } }, before.clone()).unwrap() else { panic!() };
    let before = Doc::from(before);
    assert_eq!(after.as_bytes().len(), before.as_bytes().len());
    let different = after.as_bytes().iter().zip(before.as_bytes()).filter(|(a, b)| a != b).count();
    assert_eq!(different, 1);
}

#[test]
fn the_positional_element_is_that_of_the_last_test_in_canonical_order() {
    let document = doc! { "_id": 1, "a": [1, 5, 9], "b": [9, 1, 5], "c": [{ "x": 3 }, { "x": 7 }] };
    for (filter, index) in [
        (doc! { "a": { "$gte": 5 }, "b": 5 }, 1),
        (doc! { "b": 5, "a": 5 }, 2),
        (doc! { "a": { "$in": [5] }, "b": 5 }, 2),
        (doc! { "a": { "$in": [5, 9] }, "b": 5 }, 1),
        (doc! { "b": { "$exists": true }, "a": 5 }, 0),
        (doc! { "a": { "$elemMatch": { "$gt": 4 } }, "b": 5 }, 2),
        (doc! { "c.x": 7, "b": { "$gt": 4, "$lt": 6 } }, 0),
        (doc! { "b": { "$lt": 6, "$gt": 6 } }, 0),
        (doc! { "a": { "$all": [9, 5] } }, 1),
    ] {
        let row = doc! { "document": document.clone(), "filter": filter.clone(), "update": { "$set": { "r.$": 0 } } };
        let after = run(&row).unwrap().1;
        assert_eq!(after.get_document("r").unwrap(), &doc! { index.to_string(): 0 }, "{filter}");
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("0"), Just("1"), Just("$"), Just("$[]"), Just("$[e]"), Just(""), Just("_id")]
        .prop_map(str::to_owned)
}

fn any_value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_map(Bson::Double),
        "[a-c]{0,3}".prop_map(Bson::String),
        Just(Bson::Null),
        any::<bool>().prop_map(Bson::Boolean),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let clause =
            prop_oneof![any_name(), Just("$each".to_owned()), Just("$slice".to_owned()), Just("$sort".to_owned())];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            proptest::collection::vec((clause, inner), 0..4)
                .prop_map(|pairs| Bson::Document(pairs.into_iter().collect())),
        ]
    })
}

fn any_spec() -> impl Strategy<Value = bson::Document> {
    let operator = (0..UPDATE_OPERATORS.len()).prop_map(|at| UPDATE_OPERATORS[at].name.to_owned());
    let path = proptest::collection::vec(any_name(), 1..4).prop_map(|parts| parts.join("."));
    let fields = proptest::collection::vec((path, any_value()), 0..3)
        .prop_map(|pairs| Bson::Document(pairs.into_iter().collect()));
    proptest::collection::vec((operator, fields), 1..4).prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    /// Whatever the update and the document: a valid document, the same `_id`, or an error. Never a panic.
    #[test]
    fn any_update_gives_a_valid_document_or_an_error(
        spec in any_spec(),
        fields in proptest::collection::vec((any_name(), any_value()), 0..4),
        position in proptest::option::of(0_usize..3),
    ) {
        let mut document = doc! { "_id": 1 };
        document.extend(fields.into_iter().filter(|(name, _)| name != "_id"));
        let document = Doc::from(document);
        let filters = [Doc::from(doc! { "e": { "$gte": 0 } })];
        let spec = Value::from(Bson::Document(spec));
        let update = Update::parse(&spec, &filters, &mut Names::new())
            .or_else(|_| Update::parse(&spec, &[], &mut Names::new()));
        if let Ok(update) = update {
            let details = Details { array_index: position, ..Details::default() };
            if let Ok(Applied::Changed(after)) = update.apply(&document, &details, &Env::fixed()) {
                prop_assert!(crate::raw::validate(after.as_bytes()).is_ok());
                prop_assert!(after.get("_id") == Some(Value::Int32(1)));
            }
            if let Ok(new) = update.upsert(&Filter::all(), &Env::fixed()) {
                prop_assert!(crate::raw::validate(new.as_bytes()).is_ok());
            }
        }
    }
}
