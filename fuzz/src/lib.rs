//! What is fuzzed, as plain functions: the libFuzzer binaries call them, and `cargo test` replays the corpora through them.
//!
//! A target takes any bytes. It must return: a panic, an endless loop or an assertion here is a finding.

use document::filter::{Details, Filter};
use document::pipeline::expr::{self, Names, Scope};
use document::pipeline::{Collections, Pipeline, Rows, Run, from_documents};
use document::project::Projection;
use document::raw::{Doc, DocWriter, validate};
use document::update::Update;
use document::value::{key, order};
use document::{Env, Value};
use patterns::declare;
use std::sync::Arc;

pub struct Target {
    pub name: &'static str,
    pub help: &'static str,
    pub run: fn(&[u8]),
}

/// All targets, sorted by name; each has a folder in `corpus/`.
pub const TARGETS: &[Target] = &[
    Target { name: "bson", help: "Validate bytes; what passes is read and written back unchanged.", run: bson },
    Target {
        name: "declaration",
        help: "Check a declaration, as YAML and as BSON; its rules come back from the catalog.",
        run: declaration,
    },
    Target { name: "expression", help: "Parse `e` as an expression and evaluate it on `doc`.", run: expression },
    Target { name: "filter", help: "Parse `q` as a filter and match `doc`.", run: filter },
    Target { name: "key", help: "Encode all pairs of top-level values; byte order equals value order.", run: keys },
    Target { name: "message", help: "Decode a wire message: header, sections, checksum.", run: message },
    Target { name: "pipeline", help: "Parse `p` as a pipeline and run it on `doc`.", run: pipeline },
    Target { name: "projection", help: "Parse `f` as a projection and apply it to `doc`.", run: projection },
    Target { name: "update", help: "Parse `u` as an update and apply it to `doc`.", run: update },
];

/// Inputs are documents: anything else is turned away as the server would.
fn input(bytes: &[u8]) -> Option<Doc<'_>> {
    validate(bytes).is_ok().then(|| Doc::trusted(bytes))
}

fn document<'a>(input: &Doc<'a>, name: &str) -> Doc<'a> {
    match input.get(name) {
        Some(Value::Document(doc)) => doc,
        _ => Doc::empty(),
    }
}

/// A result must be valid BSON: it would be stored or sent.
fn check_result(result: &Doc<'_>) {
    if let Err(error) = validate(result.as_bytes()) {
        assert!(error.message().contains("nesting"), "not valid BSON: {error}");
    }
}

fn bson(bytes: &[u8]) {
    let Some(doc) = input(bytes) else { return };
    let mut writer = DocWriter::new();
    for (name, value) in doc.iter() {
        writer.append(name.as_str(), &value);
    }
    assert_eq!(writer.finish().as_bytes(), bytes, "not written back as read");
}

fn message(bytes: &[u8]) {
    if let Some(Ok(header)) = wire::Header::peek(bytes) {
        let _ = wire::message::parse(&header, bytes);
    }
}

fn declaration(bytes: &[u8]) {
    let checked = match (input(bytes), std::str::from_utf8(bytes)) {
        (Some(doc), _) => declare::from_bson(&doc, None),
        (None, Ok(text)) => {
            let _ = declare::to_bson(text);
            declare::from_yaml("pleach.yaml", text)
        }
        _ => return,
    };
    let errors = checked.severity() == Some(declare::Severity::Error);
    assert_eq!(checked.declaration.is_none(), errors, "rules exactly if there is no error");
    if let Ok(text) = std::str::from_utf8(bytes) {
        for spot in checked.findings.iter().filter_map(|finding| finding.spot) {
            assert!(text.get(spot.start..spot.end).is_some(), "a place outside the file: {spot:?}");
        }
    }
    for rule in checked.declaration.iter().flat_map(|declaration| &declaration.rules) {
        let again = declare::from_catalog(&rule.declaration).map(|rule| rule.declaration);
        assert_eq!(again.as_ref().map(|it| it.as_bytes()).ok(), Some(rule.declaration.as_bytes()), "{rule:?}");
    }
}

fn filter(bytes: &[u8]) {
    let Some(input) = input(bytes) else { return };
    if let Ok(filter) = Filter::parse(&document(&input, "q"), &mut Names::new()) {
        let _ = filter.matches(&document(&input, "doc"), &Env::fixed());
    }
}

fn projection(bytes: &[u8]) {
    let Some(input) = input(bytes) else { return };
    let spec = document(&input, "f");
    for parsed in [
        Projection::parse_find(&spec, &Filter::all(), &mut Names::new()),
        Projection::parse_stage(&spec, &mut Names::new()),
    ]
    .into_iter()
    .flatten()
    {
        if let Ok(result) = parsed.apply(&document(&input, "doc"), &Details::default(), &Env::fixed()) {
            check_result(&result);
        }
    }
}

fn update(bytes: &[u8]) {
    let Some(input) = input(bytes) else { return };
    let filters: Vec<Doc<'_>> = match input.get("arrayFilters") {
        Some(Value::Array(array)) => array
            .iter()
            .filter_map(|item| match item {
                Value::Document(doc) => Some(doc),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let Some(spec) = input.get("u") else { return };
    if let Ok(update) = Update::parse(&spec, &filters, &mut Names::new()) {
        let details = Details { array_index: Some(0), ..Details::default() };
        if let Ok(document::update::Applied::Changed(result)) =
            update.apply(&document(&input, "doc"), &details, &Env::fixed())
        {
            check_result(&result);
        }
        if let Ok(result) = update.upsert(&Filter::all(), &Env::fixed()) {
            check_result(&result);
        }
    }
}

fn expression(bytes: &[u8]) {
    let Some(input) = input(bytes) else { return };
    let Some(spec) = input.get("e") else { return };
    if let Ok(parsed) = expr::parse(&spec, &mut Names::new()) {
        let env = Env::fixed();
        let doc = document(&input, "doc");
        if let Ok(value) = parsed.eval(&mut Scope::new(doc.borrow(), &env)) {
            let mut writer = DocWriter::new();
            writer.append("value", &value);
            check_result(&writer.finish());
        }
    }
}

fn pipeline(bytes: &[u8]) {
    let Some(input) = input(bytes) else { return };
    let Some(Value::Array(stages)) = input.get("p") else { return };
    let Ok(parsed) = Pipeline::parse(&stages, &mut Names::new()) else { return };
    let everywhere = Everywhere(document(&input, "doc").into_owned());
    let Ok(mut rows) = everywhere.open("", &parsed, &Env::fixed()) else { return };
    for _ in 0..64 {
        match rows.next() {
            Ok(Some(result)) => check_result(&result),
            _ => return,
        }
    }
}

/// Every collection holds this one document.
struct Everywhere(Doc<'static>);

impl Collections for Everywhere {
    fn open(&self, _: &str, pipeline: &Pipeline, env: &Env) -> document::Result<Rows> {
        let run = Run { env: env.clone(), collections: Arc::new(Everywhere(self.0.clone())) };
        pipeline.start(from_documents(vec![self.0.clone()]), &run)
    }
}

fn keys(bytes: &[u8]) {
    let Some(input) = input(bytes) else { return };
    let values: Vec<Value<'_>> = input.iter().map(|(_, value)| value).take(8).collect();
    let encode = |value: &Value<'_>| {
        let mut out = Vec::new();
        key::encode(value, &mut out);
        out
    };
    for left in &values {
        for right in &values {
            assert_eq!(encode(left).cmp(&encode(right)), order::compare(left, right), "{left:?} {right:?}");
        }
    }
}
