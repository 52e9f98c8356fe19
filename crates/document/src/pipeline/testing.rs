//! Running pipelines in tests: collections are vectors.

use super::{Collections, Names, Pipeline, Rows, Run, from_documents, parse as parser};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Array, Doc};
use crate::value::{Value, show};
use bson::Bson;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Collections in memory, with every pipeline that was asked of them.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) collections: HashMap<String, Vec<Doc<'static>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

impl Collections for Memory {
    fn open(&self, collection: &str, pipeline: &Pipeline, env: &Env) -> Result<Rows> {
        let filter = pipeline.split().leading.filter.source;
        self.asked.lock().unwrap().push(format!("{collection} {}", show::document(&filter)));
        let documents = self.collections.get(collection).cloned().unwrap_or_default();
        let run = Run { env: env.clone(), collections: Arc::new(self.clone()) };
        pipeline.start(from_documents(documents), &run)
    }
}

pub(crate) fn documents(values: Bson) -> Vec<bson::Document> {
    values.as_array().unwrap().iter().map(|value| value.as_document().unwrap().clone()).collect()
}

fn array(stages: Bson) -> Array<'static> {
    match Value::from(stages) {
        Value::Array(array) => array,
        other => panic!("no array: {other:?}"),
    }
}

pub(crate) fn parse(stages: Bson) -> Result<Pipeline> {
    Pipeline::parse(&array(stages), &mut Names::new())
}

pub(crate) fn parse_unoptimised(stages: Bson) -> Result<Pipeline> {
    let mut names = Names::new();
    parser::pipeline(&array(stages), &mut parser::Parser::new(&mut names))
}

pub(crate) fn run(pipeline: &Pipeline, input: &[bson::Document], others: &Memory) -> Result<Vec<Doc<'static>>> {
    let run = Run { env: Env::fixed(), collections: Arc::new(others.clone()) };
    let mut rows = pipeline.start(from_documents(input.iter().map(Doc::from).collect()), &run)?;
    let mut output = Vec::new();
    while let Some(doc) = rows.next()? {
        rows.pause();
        output.push(doc);
    }
    assert!(rows.next()?.is_none(), "an ended stream stays ended");
    Ok(output)
}

/// Runs `stages` over `input`, optimised and as written.
#[track_caller]
pub(crate) fn check(input: Vec<bson::Document>, stages: Bson, expected: Bson) {
    check_with(&Memory::default(), input, stages, expected);
}

#[track_caller]
pub(crate) fn check_with(others: &Memory, input: Vec<bson::Document>, stages: Bson, expected: Bson) {
    let expected: Vec<Doc<'static>> = documents(expected).iter().map(Doc::from).collect();
    for pipeline in [parse(stages.clone()).unwrap(), parse_unoptimised(stages.clone()).unwrap()] {
        assert_eq!(run(&pipeline, &input, others).unwrap(), expected, "{stages}");
    }
}

/// The error of parsing `stages`, or of running them over one document `{ _id: 1, a: 1 }`.
#[track_caller]
pub(crate) fn check_error(stages: Bson, code: i32, message: &str) {
    let input = [bson::doc! { "_id": 1, "a": 1 }];
    let error: Error = match parse(stages.clone()).and_then(|pipeline| run(&pipeline, &input, &Memory::default())) {
        Err(error) => error,
        Ok(output) => panic!("{stages} gave {output:?}"),
    };
    assert_eq!((error.code().number(), error.message()), (code, message), "{stages}");
}
