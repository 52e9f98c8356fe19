//! `delete`.

use super::Command;
use crate::dispatch::Call;
use crate::params::{Params, required};
use crate::request::Request;
use crate::session::Role;
use crate::statements::{self, Common, Compiled};
use crate::{bindings, namespace};
use document::filter::Filter;
use document::op::{Delete, DeleteStatement, Hint, Namespace, WriteOp, Written};
use document::pipeline::expr::Names;
use document::value::show;
use document::{Code, Doc, Env, Error, Result, Value};

const STRUCTURE: &str = "delete";
const STATEMENT: &str = "delete.deletes";

pub(crate) const COMMAND: Command = Command {
    names: &["delete"],
    help: "Deletes one or all documents that match.",
    structure: STRUCTURE,
    takes_sequences: true,
    run: |call| Box::pin(run(call)),
    ..Command::WRITE
};

struct Statement<'a> {
    filter: Doc<'a>,
    multi: bool,
    hint: Option<Hint>,
}

pub(crate) struct Parsed {
    common: Common,
    compiled: Compiled<DeleteStatement>,
    count: usize,
    ns: Namespace,
}

async fn run(call: &mut Call<'_>) -> Result<()> {
    let retryable = matches!(call.role, Role::Retryable { .. });
    let mut parsed = parse(call.request, &call.context.env, retryable)?;
    call.server.counters.deletes.add(parsed.count);
    let ordered = parsed.common.ordered;
    let written = match parsed.take_op() {
        Some(op) => statements::write(call, &op).await?,
        None => Written::default(),
    };
    let written = parsed.compiled.merge(written, ordered);
    statements::report(call, &written);
    Ok(())
}

impl Parsed {
    fn take_op(&mut self) -> Option<WriteOp> {
        if self.compiled.is_empty() {
            return None;
        }
        let (statements, statement_ids) = self.compiled.take(&self.common);
        let ordered = self.common.ordered;
        Some(WriteOp::Delete(Delete { ns: self.ns.clone(), statements, ordered, statement_ids }))
    }

    /// The one statement that `explain` takes.
    pub(crate) fn into_explained(mut self) -> Result<WriteOp> {
        let op = self.take_op();
        self.compiled.explained(op, self.count)
    }
}

pub(crate) fn parse(request: &Request<'_>, env: &Env, retryable: bool) -> Result<Parsed> {
    let mut common = Common::default();
    let mut variables = None;
    for param in request.params(STRUCTURE) {
        if common.take(&param)? {
            continue;
        }
        match param.name() {
            "let" => variables = Some(param.document()?),
            "deletes" | "legacyRuntimeConstants" | "runtimeConstants" => {}
            _ => return Err(param.unknown()),
        }
    }
    let documents = request.statements(STRUCTURE, "deletes")?;
    common.check(documents.len())?;
    let statements = documents.iter().map(read).collect::<Result<Vec<_>>>()?;
    let ns = namespace::to_write(request.db.as_str(), &request.target)?;
    let names = bindings::bind(variables.as_ref(), env)?;
    let count = statements.len();
    let compiled = Compiled::from(
        statements.into_iter().map(|statement| compile(statement, names.clone(), retryable)),
        common.ordered,
    );
    Ok(Parsed { common, compiled, count, ns })
}

fn read<'a>(doc: &'a Doc<'static>) -> Result<Statement<'a>> {
    let (mut filter, mut limit, mut hint) = (None, None, None);
    for param in Params::of(STATEMENT, &doc.borrow()) {
        match param.name() {
            "q" => filter = Some(param.document()?),
            "limit" => limit = Some(param.value),
            "hint" => hint = statements::hint(&param.value)?,
            "collation" => param.simple_collation()?,
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
        Some(number @ (0 | 1)) => Ok(Statement { filter, multi: number == 0, hint }),
        _ => Err(Error::failed_to_parse(format!(
            "The limit field in delete objects must be 0 or 1. Got {}",
            show::element(&limit)
        ))),
    }
}

fn compile(statement: Statement<'_>, mut names: Names, retryable: bool) -> Result<DeleteStatement> {
    let Statement { filter, multi, hint } = statement;
    if multi && retryable {
        return Err(Error::new(Code::InvalidOptions, "Cannot use (or request) retryable writes with limit=0"));
    }
    Ok(DeleteStatement { filter: Filter::parse(&filter, &mut names)?, multi, hint })
}
