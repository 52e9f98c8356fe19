//! `compact`: writes a collection's files anew, in one level, without what was overwritten or deleted; and whatever is in memory,
//! so that the log of writes shrinks too: a space that is hardly written to would hold on to all of it.

use super::not_found;
use crate::catalog::Catalog;
use crate::store::Store;
use document::op::Namespace;
use document::{Code, Doc, DocWriter, Error, Result, Value};

pub(super) fn run(store: &Store, catalog: &Catalog, ns: &Namespace) -> Result<Doc<'static>> {
    let Some(collection) = catalog.get(ns) else { return Err(not_found("collection does not exist")) };
    if collection.view().is_some() {
        return Err(Error::new(Code::CommandNotSupportedOnView, "can't compact a view"));
    }
    let space = collection.space()?;
    let before = space.disk_bytes() + space.memtable_bytes();
    space.compact()?;
    store.write_out()?;
    let freed = i64::try_from(before.saturating_sub(space.disk_bytes())).unwrap_or(i64::MAX);
    let mut reply = DocWriter::new();
    reply.append("bytesFreed", &i32::try_from(freed).map_or(Value::Int64(freed), Value::Int32));
    Ok(reply.finish())
}
