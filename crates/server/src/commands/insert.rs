//! `insert`.

use super::Command;
use crate::dispatch::Call;
use crate::namespace;
use crate::statements::{self, Common, Compiled};
use document::backend::Class;
use document::op::{Insert, WriteOp, Written};
use document::{Code, Doc, Error, Result};
use wire::limits::MAX_DOCUMENT;

const STRUCTURE: &str = "insert";

pub(crate) const COMMAND: Command = Command {
    names: &["insert"],
    help: "Inserts documents, in order or not.",
    structure: STRUCTURE,
    class: Class::Insert,
    takes_sequences: true,
    run: |call| Box::pin(run(call)),
    ..Command::WRITE
};

/// How deep a stored document may nest: less than a command, so that it fits into one.
const MAX_STORED_DEPTH: usize = 180;

async fn run(call: &mut Call<'_>) -> Result<()> {
    let request = call.request;
    let mut common = Common::default();
    for param in request.params(STRUCTURE) {
        if !common.take(&param)? && param.name() != "documents" {
            return Err(param.unknown());
        }
    }
    let documents = request.statements(STRUCTURE, "documents")?;
    common.check(documents.len())?;
    let ns = namespace::to_write(request.db.as_str(), &request.target)?;
    call.server.counters.inserts.add(documents.len());
    let mut compiled = Compiled::from(documents.into_iter().map(check), common.ordered);
    let written = if compiled.is_empty() {
        Written::default()
    } else {
        let (documents, statement_ids) = compiled.take(&common);
        let op = WriteOp::Insert(Insert {
            ns,
            documents,
            ordered: common.ordered,
            bypass_validation: common.bypass_validation,
            statement_ids,
        });
        statements::write(call, &op).await?
    };
    let written = compiled.merge(written, common.ordered);
    statements::report(call, &written);
    Ok(())
}

/// What no store may be given.
fn check(doc: Doc<'static>) -> Result<Doc<'static>> {
    let size = doc.as_bytes().len();
    if size > MAX_DOCUMENT {
        return Err(Error::bad_value(format!(
            "object to insert too large. size in bytes: {size}, max size: {MAX_DOCUMENT}"
        )));
    }
    // A level takes at least 7 bytes, so small documents need no look.
    if size > MAX_STORED_DEPTH * 7 && document::raw::depth(doc.as_bytes()) > MAX_STORED_DEPTH {
        return Err(Error::new(
            Code::Overflow,
            format!("cannot insert document because it exceeds {MAX_STORED_DEPTH} levels of nesting"),
        ));
    }
    Ok(doc)
}
