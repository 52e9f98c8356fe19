//! Arbitrary queries and projections on arbitrary documents: refused or run, never a panic; and what a filter says of
//! itself, read back, is the same filter.

use super::*;
use crate::project::Projection;
use bson::{Bson, doc};
use proptest::prelude::*;

/// Names that mean something somewhere, so that deep parts of the parsers are reached.
const NAMES: &[&str] = &[
    "a",
    "b",
    "a.b",
    "a.0",
    "a.0.b",
    "0",
    "",
    "a.",
    "_id",
    "arr.$",
    "$",
    "$foo",
    "$ref",
    "$id",
    "$options",
    "$meta",
    "$slice",
    "$add",
    "$literal",
    "properties",
    "items",
    "required",
    "enum",
    "type",
    "bsonType",
    "minimum",
    "pattern",
    "not",
    "anyOf",
    "dependencies",
    "additionalItems",
    "additionalProperties",
    "patternProperties",
    "multipleOf",
];

const TEXTS: &[&str] = &["a", "x", "^a", "(", "a|b", "$a", "$$ROOT", "$a.b", "int", "number", "im", "^a.*b+$", "é"];

fn name() -> impl Strategy<Value = String> {
    let operators = FILTERS.iter().map(|def| def.name.to_owned());
    let names: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).chain(operators).collect();
    prop::sample::select(names)
}

fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        prop::sample::select(TEXTS).prop_map(|text| Bson::String(text.to_owned())),
        prop::sample::select(vec![0.0, 1.0, -1.5, 1e300, f64::NAN, f64::INFINITY]).prop_map(Bson::Double),
        prop::sample::select(vec![0, 1, -1, 2, 5, i32::MAX, i32::MIN]).prop_map(Bson::Int32),
        prop::sample::select(vec![0, i64::MAX, i64::MIN, 1 << 40]).prop_map(Bson::Int64),
        prop::sample::select(vec!["0", "1.5", "NaN", "1E+40", "-1E-30"])
            .prop_map(|text| Bson::Decimal128(text.parse().unwrap())),
        any::<bool>().prop_map(Bson::Boolean),
        prop::sample::select(vec![Bson::Null, Bson::Undefined, Bson::MinKey, Bson::MaxKey]),
        prop::sample::select(TEXTS).prop_map(|text| Bson::RegularExpression(bson::Regex {
            pattern: text.try_into().unwrap(),
            options: "i".try_into().unwrap(),
        })),
        prop::collection::vec(any::<u8>(), 0..12)
            .prop_map(|bytes| Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes })),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

fn document() -> impl Strategy<Value = Doc<'static>> {
    prop::collection::vec((name(), value()), 0..4)
        .prop_map(|fields| Doc::from(fields.into_iter().collect::<bson::Document>()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn filters_never_panic(query in document(), doc in document()) {
        if let Ok(filter) = Filter::parse(&query, &mut Names::new()) {
            let mut details = Details::default();
            let outcome = filter.matches_with(&doc, &Env::fixed(), &mut details);
            if let Ok(false) = outcome {
                let _ = failure_details(&filter, &doc, &Env::fixed());
            }
            // What it writes of itself must mean the same; expressions cannot be written.
            if let Ok(matched) = outcome && !format!("{:?}", filter.root).contains("Expr(") {
                let again = Filter::parse(&filter.root.to_query(), &mut Names::new());
                let again = again.expect("a filter's own query is valid");
                prop_assert_eq!(again.matches(&doc, &Env::fixed()).unwrap(), matched, "{:?}", filter.root.to_query());
            }
        }
    }

    #[test]
    fn schemas_never_panic(schema in document(), doc in document()) {
        let query = Doc::from(doc! { "$jsonSchema": bson::Document::try_from(&schema).unwrap() });
        if let Ok(filter) = Filter::parse(&query, &mut Names::new())
            && !filter.matches(&doc, &Env::fixed()).unwrap_or(true)
        {
            let details = failure_details(&filter, &doc, &Env::fixed());
            prop_assert!(crate::raw::validate(details.as_bytes()).is_ok());
        }
    }

    #[test]
    fn projections_never_panic(spec in document(), doc in document(), index in 0usize..3) {
        let details = Details { array_index: Some(index), ..Details::default() };
        let parsed = [
            Projection::parse_find(&spec, &Filter::all(), &mut Names::new()),
            Projection::parse_stage(&spec, &mut Names::new()),
            Projection::parse_add_fields(&spec, &mut Names::new()),
        ];
        for projection in parsed.into_iter().flatten() {
            let _ = projection.reads();
            if let Ok(output) = projection.apply(&doc, &details, &Env::fixed()) {
                prop_assert!(crate::raw::validate(output.as_bytes()).is_ok());
            }
        }
    }
}
