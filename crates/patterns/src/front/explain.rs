//! `explain` of a command that rules concern, for a client: the plan of a write is shown if the client may read all that is in it, and
//! what contradicts the rules of the collection is pointed out.

use crate::execute::executor::Executor;
use crate::front::rights;
use crate::layer::explain::{plan, stored, with_plan};
use crate::life::explain::{checked, notes};
use document::backend::Session;
use document::op::{Context, Explained, Verbosity};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

pub(super) async fn explain(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    if let Explained::Write(write) = &op
        && executor.rules().shaped(write.ns()).is_some()
    {
        rights::before_explain(executor, session.relay.clone(), write).await?;
    }
    let pointed_out = match &op {
        Explained::Read(read) => notes::of_read(&executor.rules(), read),
        Explained::Write(write) => notes::of_write(&executor.rules(), write),
    };
    let (stored, planned) = stored(executor, session, context, op, verbosity).await?;
    let Some(write) = planned else { return Ok(with_notes(&stored, &pointed_out)) };
    let rights = rights::before_explain(executor, session.relay.clone(), &write).await?;
    let plan = plan(executor, session, context, &write).await;
    let plan = checked(&rights, &executor.rules(), write.ns(), plan)?;
    Ok(with_notes(&with_plan(&stored, &plan), &pointed_out))
}

/// The answer with `pleach: { …, notes }`, if there are any.
fn with_notes(answer: &Doc<'static>, pointed_out: &[String]) -> Doc<'static> {
    if pointed_out.is_empty() {
        return answer.clone();
    }
    let own = match answer.get("pleach") {
        Some(Value::Document(own)) => own,
        _ => Doc::empty(),
    };
    let mut writer = DocWriter::new();
    for (name, value) in answer.iter().filter(|(name, _)| name.as_str() != "pleach") {
        writer.append(name.as_str(), &value);
    }
    writer.append("pleach", &Value::Document(notes::with(&own, pointed_out)));
    writer.finish()
}
