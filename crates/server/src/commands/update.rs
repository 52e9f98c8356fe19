//! `update`.

use super::Command;
use crate::dispatch::Call;
use crate::params::{Params, required};
use crate::parsed::{Parsed, Statement};
use crate::statements::{self, Common};
use document::backend::Class;
use document::filter::Filter;
use document::op::{Hint, Namespace, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::{Update, check_upsert_filter};
use document::{Code, Doc, Error, Result, Value};

const STRUCTURE: &str = "update";
const STATEMENT: &str = "update.updates";

pub(crate) const COMMAND: Command = Command {
    names: &["update"],
    help: "Changes the documents that match: by operators, by a pipeline, or as a whole.",
    structure: STRUCTURE,
    class: Class::Update,
    takes_sequences: true,
    run: |call| Box::pin(run(call)),
    ..Command::WRITE
};

/// The parameters of one statement, not yet compiled.
pub(crate) struct UpdateParameters<'a> {
    filter: Doc<'a>,
    update: Value<'a>,
    constants: Option<Doc<'a>>,
    array_filters: Vec<Doc<'a>>,
    multi: bool,
    upsert: bool,
    hint: Option<Hint>,
    collation: Option<Doc<'a>>,
}

async fn run(call: &mut Call<'_>) -> Result<()> {
    let parsed = Parsed::<UpdateStatement>::of(call)?;
    call.server.counters.updates.add(parsed.count);
    let written = parsed.run(call).await?;
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

impl Statement for UpdateStatement {
    const STRUCTURE: &'static str = STRUCTURE;
    const LIST: &'static str = "updates";
    type Read<'a> = UpdateParameters<'a>;

    fn read<'a>(doc: &'a Doc<'static>, collates: bool) -> Result<UpdateParameters<'a>> {
        read(doc, collates)
    }

    fn compile(read: UpdateParameters<'_>, names: Names, retryable: bool) -> Result<UpdateStatement> {
        compile(read, names, retryable)
    }

    fn op(ns: Namespace, statements: Vec<UpdateStatement>, common: &Common, statement_ids: Vec<i32>) -> WriteOp {
        let (ordered, bypass_validation) = (common.ordered, common.bypass_validation);
        WriteOp::Update(UpdateOp { ns, statements, ordered, bypass_validation, statement_ids })
    }
}

fn read<'a>(doc: &'a Doc<'static>, collates: bool) -> Result<UpdateParameters<'a>> {
    let (mut filter, mut update, mut constants, mut hint, mut collation) = (None, None, None, None, None);
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
            "collation" => collation = param.collation(collates)?,
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
    Ok(UpdateParameters { filter, update, constants, array_filters, multi, upsert, hint, collation })
}

fn compile(statement: UpdateParameters<'_>, mut names: Names, retryable: bool) -> Result<UpdateStatement> {
    let UpdateParameters { filter, update, constants, array_filters, multi, upsert, hint, collation } = statement;
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
    let filter = Filter::parse(&filter, &mut names)?.collated(collation.map(Doc::into_owned));
    if upsert {
        check_upsert_filter(&filter)?;
    }
    Ok(UpdateStatement { filter, update, multi, upsert, hint })
}
