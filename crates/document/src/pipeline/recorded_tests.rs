//! Pipelines of the compat scripts, run on the language alone, against the answers recorded from MongoDB.

use super::testing::{Memory, parse, run};
use crate::raw::Doc;
use bson::{Bson, Document};
use serde_json::Value as Json;

const FILES: &[&str] = &["group", "join", "sort", "stages", "unwind"];

fn read(kind: &str, name: &str) -> Json {
    let path = format!("{}/../cli/tests/compat/{kind}/aggregate/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn to_bson(json: &Json) -> Bson {
    Bson::try_from(json.clone()).unwrap()
}

/// The collections of a script or case; a plain array is the collection `c`.
fn setup(json: &Json) -> Memory {
    let mut memory = Memory::default();
    let mut add = |name: &str, docs: &Json| {
        let docs = docs.as_array().unwrap().iter().map(|doc| Doc::from(to_bson(doc).as_document().unwrap())).collect();
        memory.collections.insert(name.to_owned(), docs);
    };
    match json {
        Json::Array(_) => add("c", json),
        Json::Object(collections) => collections.iter().for_each(|(name, docs)| add(name, docs)),
        _ => {}
    }
    memory
}

/// Arrays in a fixed order, for results whose order is nobody's business.
fn without_order(value: Bson, inside: bool) -> Bson {
    match value {
        Bson::Array(items) => {
            let mut items: Vec<Bson> = items.into_iter().map(|item| without_order(item, inside)).collect();
            items.sort_by_key(|item| format!("{item:?}"));
            Bson::Array(items)
        }
        Bson::Document(doc) if inside => {
            Bson::Document(doc.into_iter().map(|(name, value)| (name, without_order(value, inside))).collect())
        }
        other => other,
    }
}

/// What is wrong with the answer to a case, if anything.
fn check(case: &Json, memory: &Memory, recorded: &Json) -> Result<(), String> {
    let reply = &recorded["replies"][0];
    let input: Vec<Document> =
        memory.collections.get("c").into_iter().flatten().map(|doc| Document::try_from(doc).unwrap()).collect();
    let answer = parse(to_bson(&case["pipeline"])).and_then(|pipeline| run(&pipeline, &input, memory));
    let flag = |name: &str| case.get(name).is_some_and(|flag| flag.as_bool().unwrap_or(true));
    match (answer, reply.get("code")) {
        (Err(error), Some(code)) => {
            let expected = (code.as_i64().unwrap_or_default(), reply["errmsg"].as_str().unwrap_or_default());
            let message = expected.1.trim_start_matches("PlanExecutor error during aggregation :: caused by :: ");
            let same =
                i64::from(error.code().number()) == expected.0 && (!flag("message") || error.message() == message);
            if same { Ok(()) } else { Err(format!("{error:?}, not {expected:?}")) }
        }
        (Ok(output), None) => {
            let output = output.iter().map(|doc| Bson::Document(Document::try_from(doc).unwrap())).collect();
            let expected = to_bson(&reply["cursor"]["firstBatch"]);
            let arrange = |batch: Bson| match flag("sets") || flag("unordered") {
                true => without_order(batch, flag("sets")),
                false => batch,
            };
            let (output, expected) = (arrange(Bson::Array(output)), arrange(expected));
            if format!("{output:?}") == format!("{expected:?}") {
                Ok(())
            } else {
                Err(format!("{output}\n  not {expected}"))
            }
        }
        (Ok(output), Some(code)) => Err(format!("{output:?}, not the error {code} {}", reply["errmsg"])),
        (Err(error), None) => Err(format!("{error:?}")),
    }
}

#[test]
fn answers_are_mongodbs() {
    let (mut failures, mut cases) = (Vec::new(), 0);
    for file in FILES {
        let (script, recorded) = (read("scripts", file), read("recorded", file));
        for case in script["cases"].as_array().unwrap().iter().filter(|case| case.get("pipeline").is_some()) {
            let name = case["name"].as_str().unwrap();
            let memory = setup(case.get("setup").unwrap_or(&script["setup"]));
            cases += 1;
            if let Err(difference) = check(case, &memory, &recorded[name]) {
                failures.push(format!("{file}: {name}: {}\n  {difference}", case["pipeline"]));
            }
        }
    }
    assert!(cases > 200, "only {cases} cases");
    assert!(failures.is_empty(), "{} of {cases} differ\n{}", failures.len(), failures.join("\n"));
}
