//! `create` with `viewOn`: a view is a name for a pipeline over another collection or view.

use super::{create, names};
use crate::catalog::{Catalog, Collection, Content, Life, View};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use crate::transaction::write_set::WriteSet;
use document::op::{Context, Namespace};
use document::pipeline::expr::Names;
use document::pipeline::{Pipeline, Sink};
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// How many views may stand on one another; MongoDB's limit.
const MAX_DEPTH: usize = 20;

pub(super) async fn run(
    engine: &Engine,
    context: &Context,
    ns: Namespace,
    on: &str,
    source: Array<'static>,
) -> Result<Vec<Doc<'static>>> {
    names::check(&ns, &engine.catalog())?;
    if on.is_empty() {
        return Err(Error::bad_value("'viewOn' cannot be empty"));
    }
    let _one_at_a_time = engine.inner.defining.lock().await;
    let view = compile(&engine.catalog(), &ns, on, source)?;
    let mut write_set = WriteSet::loose(&engine.inner.core);
    if let Some(other) = create::hold_name(engine, &ns, context, &mut write_set).await? {
        let message = match other.content {
            Content::Stored(_) => format!("Cannot create collection {ns} - collection already exists."),
            Content::View(_) => "Namespace already exists".to_owned(),
        };
        return Err(Error::new(Code::NamespaceExists, message));
    }
    let options = options(&view);
    let collection = Collection {
        id: engine.new_collection_id(),
        ns,
        uuid: create::new_uuid(),
        options,
        validation: None,
        indexes: Vec::new(),
        content: Content::View(Arc::new(view)),
        life: Arc::new(Life::default()),
    };
    write_set.change(Change::Put(Arc::new(collection)));
    engine.inner.committer.submit(write_set.take(context.durability)).done().await?;
    Ok(super::nothing())
}

/// As `listCollections` shows it.
pub(super) fn options(view: &View) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("viewOn", &Value::from(&*view.on.collection));
    writer.append("pipeline", &Value::Array(view.source.borrow()));
    writer.finish()
}

/// Checks the pipeline and that the view does not stand on itself.
pub(super) fn compile(catalog: &Catalog, ns: &Namespace, on: &str, source: Array<'static>) -> Result<View> {
    let pipeline = Pipeline::parse(&source, &mut Names::new())?;
    if let Some(sink) = &pipeline.sink {
        let (stage, position) = (
            match sink {
                Sink::Out { .. } => "$out",
                Sink::Merge(_) => "$merge",
            },
            source.count().saturating_sub(1),
        );
        let message = format!(
            "Invalid pipeline for view {ns} :: caused by :: The aggregation stage {stage} in location {position} of the pipeline cannot be used in the view definition of {ns} because it writes to disk"
        );
        return Err(Error::new(Code::OptionNotSupportedOnView, message));
    }
    let view = View { on: Namespace::new(&ns.db, on), source, pipeline };
    let mut path = vec![ns.clone(), view.on.clone()];
    while let Some(last) = path.last() {
        if last == ns {
            path.push(path.get(1).cloned().unwrap_or_else(|| ns.clone()));
            let names: Vec<String> = path.iter().map(Namespace::to_string).collect();
            return Err(Error::new(Code::GraphContainsCycle, format!("View cycle detected: {}", names.join(" => "))));
        }
        if path.len() > MAX_DEPTH {
            let message = format!("View depth limit exceeded; maximum depth is {MAX_DEPTH}");
            return Err(Error::new(Code::ViewDepthLimitExceeded, message));
        }
        match catalog.get(last).and_then(|collection| collection.view().cloned()) {
            Some(next) => path.push(next.on.clone()),
            None => break,
        }
    }
    Ok(view)
}
