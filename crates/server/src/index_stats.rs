//! `$indexStats`: the indexes of a collection and how often each is used, one document each.

use crate::batch::AGGREGATING;
use crate::dispatch::Call;
use crate::namespace;
use document::op::AdminOp;
use document::{Code, Doc, DocWriter, Error, Result, Value};

pub(crate) async fn documents(call: &mut Call<'_>, spec: &Value<'_>) -> Result<Vec<Doc<'static>>> {
    if !matches!(spec, Value::Document(options) if options.is_empty()) {
        let message = "The $indexStats stage specification must be an empty object";
        return Err(Error::new(Code::Location(28803), message));
    }
    let ns = namespace::to_read(call.db(), &call.request.target)?;
    let backend = &call.server.backend;
    let list = AdminOp::ListIndexes { ns: ns.clone() };
    let indexes = match backend.admin(&mut call.session, &call.context, list).await {
        Ok(indexes) => indexes,
        Err(error) if error.code() == Code::NamespaceNotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.context(AGGREGATING)),
    };
    let stats = AdminOp::CollStats { ns, scale: 1 };
    let figures = backend.admin(&mut call.session, &call.context, stats).await?;
    let details = match figures.first().and_then(|figures| figures.get("indexDetails")) {
        Some(Value::Document(details)) => details.into_owned(),
        _ => Doc::empty(),
    };
    let host = call.server.host();
    Ok(indexes.iter().filter_map(|index| row(index, &details, &host)).collect())
}

/// Nothing for an index that is being built.
fn row(index: &Doc<'_>, details: &Doc<'_>, host: &str) -> Option<Doc<'static>> {
    let name = index.get("name")?;
    let Value::Document(uses) = details.get(name.as_str()?)? else { return None };
    let mut row = DocWriter::new();
    row.append("name", &name).append("key", &index.get("key")?).append("host", &Value::from(host));
    row.append("accesses", &uses.get("accesses")?).append("spec", &Value::Document(index.borrow()));
    Some(row.finish())
}
