//! Updates by an aggregation pipeline: the stages that turn one document into one document.

use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::pipeline::expr::Names;
use crate::pipeline::{Collections, Pipeline, Rows, Run, Stream};
use crate::raw::{Array, Doc};
use crate::value::Value;
use std::sync::Arc;

/// The only stages an update may use.
const ALLOWED: &[&str] = &["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];

pub(super) fn parse(stages: &Array<'_>, names: &mut Names) -> Result<Pipeline> {
    let pipeline = Pipeline::parse(stages, names)?;
    for stage in stages.iter() {
        let Value::Document(stage) = &stage else { continue };
        if let Some((name, _)) = stage.iter().next()
            && !ALLOWED.contains(&name.as_str())
        {
            return Err(Error::new(Code::InvalidOptions, format!("{name} is not allowed to be used within an update")));
        }
    }
    Ok(pipeline)
}

pub(super) fn apply(pipeline: &Pipeline, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
    let run = Run { env: env.clone(), collections: Arc::new(NoCollections) };
    let mut rows = pipeline.start(Box::new(One(Some(doc.clone().into_owned()))), &run)?;
    let result = rows.next()?;
    result.ok_or_else(|| Error::new(Code::InternalError, "a pipeline update gave no document"))
}

struct One(Option<Doc<'static>>);

impl Stream for One {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        Ok(self.0.take())
    }

    fn pause(&mut self) {}
}

/// The allowed stages read no other collection.
struct NoCollections;

impl Collections for NoCollections {
    fn open(&self, collection: &str, _pipeline: &Pipeline, _env: &Env) -> Result<Rows> {
        Err(Error::new(Code::InternalError, format!("an update cannot read the collection '{collection}'")))
    }
}
