//! `update` and `delete` as sent: a list of statements, each read first and compiled then. What cannot be read fails the command,
//! what cannot be compiled only its statement.

use crate::dispatch::Call;
use crate::request::Request;
use crate::session::Role;
use crate::statements::{self, Common, Compiled};
use crate::{bindings, entitled, namespace};
use document::op::{Namespace, WriteOp, Written};
use document::pipeline::expr::Names;
use document::{Doc, Env, Result};

/// A kind of statement.
pub(crate) trait Statement: Sized {
    const STRUCTURE: &'static str;
    /// The field that holds the statements.
    const LIST: &'static str;
    /// Its parameters, not yet compiled.
    type Read<'a>;

    fn read<'a>(doc: &'a Doc<'static>, collates: bool) -> Result<Self::Read<'a>>;

    fn compile(read: Self::Read<'_>, names: Names, retryable: bool) -> Result<Self>;

    fn op(ns: Namespace, statements: Vec<Self>, common: &Common, statement_ids: Vec<i32>) -> WriteOp;
}

/// The statements of one command.
pub(crate) struct Parsed<S> {
    common: Common,
    compiled: Compiled<S>,
    pub(crate) count: usize,
    ns: Namespace,
}

impl<S: Statement> Parsed<S> {
    pub(crate) fn new(request: &Request<'_>, env: &Env, retryable: bool) -> Result<Parsed<S>> {
        let mut common = Common::default();
        let mut variables = None;
        for param in request.params(S::STRUCTURE) {
            if common.take(&param)? {
                continue;
            }
            match param.name() {
                "let" => variables = Some(param.document()?),
                name if name == S::LIST => {}
                "legacyRuntimeConstants" | "runtimeConstants" => {}
                _ => return Err(param.unknown()),
            }
        }
        let documents = request.statements(S::STRUCTURE, S::LIST)?;
        common.check(documents.len())?;
        let statements = documents.iter().map(|doc| S::read(doc, request.collates)).collect::<Result<Vec<_>>>()?;
        let ns = namespace::to_write(request.db.as_str(), &request.target)?;
        let names = bindings::bind(variables.as_ref(), env)?;
        let count = statements.len();
        let compiled = Compiled::from(
            statements.into_iter().map(|statement| S::compile(statement, names.clone(), retryable)),
            common.ordered,
        );
        Ok(Parsed { common, compiled, count, ns })
    }

    /// What was sent by a client.
    pub(crate) fn of(call: &Call<'_>) -> Result<Parsed<S>> {
        Parsed::new(call.request, &call.context.env, matches!(call.role, Role::Retryable { .. }))
    }

    /// Runs what could be compiled, and reports it with what could not.
    pub(crate) async fn run(mut self, call: &mut Call<'_>) -> Result<Written> {
        let ordered = self.common.ordered;
        let written = match self.take_op() {
            Some(op) => statements::write(call, &op).await?,
            // Nothing is sent that the server behind could refuse.
            None => {
                entitled::check(call.server, call.client, call.command, call.request).await?;
                Written::default()
            }
        };
        let written = self.compiled.merge(written, ordered);
        statements::report(call, &written);
        Ok(written)
    }

    /// What can be run; `None` if no statement could be compiled.
    fn take_op(&mut self) -> Option<WriteOp> {
        if self.compiled.is_empty() {
            return None;
        }
        let (statements, statement_ids) = self.compiled.take(&self.common);
        Some(S::op(self.ns.clone(), statements, &self.common, statement_ids))
    }

    /// The one statement that `explain` takes.
    pub(crate) fn into_explained(mut self) -> Result<WriteOp> {
        let op = self.take_op();
        self.compiled.explained(op, self.count)
    }
}
