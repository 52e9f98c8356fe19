//! Documents that are stored in a form before their rule, made by hand or left by `drop --keep-buckets`: taken over if they are as the
//! rule would have made them.

use crate::execute::access::{Access, find};
use crate::rule::Rule;
use document::backend::BatchLimit;
use document::filter::Filter;
use document::op::Namespace;
use document::op::ReadOp;
use document::{Code, Error, Result, Value};

const BATCH: BatchLimit = BatchLimit { documents: 1_000, bytes: 16 << 20 };

/// Refuses if one of them is not.
pub(crate) async fn check(at: &mut Access<'_>, rule: &Rule, into: &Namespace) -> Result<()> {
    let Some(shape) = rule.shape() else { return Ok(()) };
    let read = ReadOp::Find(find(into, Filter::all()));
    let mut cursor = at.backend.read(at.session, at.context, read).await?;
    loop {
        let batch = cursor.next(at.session, at.context, BATCH).await?;
        for document in &batch.documents {
            if let Some(flaw) = shape.flaws(document).into_iter().find(|flaw| !flaw.mendable) {
                let id = document.get("_id").unwrap_or(Value::Null);
                let message = format!(
                    "rule {} stores its {} in {into}, and what is there is none of its making: {} of {id:?}",
                    rule.name,
                    shape.noun(),
                    flaw.field
                );
                return Err(Error::new(Code::NamespaceExists, message)
                    .with_hint("name another collection with `into`, or see what `pleach audit` says"));
            }
        }
        if batch.exhausted {
            return Ok(());
        }
    }
}
