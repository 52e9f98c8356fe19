//! What is made of rows at the end: the one document of a count or a distinct, or what a find shows of each.

use crate::execute::read::find_projection::FindProjection;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::op::Context;
use document::value::Path;
use document::value::distinct::{Values, each_value};
use document::{Array, Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// What a command makes of the rows.
pub(super) enum ResultForm {
    Rows,
    /// Rows are `{ n }`, or there is none.
    Count,
    /// Rows are `{ _id: { v } }`: all different values of the path's first field.
    Distinct(Path),
    Project(Arc<FindProjection>),
    /// The row, if there is one, has all different `values`.
    Values,
}

/// How many rows of a distinct are taken at once.
const BATCH: BatchLimit = BatchLimit { documents: 10_000, bytes: 16 << 20 };

pub(super) fn cursor(cursor: Box<dyn Cursor>, form: ResultForm) -> Box<dyn Cursor> {
    match form {
        ResultForm::Rows => cursor,
        form => Box::new(ResultCursor { cursor, form }),
    }
}

struct ResultCursor {
    cursor: Box<dyn Cursor>,
    form: ResultForm,
}

impl Cursor for ResultCursor {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let ResultCursor { cursor, form } = self;
            let only = |doc| Ok(Batch { documents: vec![doc], exhausted: true });
            match form {
                ResultForm::Rows => cursor.next(session, context, limit).await,
                ResultForm::Count => {
                    let batch = cursor.next(session, context, BATCH).await?;
                    let number = batch.documents.first().and_then(|row| row.get("n")?.as_i64_exact());
                    let mut writer = DocWriter::new();
                    writer.append("n", &Value::Int64(number.unwrap_or_default()));
                    only(writer.finish())
                }
                ResultForm::Values => {
                    let batch = cursor.next(session, context, BATCH).await?;
                    let values = batch.documents.first().and_then(|row| row.get("values").map(Value::into_owned));
                    let mut writer = DocWriter::new();
                    writer.append("values", &values.unwrap_or_else(|| Value::Array(Array::empty())));
                    only(writer.finish())
                }
                ResultForm::Distinct(path) => only(distinct(&mut **cursor, session, context, path).await?),
                ResultForm::Project(projection) => {
                    let mut batch = cursor.next(session, context, limit).await?;
                    for doc in &mut batch.documents {
                        *doc = projection.apply(doc, &context.env)?;
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
