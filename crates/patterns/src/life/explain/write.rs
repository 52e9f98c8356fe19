//! The write that a command asks for. What a server would refuse before it runs is refused here with the same errors.

use crate::life::explain::{ExplainedCommand, filter, hint, is_set, only};
use document::op::{
    Delete, DeleteStatement, FindAndModify, Insert, Modify, Namespace, UpdateOp, UpdateStatement, WriteOp,
};
use document::pipeline::expr::Names;
use document::pipeline::sort_spec;
use document::project::Projection;
use document::update::{Update, check_upsert_filter};
use document::value::show;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// A command has at most so many statements.
const MAX_BATCH: usize = 100_000;

/// `None` if the command is no write.
pub(super) fn write_op(explained: &ExplainedCommand<'_>) -> Result<Option<WriteOp>> {
    let name = explained.name.as_str();
    if !matches!(name, "insert" | "update" | "delete" | "findAndModify" | "findandmodify") {
        return Ok(None);
    }
    let (command, ns) = (explained.command, explained.collection()?);
    let ordered = command.get("ordered").is_none_or(|ordered| ordered.is_truthy());
    let bypass_validation = is_set(command, "bypassDocumentValidation");
    let common = ["ordered", "bypassDocumentValidation", "let", "stmtId", "stmtIds"];
    let statement_ids = Vec::new();
    Ok(Some(match name {
        "insert" => {
            only("insert", command, &[&common[..], &["insert", "documents"]].concat())?;
            let documents = batch(command, "documents")?;
            WriteOp::Insert(Insert { ns, documents, ordered, bypass_validation, statement_ids })
        }
        "update" => {
            only("update", command, &[&common[..], &["update", "updates"]].concat())?;
            let statements = batch(command, "updates")?;
            let statements = statements.iter().map(|statement| update(explained, statement)).collect::<Result<_>>()?;
            WriteOp::Update(UpdateOp { ns, statements, ordered, bypass_validation, statement_ids })
        }
        "delete" => {
            only("delete", command, &[&common[..], &["delete", "deletes"]].concat())?;
            let statements = batch(command, "deletes")?;
            let statements = statements.iter().map(|statement| delete(explained, statement)).collect::<Result<_>>()?;
            WriteOp::Delete(Delete { ns, statements, ordered, statement_ids })
        }
        _ => WriteOp::FindAndModify(Box::new(find_and_modify(explained, ns, bypass_validation)?)),
    }))
}

/// The statements of a command; MongoDB takes no command without any.
fn batch(command: &Doc<'_>, name: &str) -> Result<Vec<Doc<'static>>> {
    let statements = documents(command, name)?;
    match statements.len() {
        1..=MAX_BATCH => Ok(statements),
        count => Err(Error::new(
            Code::InvalidLength,
            format!("Write batch sizes must be between 1 and {MAX_BATCH}. Got {count} operations."),
        )),
    }
}

fn documents(command: &Doc<'_>, name: &str) -> Result<Vec<Doc<'static>>> {
    let wrong = || Error::type_mismatch(format!("'{name}' must be an array of documents"));
    let Some(Value::Array(list)) = command.get(name) else { return Err(wrong()) };
    list.iter()
        .map(|item| match item {
            Value::Document(doc) => Ok(doc.into_owned()),
            _ => Err(wrong()),
        })
        .collect()
}

fn required(structure: &str, statement: &Doc<'_>, names: &[&str]) -> Result<()> {
    match names.iter().find(|name| !statement.contains(name)) {
        Some(name) => Err(Error::new(
            Code::Location(40414),
            format!("BSON field '{structure}.{name}' is missing but a required field"),
        )),
        None => Ok(()),
    }
}

fn change(statement: &Doc<'_>, name: &str, names: &mut Names) -> Result<Update> {
    let spec = statement.get(name).unwrap_or(Value::Missing);
    if !matches!(spec, Value::Document(_) | Value::Array(_)) {
        return Err(Error::failed_to_parse("Update argument must be either an object or an array"));
    }
    let filters = if statement.contains("arrayFilters") { documents(statement, "arrayFilters")? } else { Vec::new() };
    let constants = match statement.get("c") {
        Some(Value::Document(_)) if !matches!(spec, Value::Array(_)) => {
            let message = "Constant values may only be specified for pipeline updates";
            return Err(Error::new(Code::Location(51198), message));
        }
        Some(Value::Document(constants)) => Some(constants.into_owned()),
        _ => None,
    };
    for (name, value) in constants.iter().flat_map(Doc::iter) {
        names.bind_constant(name.as_str(), value.into_owned());
    }
    let mut update = Update::parse(&spec, &filters, names)?;
    update.constants = constants;
    Ok(update)
}

fn update(explained: &ExplainedCommand<'_>, statement: &Doc<'static>) -> Result<UpdateStatement> {
    const STRUCTURE: &str = "update.updates";
    let known = ["q", "u", "c", "multi", "upsert", "arrayFilters", "hint", "collation", "upsertSupplied"];
    only(STRUCTURE, statement, &known)?;
    required(STRUCTURE, statement, &["q", "u"])?;
    let mut names = explained.names.clone();
    let (multi, upsert) = (is_set(statement, "multi"), is_set(statement, "upsert"));
    let update = change(statement, "u", &mut names)?;
    if multi && update.is_replacement() {
        return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
    }
    let filter = filter(statement, "q", &mut names)?.collated(explained.collation(statement)?);
    if upsert {
        check_upsert_filter(&filter)?;
    }
    Ok(UpdateStatement { filter, update, multi, upsert, hint: hint(statement)? })
}

fn delete(explained: &ExplainedCommand<'_>, statement: &Doc<'static>) -> Result<DeleteStatement> {
    const STRUCTURE: &str = "delete.deletes";
    only(STRUCTURE, statement, &["q", "limit", "hint", "collation"])?;
    required(STRUCTURE, statement, &["q", "limit"])?;
    let limit = statement.get("limit").unwrap_or(Value::Missing);
    let multi = match &limit {
        Value::Bool(one) => !one,
        limit if limit.is_number() => match limit.as_i64_exact() {
            Some(0) => true,
            Some(1) => false,
            _ => {
                let shown = show::element(limit);
                let message = format!("The limit field in delete objects must be 0 or 1. Got {shown}");
                return Err(Error::failed_to_parse(message));
            }
        },
        // As MongoDB takes it.
        _ => true,
    };
    let filter = filter(statement, "q", &mut explained.names.clone())?.collated(explained.collation(statement)?);
    Ok(DeleteStatement { filter, multi, hint: hint(statement)? })
}

fn find_and_modify(explained: &ExplainedCommand<'_>, ns: Namespace, bypass_validation: bool) -> Result<FindAndModify> {
    let command = explained.command;
    let known = [
        "findAndModify",
        "findandmodify",
        "query",
        "sort",
        "fields",
        "remove",
        "update",
        "new",
        "upsert",
        "bypassDocumentValidation",
        "arrayFilters",
        "hint",
        "let",
        "collation",
        "stmtId",
    ];
    only("findAndModify", command, &known)?;
    let (remove, return_new, upsert) = (is_set(command, "remove"), is_set(command, "new"), is_set(command, "upsert"));
    match (remove, command.contains("update")) {
        (false, false) => return Err(Error::failed_to_parse("Either an update or remove=true must be specified")),
        (true, true) => return Err(Error::failed_to_parse("Cannot specify both an update and remove=true")),
        _ => {}
    }
    let mut names = explained.names.clone();
    let action = match remove {
        true => Modify::Remove,
        false => Modify::Update { update: change(command, "update", &mut names)?, upsert, return_new },
    };
    let filter = filter(command, "query", &mut names)?.collated(explained.collation(command)?);
    if upsert {
        check_upsert_filter(&filter)?;
    }
    let document = |name: &str| match command.get(name) {
        Some(Value::Document(doc)) if !doc.is_empty() => Some(doc),
        _ => None,
    };
    let sort = document("sort").map(|spec| sort_spec::parse(&spec)).transpose()?;
    let projection = match document("fields") {
        Some(spec) => Some(Arc::new(Projection::parse_find(&spec, &filter, &mut names)?.with_sort(sort.as_ref())?)),
        None => None,
    };
    let hint = hint(command)?;
    Ok(FindAndModify { ns, filter, sort, action, projection, hint, bypass_validation, statement_id: 0 })
}
