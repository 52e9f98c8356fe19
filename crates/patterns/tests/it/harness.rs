//! The words of these tests: the harness of `testing`, on the database `shop`.

use document::op::*;
use std::future::Future;
pub(crate) use testing::{Opened, World, change, context, filter, statement, told};

pub(crate) fn run<R>(test: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

pub(crate) fn ns(collection: &str) -> Namespace {
    Namespace::new("shop", collection)
}

pub(crate) fn insert(collection: &str, documents: Vec<bson::Document>) -> WriteOp {
    testing::insert(ns(collection), documents)
}

/// One update statement; `how` is any of `multi`, `upsert`.
pub(crate) fn update(collection: &str, query: bson::Document, update: impl Into<bson::Bson>, how: &[&str]) -> WriteOp {
    testing::update(ns(collection), query, update, how)
}

pub(crate) fn updates(collection: &str, statements: Vec<UpdateStatement>, ordered: bool) -> WriteOp {
    testing::updates(ns(collection), statements, ordered)
}

pub(crate) fn delete(collection: &str, query: bson::Document, multi: bool) -> WriteOp {
    testing::delete(ns(collection), query, multi)
}

pub(crate) fn find(collection: &str, query: bson::Document) -> Find {
    testing::find(ns(collection), query)
}

pub(crate) fn find_and_modify(collection: &str, query: bson::Document, action: Modify) -> WriteOp {
    WriteOp::FindAndModify(Box::new(testing::find_and_modify(ns(collection), query, action)))
}

/// `new: true`.
pub(crate) fn modify(update: impl Into<bson::Bson>, upsert: bool) -> Modify {
    Modify::Update { update: change(update), upsert, return_new: true }
}
