//! What is made of rows at the end: the one document of a count or a distinct, or what a find shows of each.

use crate::layer::shaped::read::find_projection::Projecting;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::op::Context;
use document::value::Path;
use document::value::distinct::{Values, each_value};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

pub(super) enum Finish {
    Rows,
    /// Rows are `{ n }`, or there is none.
    Count,
    /// Rows are `{ _id: { v } }`: all different values of the path's first field.
    Distinct(Path),
    Project(Arc<Projecting>),
}

impl Finish {
    /// The same for another cursor.
    pub(super) fn again(&self) -> Finish {
        match self {
            Finish::Rows => Finish::Rows,
            Finish::Count => Finish::Count,
            Finish::Distinct(path) => Finish::Distinct(path.clone()),
            Finish::Project(projecting) => Finish::Project(projecting.clone()),
        }
    }
}

/// How many rows of a distinct are taken at once.
const BATCH: BatchLimit = BatchLimit { documents: 10_000, bytes: 16 << 20 };

pub(super) fn finished(cursor: Box<dyn Cursor>, finish: Finish) -> Box<dyn Cursor> {
    match finish {
        Finish::Rows => cursor,
        finish => Box::new(Finished { cursor, finish }),
    }
}

struct Finished {
    cursor: Box<dyn Cursor>,
    finish: Finish,
}

impl Cursor for Finished {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let Finished { cursor, finish } = self;
            let only = |doc| Ok(Batch { documents: vec![doc], exhausted: true });
            match finish {
                Finish::Rows => cursor.next(session, context, limit).await,
                Finish::Count => {
                    let batch = cursor.next(session, context, BATCH).await?;
                    let number = batch.documents.first().and_then(|row| row.get("n")?.as_i64_exact());
                    let mut writer = DocWriter::new();
                    writer.append("n", &Value::Int64(number.unwrap_or_default()));
                    only(writer.finish())
                }
                Finish::Distinct(path) => only(distinct(&mut **cursor, session, context, path).await?),
                Finish::Project(projecting) => {
                    let mut batch = cursor.next(session, context, limit).await?;
                    for doc in &mut batch.documents {
                        *doc = projecting.apply(doc, &context.env)?;
                    }
                    Ok(batch)
                }
            }
        })
    }
}

async fn distinct(
    cursor: &mut dyn Cursor,
    session: &mut Session,
    context: &Context,
    path: &Path,
) -> Result<Doc<'static>> {
    let (mut values, rest) = (Values::default(), path.parts.get(1..).unwrap_or_default());
    loop {
        let batch = cursor.next(session, context, BATCH).await?;
        for row in &batch.documents {
            if let Some(Value::Document(id)) = row.get("_id")
                && let Some(value) = id.get("v")
            {
                each_value(&value, rest, &mut |value| values.add(value))?;
            }
        }
        if batch.exhausted {
            return Ok(values.finish());
        }
    }
}
