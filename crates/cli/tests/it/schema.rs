//! `docs/pleach.schema.json`, the declaration's schema for editors, is written from the patterns' definitions: this test fails
//! when it is out of date, and writes it with `PLEACH_GENERATE=1`. It must say what `check` says, as far as a schema can.

use document::filter::Filter;
use document::pipeline::expr::Names;
use document::{Doc, Env};
use patterns::declare::{self, Severity};
use patterns::kinds::{Definition, KeyDef, KeySet, PATTERNS, Per, Status, ValueType};
use serde_json::{Map, Value, json};
use std::path::Path;

/// A dotted path, without `$` and empty parts; `_pleach` is Pleach's own.
const PATH: &str = r"^(?!_pleach(\.|$))[^$.][^.]*(\.[^$.][^.]*)*$";
/// A path that a rule may keep: not `_id`, no position in an array.
const KEPT: &str = r"^(?!_id(\.|$))(?!_pleach(\.|$))(?![0-9]+(\.|$))[^$.][^.]*(\.(?![0-9]+(\.|$))[^$.][^.]*)*$";
const NAME: &str = r"^[^$.][^.]*$";
/// A name that a rule may give a meaning.
const FREE_NAME: &str = r"^(?!(_id|_pleach)$)[^$.][^.]*$";
const COLLECTION: &str = r"^(?!system\.)(?!pleach(\.|$))[^$.]+(\.[^$.]+)*$";
const DATABASE: &str = r#"^(?!(admin|config|local)$)[^/\\. "$*<>:|?]{1,63}$"#;
const DURATION: &str = "^0*[1-9][0-9]*(ms|s|m|h)$";

fn schema() -> Value {
    let patterns: Map<String, Value> = PATTERNS
        .iter()
        .map(|pattern| {
            let about = match &pattern.status {
                Status::There(definition) if definition.per == Per::Field => fields(pattern.help, definition),
                Status::There(definition) => {
                    let mut block = block(definition);
                    block["description"] = pattern.help.into();
                    block
                }
                Status::Within { pattern: other, written } => {
                    json!({ "description": format!("{} Write `{written}` in a `{other}`.", pattern.help), "not": {} })
                }
                Status::NotYet => {
                    json!({ "description": format!("{} Not there yet.", pattern.help), "not": {} })
                }
            };
            (pattern.name.to_owned(), about)
        })
        .collect();
    let collection =
        json!({ "type": "object", "minProperties": 1, "additionalProperties": false, "properties": patterns });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Pleach declaration",
        "description": "Which fields of which collections Pleach keeps true.",
        "type": "object",
        "required": ["database", "collections"],
        "additionalProperties": false,
        "properties": {
            "database": { "description": "The database that the rules are for.", "type": "string", "pattern": DATABASE },
            "collections": {
                "description": "The collections that rules write to, each with its patterns.",
                "type": "object",
                "patternProperties": { COLLECTION: collection },
                "additionalProperties": false,
            },
        },
    })
}

fn block(definition: &Definition) -> Value {
    let mut block = record(definition.keys_there());
    match definition.forms {
        [only] => block["required"] = json!(only.required),
        forms => block["oneOf"] = forms.iter().map(|it| form(it, definition)).collect(),
    }
    block
}

fn record<'k>(keys: impl Iterator<Item = &'k KeyDef>) -> Value {
    let keys: Map<String, Value> = keys
        .map(|key| {
            let mut shape = shape(key.shape);
            shape["description"] = key.help.into();
            (key.name.to_owned(), shape)
        })
        .collect();
    json!({ "type": "object", "additionalProperties": false, "properties": keys })
}

/// A pattern with one block per field that it keeps.
fn fields(help: &str, definition: &Definition) -> Value {
    json!({
        "description": help,
        "type": "object",
        "minProperties": 1,
        "patternProperties": { KEPT: block(definition) },
        "additionalProperties": false,
    })
}

fn form(form: &KeySet, definition: &Definition) -> Value {
    let allowed = |name: &str| form.required.contains(&name) || form.optional.contains(&name);
    let forbidden: Map<String, Value> = definition
        .keys_there()
        .filter(|key| !allowed(key.name))
        .map(|key| (key.name.to_owned(), json!({ "not": {} })))
        .collect();
    json!({ "required": form.required, "properties": forbidden })
}

fn shape(of: ValueType) -> Value {
    match of {
        ValueType::Collection => json!({ "type": "string", "pattern": COLLECTION }),
        ValueType::Path => json!({ "type": "string", "pattern": PATH }),
        ValueType::Fields => json!({
            "anyOf": [
                { "type": "array", "minItems": 1, "uniqueItems": true, "items": { "type": "string", "pattern": NAME } },
                {
                    "type": "object",
                    "minProperties": 1,
                    "patternProperties": { NAME: { "type": "string", "pattern": PATH } },
                    "additionalProperties": false,
                },
            ],
        }),
        ValueType::Name => json!({ "type": "string", "pattern": FREE_NAME }),
        ValueType::Amount { most } => json!({ "type": "number", "multipleOf": 1, "minimum": 0, "maximum": most }),
        ValueType::Number { most } => json!({ "type": "number", "multipleOf": 1, "minimum": 1, "maximum": most }),
        ValueType::Regex => json!({ "type": "string", "minLength": 1, "maxLength": 500 }),
        ValueType::List { of, least } => {
            json!({ "type": "array", "minItems": least, "uniqueItems": true, "items": shape(*of) })
        }
        ValueType::Map(of) => json!({
            "type": "object",
            "minProperties": 1,
            "patternProperties": { FREE_NAME: shape(*of) },
            "additionalProperties": false,
        }),
        ValueType::Order => json!({
            "type": "object",
            "minProperties": 1,
            "maxProperties": 30,
            "patternProperties": { PATH: { "enum": [1, -1] } },
            "additionalProperties": false,
        }),
        ValueType::Pair(words) => {
            let words: Map<String, Value> =
                words.iter().map(|word| ((*word).to_owned(), shape(ValueType::Name))).collect();
            json!({
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "properties": words,
                "additionalProperties": false,
            })
        }
        ValueType::Record(keys) => {
            let mut record = record(keys.iter());
            record["required"] = keys.iter().map(|key| key.name).collect();
            record
        }
        ValueType::Part { keys, required } => {
            let mut part = record(keys.iter());
            if !required.is_empty() {
                part["required"] = json!(required);
            }
            part
        }
        ValueType::Word => json!({ "type": "string", "minLength": 1 }),
        ValueType::Words(of) => json!({ "type": "object", "minProperties": 1, "additionalProperties": shape(*of) }),
        ValueType::Weights => json!({
            "type": "object",
            "minProperties": 1,
            "patternProperties": { PATH: shape(ValueType::Number { most: 99_999 }) },
            "additionalProperties": false,
        }),
        ValueType::Either(shapes) => json!({ "anyOf": shapes.iter().map(|it| shape(*it)).collect::<Vec<_>>() }),
        ValueType::Choice(words) => json!({ "enum": words }),
        ValueType::Flag => json!({ "type": "boolean" }),
        ValueType::Duration => json!({ "type": "string", "pattern": DURATION }),
        ValueType::Filter | ValueType::Operators => json!({ "type": "object", "minProperties": 1 }),
        ValueType::Expression => json!({ "not": { "type": "null" } }),
        ValueType::NotYet => json!({ "not": {} }),
    }
}

#[test]
fn the_schema_is_what_the_definitions_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pleach.schema.json");
    let expected = format!("{:#}\n", schema());
    if std::env::var_os("PLEACH_GENERATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == expected, "docs/pleach.schema.json is out of date; write it anew with `just gen`");
}

/// What a schema cannot see: it looks at one value at a time, and knows no names but those of keys.
const ONLY_CHECK_SEES: &[&str] = &[
    "`match` beside `create`",
    "a cycle:",
    "already, and so the same",
    "begins with a zero",
    "beside `lift`",
    "beside an expression",
    "between 1ms and 24h",
    "both the time and a series",
    "called",
    "can take for ever",
    "cannot be added up",
    "does not go together",
    "is a field of the bucket itself",
    "is a field of the readings",
    "has no part called",
    "is kept by the rule",
    "is no expression",
    "is no filter",
    "is no regular expression",
    "is not a key:",
    "is not finer",
    "is the collection itself",
    "is the discriminator:",
    "is the same for the whole bucket",
    "is too fine",
    "items would become documents",
    "larger than 64 bits",
    "lie one inside the other",
    "lies in the field",
    "lifts `",
    "looks its value up among",
    "makes documents without",
    "names a position",
    "needs exactly one series",
    "never an array",
    "no index can serve",
    "no two",
    "not a value for",
    "overlaps",
    "reads the whole document",
    "reads `",
    "stands in the elements",
    "that is lifted",
    "the same key",
    "there twice",
    "two rules keep",
    "uses $",
    "uses the time",
    "so `lift` cannot write",
    "without `slot`: a",
    "would be its own child",
    "would make documents of",
    "would refer to itself",
];

#[test]
fn the_schema_agrees_with_check() {
    let mut query = schema();
    query.as_object_mut().unwrap().remove("$schema");
    let query = Doc::from(bson::doc! { "$jsonSchema": bson::Bson::try_from(query).unwrap() });
    let schema = Filter::parse(&query, &mut Names::new()).unwrap();
    let cases = include_str!("../../../patterns/src/declare/findings.txt");
    let (mut accepted, mut refused) = (0, 0);
    for case in cases.split("====\n").skip(1) {
        let yaml = case.split("----\n").next().unwrap();
        let Some(doc) = declare::to_bson(yaml) else { continue };
        let accepts = schema.matches(&doc, &Env::fixed()).unwrap();
        let findings = declare::from_yaml("pleach.yaml", yaml).findings;
        let mut errors = findings.iter().filter(|finding| finding.severity == Severity::Error).peekable();
        let visible = errors.peek().is_some()
            && !errors.all(|finding| ONLY_CHECK_SEES.iter().any(|part| finding.message.contains(part)));
        let valid = !findings.iter().any(|finding| finding.severity == Severity::Error);
        if valid || visible {
            assert_eq!(accepts, valid, "{yaml}{findings:#?}");
            *(if valid { &mut accepted } else { &mut refused }) += 1;
        }
    }
    assert!(accepted >= 5 && refused >= 30, "the cases show too little: {accepted} accepted, {refused} refused");
}
