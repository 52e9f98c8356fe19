//! Operations from plain documents.

use bson::{Bson, Document};
use document::filter::Filter;
use document::op::{
    Delete, DeleteStatement, Find, FindAndModify, Insert, Modify, Namespace, UpdateOp, UpdateStatement, WriteOp,
};
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, Value};

pub fn filter(source: Document) -> Filter {
    Filter::parse(&Doc::from(source), &mut Names::new()).unwrap()
}

/// Operators, a replacement or a pipeline.
pub fn change(source: impl Into<Bson>) -> Update {
    Update::parse(&Value::from(source.into()), &[], &mut Names::new()).unwrap()
}

pub fn insert(ns: Namespace, documents: Vec<Document>) -> WriteOp {
    let documents = documents.into_iter().map(Doc::from).collect();
    WriteOp::Insert(Insert::of(ns, documents))
}

/// `how` is any of `multi`, `upsert`.
pub fn statement(query: Document, update: impl Into<Bson>, how: &[&str]) -> UpdateStatement {
    let (multi, upsert) = (how.contains(&"multi"), how.contains(&"upsert"));
    UpdateStatement { filter: filter(query), update: change(update), multi, upsert, hint: None }
}

pub fn updates(ns: Namespace, statements: Vec<UpdateStatement>, ordered: bool) -> WriteOp {
    WriteOp::Update(UpdateOp { ns, statements, ordered, bypass_validation: false, statement_ids: Vec::new() })
}

/// One statement.
pub fn update(ns: Namespace, query: Document, change: impl Into<Bson>, how: &[&str]) -> WriteOp {
    updates(ns, vec![statement(query, change, how)], true)
}

pub fn delete(ns: Namespace, query: Document, multi: bool) -> WriteOp {
    let statements = vec![DeleteStatement { filter: filter(query), multi, hint: None }];
    WriteOp::Delete(Delete::of(ns, statements))
}

pub fn find_and_modify(ns: Namespace, query: Document, action: Modify) -> FindAndModify {
    FindAndModify {
        ns,
        filter: filter(query),
        sort: None,
        action,
        projection: None,
        hint: None,
        bypass_validation: false,
        statement_id: 0,
    }
}

pub fn find(ns: Namespace, query: Document) -> Find {
    Find { allow_disk_use: false, ..Find::matching(ns, filter(query)) }
}
