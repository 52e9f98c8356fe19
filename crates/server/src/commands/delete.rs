//! `delete`.

use super::Command;
use crate::dispatch::Call;
use crate::params::{Params, required};
use crate::parsed::{Parsed, Statement};
use crate::statements::{self, Common};
use document::backend::Class;
use document::filter::Filter;
use document::op::{Delete, DeleteStatement, Hint, Namespace, WriteOp};
use document::pipeline::expr::Names;
use document::value::show;
use document::{Code, Doc, Error, Result, Value};

const STRUCTURE: &str = "delete";
const STATEMENT: &str = "delete.deletes";

pub(crate) const COMMAND: Command = Command {
    names: &["delete"],
    help: "Deletes one or all documents that match.",
    structure: STRUCTURE,
    class: Class::Delete,
    takes_sequences: true,
    run: |call| Box::pin(run(call)),
    ..Command::WRITE
};

/// The parameters of one statement, not yet compiled.
pub(crate) struct DeleteParameters<'a> {
    filter: Doc<'a>,
    multi: bool,
    hint: Option<Hint>,
    collation: Option<Doc<'a>>,
}

async fn run(call: &mut Call<'_>) -> Result<()> {
    let parsed = Parsed::<DeleteStatement>::of(call)?;
    call.server.counters.deletes.add(parsed.count);
    parsed.run(call).await.map(drop)
}

impl Statement for DeleteStatement {
    const STRUCTURE: &'static str = STRUCTURE;
    const LIST: &'static str = "deletes";
    type Read<'a> = DeleteParameters<'a>;

    fn read<'a>(doc: &'a Doc<'static>, collates: bool) -> Result<DeleteParameters<'a>> {
        read(doc, collates)
    }

    fn compile(read: DeleteParameters<'_>, names: Names, retryable: bool) -> Result<DeleteStatement> {
        compile(read, names, retryable)
    }

    fn op(ns: Namespace, statements: Vec<DeleteStatement>, common: &Common, statement_ids: Vec<i32>) -> WriteOp {
        WriteOp::Delete(Delete { ns, statements, ordered: common.ordered, statement_ids })
    }
}

fn read<'a>(doc: &'a Doc<'static>, collates: bool) -> Result<DeleteParameters<'a>> {
    let (mut filter, mut limit, mut hint, mut collation) = (None, None, None, None);
    for param in Params::of(STATEMENT, &doc.borrow()) {
        match param.name() {
            "q" => filter = Some(param.document()?),
            "limit" => limit = Some(param.value),
            "hint" => hint = statements::hint(&param.value)?,
            "collation" => collation = param.collation(collates)?,
            _ => return Err(param.unknown()),
        }
    }
    let filter = required(filter, STATEMENT, "q")?;
    let limit = required(limit, STATEMENT, "limit")?;
    // As MongoDB takes it: what is no number is 0.
    let number = match &limit {
        Value::Bool(truth) => Some(i64::from(*truth)),
        other if other.is_number() => other.as_i64_exact(),
        _ => Some(0),
    };
    match number {
        Some(number @ (0 | 1)) => Ok(DeleteParameters { filter, multi: number == 0, hint, collation }),
        _ => Err(Error::failed_to_parse(format!(
            "The limit field in delete objects must be 0 or 1. Got {}",
            show::element(&limit)
        ))),
    }
}

fn compile(statement: DeleteParameters<'_>, mut names: Names, retryable: bool) -> Result<DeleteStatement> {
    let DeleteParameters { filter, multi, hint, collation } = statement;
    if multi && retryable {
        return Err(Error::new(Code::InvalidOptions, "Cannot use (or request) retryable writes with limit=0"));
    }
    let filter = Filter::parse(&filter, &mut names)?.collated(collation.map(Doc::into_owned));
    Ok(DeleteStatement { filter, multi, hint })
}
