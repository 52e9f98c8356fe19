//! `pleach explain`: what a command would do, rules included, as plain MQL. The plan is run and given up again: nothing is kept.

use super::Life;
use super::explain_read::read_op;
use super::rights::Rights;
use crate::layer::explain;
use crate::layer::rights::checked;
use crate::mql;
use crate::plan::{Action, Plan, Step};
use document::backend::Session;
use document::filter::Filter;
use document::op::{
    Context, Delete, DeleteStatement, FindAndModify, Insert, Modify, Namespace, UpdateOp, UpdateStatement, WriteOp,
};
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Array, Doc, Error, Result, Value};

impl Life {
    /// `{ rules, steps: [ { rule, kind, namespace, command } ], fences, deferred, cost }` (SEMANTICS F).
    /// The client needs the right to the command itself; its steps are rehearsed on the client's own line.
    pub(crate) async fn explain(
        &self,
        client: &mut Session,
        context: &Context,
        db: &str,
        command: &Doc<'_>,
        rights: &Rights,
    ) -> Result<Doc<'static>> {
        let Some(op) = write_op(db, command)? else {
            let told = match read_op(db, command)? {
                Some(read) => {
                    rights.need("find", read.ns())?;
                    if let Some(shaped) = self.patterned.rules().shaped(read.ns()) {
                        shaped.sides.iter().try_for_each(|side| rights.need("find", &side.stored))?;
                    }
                    explain::read_plan(&self.patterned.shared, context, &read)?
                }
                None => None,
            };
            return told.map_or_else(|| passes(db, command), Ok);
        };
        let rules = self.patterned.rules();
        rights.need_to_write(&op, rules.shaped(op.ns()).map(|shaped| &**shaped))?;
        drop(rules);
        let plan = explain::plan(&self.patterned.shared, client, context, &op).await;
        let plan = checked(rights, &self.patterned.rules(), op.ns(), plan)?;
        match plan.steps.is_empty() {
            true => Ok(Plan::of(vec![Step::from(Action::Write(op))]).to_mql()),
            false => Ok(plan.to_mql()),
        }
    }
}

/// What no rule concerns is one step: itself.
fn passes(db: &str, command: &Doc<'_>) -> Result<Doc<'static>> {
    let Some((name, target)) = command.iter().next() else {
        return Err(Error::failed_to_parse("pleach explain needs a command"));
    };
    let namespace = match target.as_str() {
        Some(collection) => format!("{db}.{collection}"),
        None => db.to_owned(),
    };
    let kind = match name.as_str() {
        "find" | "aggregate" | "count" | "distinct" | "getMore" => "read",
        _ => "command",
    };
    let step = mql::object([
        ("rule", Value::Null),
        ("kind", Value::from(kind)),
        ("namespace", Value::from(&*namespace)),
        ("command", Value::Document(command.borrow())),
    ]);
    let none = || Value::Array(Array::empty());
    let (read, bytes) = (i64::from(kind == "read"), i64::try_from(command.as_bytes().len()).unwrap_or(i64::MAX));
    let numbers = [("read", read), ("written", 0), ("deferred", 0), ("bytes", bytes)];
    let cost = mql::object(numbers.map(|(name, number)| (name, Value::Int64(number))));
    Ok(mql::document([
        ("rules", none()),
        ("steps", mql::list([step])),
        ("fences", none()),
        ("deferred", none()),
        ("cost", cost),
    ]))
}

/// The write that a command asks for; nothing if it is no write.
fn write_op(db: &str, command: &Doc<'_>) -> Result<Option<WriteOp>> {
    let Some((name, target)) = command.iter().next() else { return Ok(None) };
    let name = name.as_str();
    if !matches!(name, "insert" | "update" | "delete" | "findAndModify" | "findandmodify") {
        return Ok(None);
    }
    let collection = target
        .as_str()
        .ok_or_else(|| Error::type_mismatch(format!("collection name has invalid type {}", target.type_name())))?;
    let ns = Namespace::new(db, collection);
    let ordered = command.get("ordered").is_none_or(|ordered| ordered.is_truthy());
    let bypass_validation = command.get("bypassDocumentValidation").is_some_and(|bypass| bypass.is_truthy());
    Ok(Some(match name {
        "insert" => WriteOp::Insert(Insert {
            ns,
            documents: documents(command, "documents")?,
            ordered,
            bypass_validation,
            statement_ids: Vec::new(),
        }),
        "update" => WriteOp::Update(UpdateOp {
            ns,
            statements: documents(command, "updates")?.iter().map(update).collect::<Result<_>>()?,
            ordered,
            bypass_validation,
            statement_ids: Vec::new(),
        }),
        "delete" => WriteOp::Delete(Delete {
            ns,
            statements: documents(command, "deletes")?.iter().map(delete).collect::<Result<_>>()?,
            ordered,
            statement_ids: Vec::new(),
        }),
        _ => WriteOp::FindAndModify(Box::new(FindAndModify {
            ns,
            filter: filter(command, "query")?,
            sort: None,
            action: modify(command)?,
            projection: None,
            hint: None,
            bypass_validation,
            statement_id: 0,
        })),
    }))
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

pub(super) fn filter(doc: &Doc<'_>, name: &str) -> Result<Filter> {
    match doc.get(name) {
        Some(Value::Document(query)) => Filter::parse(&query, &mut Names::new()),
        None => Ok(Filter::all()),
        Some(other) => Err(Error::type_mismatch(format!("'{name}' must be a document, not {}", other.type_name()))),
    }
}

fn change(doc: &Doc<'_>, name: &str) -> Result<Update> {
    let spec = doc.get(name).ok_or_else(|| Error::failed_to_parse(format!("'{name}' is missing")))?;
    let filters = if doc.contains("arrayFilters") { documents(doc, "arrayFilters")? } else { Vec::new() };
    Update::parse(&spec, &filters, &mut Names::new())
}

fn is_set(doc: &Doc<'_>, name: &str) -> bool {
    doc.get(name).is_some_and(|value| value.is_truthy())
}

fn update(statement: &Doc<'static>) -> Result<UpdateStatement> {
    Ok(UpdateStatement {
        filter: filter(statement, "q")?,
        update: change(statement, "u")?,
        multi: is_set(statement, "multi"),
        upsert: is_set(statement, "upsert"),
        hint: None,
    })
}

fn delete(statement: &Doc<'static>) -> Result<DeleteStatement> {
    Ok(DeleteStatement { filter: filter(statement, "q")?, multi: !is_set(statement, "limit"), hint: None })
}

fn modify(command: &Doc<'_>) -> Result<Modify> {
    match is_set(command, "remove") {
        true => Ok(Modify::Remove),
        false => Ok(Modify::Update {
            update: change(command, "update")?,
            upsert: is_set(command, "upsert"),
            return_new: is_set(command, "new"),
        }),
    }
}
