//! An outlier array as a person would write it: the view of all items, functions that write whole arrays and parts of them, one that
//! reads a page, one that divides arrays that are there. What goes into the templates is made here.

mod javascript;
mod python;

use crate::languages::Language;
use crate::languages::javascript::{MONGOSH, NODE};
use crate::languages::literals::{Style, quoted, render};
use crate::rule::{Outlier, ShapeCode};
use document::Value;

pub(super) fn code(outlier: &Outlier, language: Language) -> ShapeCode {
    let printed = Printed { outlier };
    match language {
        Language::Mongosh => javascript::code(&printed, &MONGOSH),
        Language::Node => javascript::code(&printed, &NODE),
        Language::Python => python::code(&printed),
    }
}

/// What the languages have to say about one array.
struct Printed<'o> {
    outlier: &'o Outlier,
}

impl Printed<'_> {
    /// What its functions do; the first is called by what creates the indexes.
    fn verbs(&self) -> [&'static str; 8] {
        ["create", "insert", "push", "pull", "set", "delete", "page", "divide"]
    }

    /// The words that every template has.
    fn words(&self, style: &Style) -> Vec<(&'static str, String)> {
        let outlier = self.outlier;
        let pipeline = outlier.needs().views.into_iter().next().map(|view| Value::Array(view.pipeline));
        vec![
            ("host", quoted(&outlier.host.collection)),
            ("overflow", quoted(&outlier.overflow.collection)),
            ("view", quoted(&outlier.items().collection)),
            ("pipeline", pipeline.map(|stages| render(&stages, style, 4)).unwrap_or_default()),
            ("field", quoted(&outlier.field)),
            ("owner", quoted(&outlier.owner)),
            ("item", quoted(&outlier.item)),
            ("flag", quoted(&outlier.flag)),
            ("count", quoted(&outlier.count)),
            ("keep", outlier.keep.to_string()),
            ("keep_bytes", outlier.keep_bytes.unwrap_or_default().to_string()),
        ]
    }
}
