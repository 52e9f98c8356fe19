//! What goes with a rule that is removed: which fields, and how many documents are touched.

use crate::execute::access::{Access, aggregate};
use crate::life::catalog;
use crate::life::preview::long;
use crate::mql::{call, document};
use crate::rule::Rule;
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, DocWriter, Result, Value};

#[derive(Clone, Debug, Default)]
pub(crate) struct Removal {
    /// The paths that are taken away.
    fields: Vec<String>,
    /// How many documents are changed, or become plain documents again.
    documents: u64,
    /// It keeps nothing in documents: only its validator and its indexes go.
    is_constraint: bool,
    /// Documents stay as they are stored, so many of them in older versions.
    older: Option<u64>,
}

impl Removal {
    pub(super) fn of_versions(older: u64) -> Removal {
        Removal { older: Some(older), ..Removal::default() }
    }

    pub(super) async fn look(at: &mut Access<'_>, rule: &Rule, with_data: bool) -> Result<Removal> {
        if rule.shape().is_some() {
            let documents = count(at, &rule.host, Doc::empty()).await?;
            return Ok(Removal { documents, ..Removal::default() });
        }
        if rule.constraint().is_some() {
            return Ok(Removal { is_constraint: true, ..Removal::default() });
        }
        if let Some(outlier) = rule.outlier() {
            let mut fields = vec![outlier.flag.clone()];
            fields.extend(with_data.then(|| outlier.count.clone()));
            let flagged = document([(&*outlier.flag, Value::Bool(true))]);
            return Ok(Removal { documents: count(at, &rule.host, flagged).await?, fields, ..Removal::default() });
        }
        let mut fields = Vec::new();
        if with_data {
            fields.push(rule.field.dotted());
        }
        fields.extend(rule.state_path().map(|path| path.dotted()));
        if fields.is_empty() {
            return Ok(Removal::default());
        }
        let exists = |path: &String| document([(&**path, call("$exists", Value::Bool(true)))]);
        let any = document([("$or", Value::Array(fields.iter().map(|path| Value::Document(exists(path))).collect()))]);
        Ok(Removal { documents: count(at, &rule.host, any).await?, fields, ..Removal::default() })
    }

    pub(super) fn show(&self, doc: &mut DocWriter) {
        let fields = self.fields.iter().map(|field| Value::from(&**field));
        doc.append("fields", &Value::Array(fields.collect())).append("documents", &long(self.documents));
        if self.is_constraint {
            doc.append("constraint", &Value::Bool(true));
        }
        if let Some(older) = self.older {
            doc.append("older", &long(older));
        }
    }
}

async fn count(at: &mut Access<'_>, ns: &Namespace, filter: Doc<'static>) -> Result<u64> {
    let stages: Array<'static> =
        [call("$match", Value::Document(filter)), call("$count", Value::from("n"))].into_iter().collect();
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
    let rows = at.all(aggregate(ns, pipeline)).await?;
    Ok(rows.first().map_or(0, |row| u64::try_from(catalog::long(row.get("n"))).unwrap_or(0)))
}
