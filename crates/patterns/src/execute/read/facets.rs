//! `$facet` as a stage whose pipelines are rewritten one by one.

use document::{Array, Doc, DocWriter, Result, Value};

/// The facets with rewritten pipelines; `None` if `rewrite` changes none of them.
pub(super) fn rewritten(
    facets: &Doc<'_>,
    rewrite: impl Fn(&Array<'_>) -> Result<Option<Array<'static>>>,
) -> Result<Option<Doc<'static>>> {
    let mut writer = DocWriter::with_capacity(facets.as_bytes().len() + 256);
    let mut is_changed = false;
    for (name, stages) in facets.iter() {
        let other = match &stages {
            Value::Array(inner) => rewrite(inner)?,
            _ => None,
        };
        is_changed |= other.is_some();
        writer.append(name.as_str(), &other.map_or(stages, Value::Array));
    }
    Ok(is_changed.then(|| writer.finish()))
}
