//! The rows of sums and averages: the same as the stages of [`super::exact`].

use super::exact::{Shown, visible};
use crate::fields::fold::RowMaker;
use crate::rule::numbers::{Numbers, StateForm};
use document::pipeline::expr::field_of_document;
use document::value::Path;
use document::{Doc, DocWriter, Result, Value};

#[derive(Debug)]
pub(super) struct SumRows {
    pub(super) path: Path,
    pub(super) shown: Shown,
    pub(super) form: StateForm,
}

impl RowMaker for SumRows {
    type Gathered = Numbers;

    fn add(&self, sum: &mut Numbers, child: &Doc<'_>) -> Result<()> {
        let (numbers, children) =
            (Numbers::of(&field_of_document(child, &self.path.parts)), i64::from(self.form.children));
        *sum = sum.rounded_plus(&Numbers { children, ..numbers });
        Ok(())
    }

    fn row(&self, key: &Value<'_>, sum: Numbers) -> Doc<'static> {
        let mut row = DocWriter::with_capacity(128);
        row.append("_id", key);
        row.append("expectedState", &Value::Document(sum.to_state(self.form)));
        row.append("expected", &visible(self.shown, &sum));
        row.finish()
    }

    fn reads(&self) -> Option<Vec<Path>> {
        Some(vec![self.path.clone()])
    }
}
