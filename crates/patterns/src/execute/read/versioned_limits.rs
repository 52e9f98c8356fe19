//! What a find of documents of several versions cannot ask for, each with the way out.

use crate::rule::Lens;
use document::op::Find;
use document::value::Path;
use document::{Code, Doc, Error, Result, Value};

pub(super) fn check(lens: &Lens, find: &Find) -> Result<()> {
    let bounds = [("min", &find.min), ("max", &find.max)];
    for (option, keys) in bounds {
        let moved =
            |keys: &Doc<'_>| keys.iter().map(|(path, _)| path.to_string()).find(|path| lens.changes(&Path::new(path)));
        if let Some(path) = keys.as_ref().and_then(moved) {
            let message =
                format!("'{option}' bounds an index of stored documents, and older ones do not have '{path}' in it");
            return Err(
                Error::new(Code::NotImplemented, message).with_hint("say the bounds as a filter with $gte and $lt")
            );
        }
    }
    if find.return_key {
        let message = "returnKey shows entries of an index, and those of older documents are not in the newest shape";
        return Err(Error::new(Code::NotImplemented, message).with_hint("project the fields instead"));
    }
    let compares = |(name, value): (document::Text<'_>, Value<'_>)| {
        name.as_str().ends_with(".$") || matches!(&value, Value::Document(inner) if inner.contains("$elemMatch"))
    };
    let shown = find.projection.as_ref().and_then(|projection| projection.source());
    if find.filter.collation.is_some() && shown.is_some_and(|shown| shown.iter().any(compares)) {
        let message = "a projection that looks for an element of an array takes no collation here";
        return Err(Error::new(Code::NotImplemented, message).with_hint("use an aggregation with $filter"));
    }
    Ok(())
}
