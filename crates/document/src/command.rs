//! Operations written as the commands that a client would send: for `explain`, for printed plans, and for a backend that is a
//! real MongoDB.

use crate::filter::Filter;
use crate::op::{
    Delete, Find, FindAndModify, Hint, Insert, Modify, Namespace, ReadOp, SortSpec, UpdateOp, WriteOp, is_collated,
};
use crate::pipeline::Pipeline;
use crate::raw::{Array, ArrayWriter, Doc, DocWriter};
use crate::update::Update;
use crate::value::Value;

impl WriteOp {
    pub fn ns(&self) -> &Namespace {
        match self {
            WriteOp::Insert(op) => &op.ns,
            WriteOp::Update(op) => &op.ns,
            WriteOp::Delete(op) => &op.ns,
            WriteOp::FindAndModify(op) => &op.ns,
        }
    }

    /// The command without its database, session and concerns.
    pub fn to_command(&self) -> Doc<'static> {
        let mut command = DocWriter::with_capacity(256);
        match self {
            WriteOp::Insert(op) => insert(op, &mut command),
            WriteOp::Update(op) => update(op, &mut command),
            WriteOp::Delete(op) => delete(op, &mut command),
            WriteOp::FindAndModify(op) => find_and_modify(op, &mut command),
        }
        command.finish()
    }
}

impl ReadOp {
    pub fn ns(&self) -> &Namespace {
        match self {
            ReadOp::Find(op) => &op.ns,
            ReadOp::Aggregate(op) => &op.ns,
            ReadOp::Count(op) => &op.ns,
            ReadOp::Distinct(op) => &op.ns,
        }
    }

    /// How text is to be compared, if not as the backend does by itself.
    pub fn collation(&self) -> Option<&Doc<'static>> {
        let collation = match self {
            ReadOp::Find(op) => &op.filter.collation,
            ReadOp::Aggregate(op) => &op.collation,
            ReadOp::Count(op) => &op.filter.collation,
            ReadOp::Distinct(op) => &op.filter.collation,
        };
        collation.as_ref().filter(|collation| is_collated(Some(*collation)))
    }

    /// See [`WriteOp::to_command`]. A pipeline that was put together from others appears as far as its source is known.
    pub fn to_command(&self) -> Doc<'static> {
        let mut command = DocWriter::with_capacity(256);
        match self {
            ReadOp::Find(op) => find(op, &mut command),
            ReadOp::Aggregate(op) => {
                match op.collectionless {
                    true => command.append("aggregate", &Value::Int32(1)),
                    false => collection("aggregate", &op.ns, &mut command),
                };
                command.append("pipeline", &Value::Array(stages(&op.pipeline)));
                hint(op.hint.as_ref(), &mut command);
                command.append("cursor", &Value::Document(Doc::empty()));
                flag("allowDiskUse", op.allow_disk_use, &mut command);
                if let Some(collation) = &op.collation {
                    command.append("collation", &Value::Document(collation.borrow()));
                }
            }
            ReadOp::Count(op) => {
                collection("count", &op.ns, &mut command);
                command.append("query", &Value::Document(op.filter.source.borrow()));
                window(op.skip, op.limit, &mut command);
                hint(op.hint.as_ref(), &mut command);
                collation(&op.filter, &mut command);
            }
            ReadOp::Distinct(op) => {
                collection("distinct", &op.ns, &mut command);
                command.append("key", &Value::string(op.key.dotted()));
                command.append("query", &Value::Document(op.filter.source.borrow()));
                hint(op.hint.as_ref(), &mut command);
                collation(&op.filter, &mut command);
            }
        }
        command.finish()
    }
}

fn stages(pipeline: &Pipeline) -> Array<'static> {
    pipeline.source.clone().unwrap_or_else(Array::empty)
}

fn collection<'w>(name: &str, ns: &Namespace, command: &'w mut DocWriter) -> &'w mut DocWriter {
    command.append(name, &Value::from(&*ns.collection))
}

fn collation(filter: &Filter, command: &mut DocWriter) {
    if let Some(collation) = &filter.collation {
        command.append("collation", &Value::Document(collation.borrow()));
    }
}

fn flag(name: &str, set: bool, command: &mut DocWriter) {
    if set {
        command.append(name, &Value::Bool(true));
    }
}

fn window(skip: u64, limit: Option<u64>, command: &mut DocWriter) {
    let number = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
    if skip > 0 {
        command.append("skip", &number(skip));
    }
    if let Some(limit) = limit {
        command.append("limit", &number(limit));
    }
}

fn hint(hint: Option<&Hint>, command: &mut DocWriter) {
    match hint {
        None => {}
        Some(Hint::Name(name)) => {
            command.append("hint", &Value::from(&**name));
        }
        Some(Hint::Keys(keys)) => {
            command.append("hint", &Value::Document(keys.borrow()));
        }
        Some(Hint::Natural { descending }) => {
            let direction = if *descending { -1 } else { 1 };
            command.start_document("hint").append("$natural", &Value::Int32(direction)).end();
        }
    }
}

fn sort(sort: Option<&SortSpec>, command: &mut DocWriter) {
    let Some(sort) = sort else { return };
    command.start_document("sort");
    for key in &sort.keys {
        command.append(&key.path.dotted(), &Value::Int32(if key.descending { -1 } else { 1 }));
    }
    command.end();
}

fn find(op: &Find, command: &mut DocWriter) {
    collection("find", &op.ns, command).append("filter", &Value::Document(op.filter.source.borrow()));
    sort(op.sort.as_ref(), command);
    if let Some(projection) = op.projection.as_ref().and_then(|projection| projection.source()) {
        command.append("projection", &Value::Document(projection.borrow()));
    }
    hint(op.hint.as_ref(), command);
    collation(&op.filter, command);
    window(op.skip, op.limit, command);
    for (name, bound) in [("min", &op.min), ("max", &op.max)] {
        if let Some(bound) = bound {
            command.append(name, &Value::Document(bound.borrow()));
        }
    }
    flag("returnKey", op.return_key, command);
    flag("showRecordId", op.show_record_id, command);
    flag("allowDiskUse", op.allow_disk_use, command);
}

fn insert(op: &Insert, command: &mut DocWriter) {
    collection("insert", &op.ns, command);
    let documents = op.documents.iter().map(|doc| Value::Document(doc.borrow()));
    command.append("documents", &Value::Array(documents.collect()));
    tail(op.ordered, op.bypass_validation, &op.statement_ids, command);
}

fn update(op: &UpdateOp, command: &mut DocWriter) {
    collection("update", &op.ns, command).start_array("updates");
    for (index, statement) in op.statements.iter().enumerate() {
        command.start_document_at(index).append("q", &Value::Document(statement.filter.source.borrow()));
        append_update("u", &statement.update, command);
        flag("multi", statement.multi, command);
        flag("upsert", statement.upsert, command);
        hint(statement.hint.as_ref(), command);
        collation(&statement.filter, command);
        command.end();
    }
    command.end();
    tail(op.ordered, op.bypass_validation, &op.statement_ids, command);
}

fn append_update(name: &str, update: &Update, command: &mut DocWriter) {
    command.append(name, &update.source);
    if let Some(constants) = &update.constants {
        command.append("c", &Value::Document(constants.borrow()));
    }
    if !update.array_filters.is_empty() {
        let filters = update.array_filters.iter().map(|filter| Value::Document(filter.borrow()));
        command.append("arrayFilters", &Value::Array(filters.collect()));
    }
}

fn delete(op: &Delete, command: &mut DocWriter) {
    collection("delete", &op.ns, command).start_array("deletes");
    for (index, statement) in op.statements.iter().enumerate() {
        command.start_document_at(index).append("q", &Value::Document(statement.filter.source.borrow()));
        command.append("limit", &Value::Int32(i32::from(!statement.multi)));
        hint(statement.hint.as_ref(), command);
        collation(&statement.filter, command);
        command.end();
    }
    command.end();
    tail(op.ordered, false, &op.statement_ids, command);
}

fn tail(ordered: bool, bypass: bool, statement_ids: &[i32], command: &mut DocWriter) {
    if !ordered {
        command.append("ordered", &Value::Bool(false));
    }
    flag("bypassDocumentValidation", bypass, command);
    if !statement_ids.is_empty() {
        let mut ids = ArrayWriter::new();
        for id in statement_ids {
            ids.push(&Value::Int32(*id));
        }
        command.append("stmtIds", &Value::Array(ids.finish()));
    }
}

fn find_and_modify(op: &FindAndModify, command: &mut DocWriter) {
    collection("findAndModify", &op.ns, command).append("query", &Value::Document(op.filter.source.borrow()));
    sort(op.sort.as_ref(), command);
    match &op.action {
        Modify::Remove => flag("remove", true, command),
        Modify::Update { update, upsert, return_new } => {
            append_update("update", update, command);
            flag("upsert", *upsert, command);
            flag("new", *return_new, command);
        }
    }
    if let Some(projection) = op.projection.as_ref().and_then(|projection| projection.source()) {
        command.append("fields", &Value::Document(projection.borrow()));
    }
    hint(op.hint.as_ref(), command);
    collation(&op.filter, command);
    flag("bypassDocumentValidation", op.bypass_validation, command);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Aggregate, Count, DeleteStatement, SortKey, UpdateStatement};
    use crate::pipeline::expr::Names;
    use crate::value::Path;
    use bson::{bson, doc};

    fn filter(source: bson::Document) -> Filter {
        Filter::parse(&Doc::from(source), &mut Names::new()).unwrap()
    }

    #[track_caller]
    fn check(command: Doc<'static>, expected: bson::Document) {
        assert_eq!(command, Doc::from(expected));
    }

    #[test]
    fn writes_are_commands() {
        let ns = Namespace::new("shop", "c");
        let insert = Insert {
            ns: ns.clone(),
            documents: vec![Doc::from(doc! { "_id": 1 })],
            ordered: false,
            bypass_validation: true,
            statement_ids: vec![3],
        };
        check(
            WriteOp::Insert(insert).to_command(),
            doc! { "insert": "c", "documents": [{ "_id": 1 }], "ordered": false, "bypassDocumentValidation": true, "stmtIds": [3] },
        );
        let spec = Value::from(bson!({ "$set": { "a.$[x]": 1 } }));
        let update = Update::parse(&spec, &[Doc::from(doc! { "x": 2 })], &mut Names::new()).unwrap();
        let statement = UpdateStatement {
            filter: filter(doc! { "a": 1 }),
            update,
            multi: true,
            upsert: false,
            hint: Some(Hint::Name("i".into())),
        };
        let op = UpdateOp::of(ns.clone(), vec![statement]);
        check(
            WriteOp::Update(op).to_command(),
            doc! { "update": "c", "updates": [
                { "q": { "a": 1 }, "u": { "$set": { "a.$[x]": 1 } }, "arrayFilters": [{ "x": 2 }], "multi": true, "hint": "i" },
            ] },
        );
        let delete =
            Delete::of(ns.clone(), vec![DeleteStatement { filter: filter(doc! {}), multi: false, hint: None }]);
        check(WriteOp::Delete(delete).to_command(), doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }] });
        let modify = FindAndModify {
            ns,
            filter: filter(doc! { "a": 1 }),
            sort: Some(SortSpec { keys: vec![SortKey { path: Path::new("b.c"), descending: true }] }),
            action: Modify::Remove,
            projection: None,
            hint: None,
            bypass_validation: false,
            statement_id: 0,
        };
        check(
            WriteOp::FindAndModify(Box::new(modify)).to_command(),
            doc! { "findAndModify": "c", "query": { "a": 1 }, "sort": { "b.c": -1 }, "remove": true },
        );
    }

    #[test]
    fn reads_are_commands() {
        let ns = Namespace::new("shop", "c");
        let Value::Array(stages) = Value::from(bson!([{ "$match": { "a": 1 } }])) else { unreachable!() };
        let pipeline = Pipeline::parse(&stages, &mut Names::new()).unwrap();
        let op = Aggregate {
            ns: ns.clone(),
            collectionless: false,
            pipeline,
            hint: None,
            allow_disk_use: false,
            collation: None,
        };
        check(
            ReadOp::Aggregate(op).to_command(),
            doc! { "aggregate": "c", "pipeline": [{ "$match": { "a": 1 } }], "cursor": {} },
        );
        let op = Count {
            ns,
            filter: filter(doc! {}),
            skip: 0,
            limit: Some(5),
            hint: Some(Hint::Natural { descending: true }),
        };
        check(
            ReadOp::Count(op).to_command(),
            doc! { "count": "c", "query": {}, "limit": 5_i64, "hint": { "$natural": -1 } },
        );
    }
}
