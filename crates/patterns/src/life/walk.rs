//! Walking a collection in `_id` order, part by part: ids of all types, which comparisons in a filter would not cross.

use crate::life::access::{Access, find};
use document::filter::Filter;
use document::op::{Find, Hint, Namespace};
use document::{Doc, DocWriter, Result, Value};

/// The documents from one `_id` on, up to but not including another.
pub(crate) fn range(ns: &Namespace, from: Option<&Value<'_>>, to: Option<&Value<'_>>) -> Find {
    let bound = |id: &Value<'_>| id_document(id);
    Find {
        hint: Some(Hint::Keys(id_document(&Value::Int32(1)))),
        min: from.map(bound),
        max: to.map(bound),
        ..find(ns, Filter::all())
    }
}

/// The `_id` of the document `count` places behind `from`; nothing if there are fewer.
pub(crate) async fn boundary(
    at: &mut Access<'_>,
    ns: &Namespace,
    from: Option<&Value<'_>>,
    count: u64,
) -> Result<Option<Value<'static>>> {
    let found = at.find(Find { skip: count, limit: Some(1), ..range(ns, from, None) }).await?;
    Ok(found.first().and_then(|doc| doc.get("_id")))
}

fn id_document(id: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(32);
    writer.append("_id", id);
    writer.finish()
}
