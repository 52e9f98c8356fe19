//! `update`.

use super::Command;
use crate::dispatch::Call;
use crate::params::{Params, required};
use crate::request::Request;
use crate::session::Role;
use crate::statements::{self, Common, Compiled};
use crate::{bindings, namespace};
use document::filter::Filter;
use document::op::{Hint, Namespace, UpdateOp, UpdateStatement, WriteOp, Written};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::{Update, check_upsert_filter};
use document::{Code, Doc, Env, Error, Result, Value};

const STRUCTURE: &str = "update";
const STATEMENT: &str = "update.updates";

pub(crate) const COMMAND: Command = Command {
    names: &["update"],
    help: "Changes the documents that match: by operators, by a pipeline, or as a whole.",
    structure: STRUCTURE,
    takes_sequences: true,
    run: |call| Box::pin(run(call)),
    ..Command::WRITE
};

/// The parameters of one statement, not yet compiled.
struct Statement<'a> {
    filter: Doc<'a>,
    update: Value<'a>,
    constants: Option<Doc<'a>>,
    array_filters: Vec<Doc<'a>>,
    multi: bool,
    upsert: bool,
    hint: Option<Hint>,
}

pub(crate) struct Parsed {
    common: Common,
    compiled: Compiled<UpdateStatement>,
    count: usize,
    ns: Namespace,
}

async fn run(call: &mut Call<'_>) -> Result<()> {
    let retryable = matches!(call.role, Role::Retryable { .. });
    let mut parsed = parse(call.request, &call.context.env, retryable)?;
    call.server.counters.updates.add(parsed.count);
    let ordered = parsed.common.ordered;
    let written = match parsed.take_op() {
        Some(op) => statements::write(call, &op).await?,
        None => Written::default(),
    };
    let written = parsed.compiled.merge(written, ordered);
    statements::report(call, &written);
    if !written.upserted.is_empty() {
        let fields = call.reply.fields();
        fields.start_array("upserted");
        for (position, (index, id)) in written.upserted.iter().enumerate() {
            fields.start_document_at(position);
            fields.append("index", &statements::count(u64::try_from(*index).unwrap_or_default()));
            fields.append("_id", id).end();
        }
        fields.end();
    }
    call.reply.append("nModified", statements::count(written.modified));
    Ok(())
}

impl Parsed {
    /// What can be run; nothing if no statement could be compiled.
    fn take_op(&mut self) -> Option<WriteOp> {
        if self.compiled.is_empty() {
            return None;
        }
        let (statements, statement_ids) = self.compiled.take(&self.common);
        Some(WriteOp::Update(UpdateOp {
            ns: self.ns.clone(),
            statements,
            ordered: self.common.ordered,
            bypass_validation: self.common.bypass_validation,
            statement_ids,
        }))
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
            "updates" | "legacyRuntimeConstants" | "runtimeConstants" => {}
            _ => return Err(param.unknown()),
        }
    }
    let documents = request.statements(STRUCTURE, "updates")?;
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
    let (mut filter, mut update, mut constants, mut hint) = (None, None, None, None);
    let (mut multi, mut upsert, mut array_filters) = (false, false, Vec::new());
    for param in Params::of(STATEMENT, &doc.borrow()) {
        match param.name() {
            "q" => filter = Some(param.document()?),
            "u" => update = Some(param.value),
            "c" => constants = Some(param.document()?),
            "multi" => multi = param.bool()?,
            "upsert" => upsert = param.bool()?,
            "arrayFilters" => array_filters = param.documents()?,
            "hint" => hint = statements::hint(&param.value)?,
            "collation" => param.simple_collation()?,
            "upsertSupplied" => {}
            _ => return Err(param.unknown()),
        }
    }
    let filter = required(filter, STATEMENT, "q")?;
    let update = required(update, STATEMENT, "u")?;
    match &update {
        Value::Document(_) => {}
        // An unknown stage fails the command, an argument that is wrong only its statement.
        Value::Array(stages) => Pipeline::check_shape(stages)?,
        _ => return Err(Error::failed_to_parse("Update argument must be either an object or an array")),
    }
    Ok(Statement { filter, update, constants, array_filters, multi, upsert, hint })
}

fn compile(statement: Statement<'_>, mut names: Names, retryable: bool) -> Result<UpdateStatement> {
    let Statement { filter, update, constants, array_filters, multi, upsert, hint } = statement;
    if multi && retryable {
        return Err(Error::new(Code::InvalidOptions, "Cannot use (or request) retryable writes with multi=true"));
    }
    if let Some(constants) = &constants {
        if !matches!(update, Value::Array(_)) {
            return Err(Error::new(
                Code::Location(51198),
                "Constant values may only be specified for pipeline updates",
            ));
        }
        for (name, value) in constants.iter() {
            names.bind_constant(name.as_str(), value.into_owned());
        }
    }
    let mut update = Update::parse(&update, &array_filters, &mut names)?;
    update.constants = constants.map(Doc::into_owned);
    if multi && update.is_replacement() {
        return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
    }
    let filter = Filter::parse(&filter, &mut names)?;
    if upsert {
        check_upsert_filter(&filter)?;
    }
    Ok(UpdateStatement { filter, update, multi, upsert, hint })
}
