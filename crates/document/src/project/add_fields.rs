//! The specification of `$addFields`: every value is an expression, documents without operators are sub-fields.

use super::Projection;
use super::parse::fail;
use super::tree::{Branch, Compute, Others, Step};
use crate::error::Result;
use crate::pipeline::expr::{self, Names};
use crate::raw::Doc;
use crate::value::{Path, Value, show};

pub(super) fn parse(spec: &Doc<'_>, names: &mut Names) -> Result<Projection> {
    let mut parse = Parse { whole: spec, names, paths: Vec::new(), tree: Branch::default() };
    for (name, value) in spec.iter() {
        let path = Path::field_path(name.as_str())?;
        parse.field(&path, &value)?;
    }
    let Parse { mut tree, names, .. } = parse;
    tree.finish();
    let places = tree.leaves_places(names);
    Ok(Projection {
        tree,
        others: Others::Keep,
        positional: None,
        slices: Vec::new(),
        places,
        source: None,
        reads_score: false,
    })
}

struct Parse<'s, 'n> {
    whole: &'s Doc<'s>,
    names: &'n mut Names,
    /// What was set so far.
    paths: Vec<Path>,
    tree: Branch,
}

impl Parse<'_, '_> {
    fn field(&mut self, path: &Path, value: &Value<'_>) -> Result<()> {
        let Value::Document(inner) = value else { return self.compute(path, value) };
        if inner.is_empty() {
            return fail(40180, format!("an empty object is not a valid value. Found empty object at path {path}"));
        }
        let count = inner.iter().count();
        if inner.iter().any(|(name, _)| name.as_bytes().first() == Some(&b'$')) {
            if count > 1 {
                return fail(
                    40181,
                    format!(
                        "an expression specification must contain exactly one field, the name of the expression. Found {count} fields in {}, while parsing object {}",
                        show::document(inner),
                        show::document(self.whole)
                    ),
                );
            }
            return self.compute(path, value);
        }
        for (name, value) in inner.iter() {
            let name = name.as_str();
            if name.contains('.') {
                let whole = show::document(self.whole);
                return fail(40183, format!("cannot use dotted field name '{name}' in a sub object: {whole}"));
            }
            let mut below = path.clone();
            below.parts.extend(Path::field_path(name)?.parts);
            self.field(&below, &value)?;
        }
        Ok(())
    }

    fn compute(&mut self, path: &Path, value: &Value<'_>) -> Result<()> {
        let conflicts = self.paths.iter().filter(|other| other.is_prefix_of(path) || path.is_prefix_of(other));
        if let Some(other) = conflicts.min() {
            return fail(
                40176,
                format!(
                    "specification contains two conflicting paths. Cannot specify both '{path}' and '{other}': {}",
                    show::document(self.whole)
                ),
            );
        }
        self.paths.push(path.clone());
        let expr = expr::parse(value, self.names)?;
        let Some((last, leading)) = path.parts.split_last() else { return Ok(()) };
        let mut branch = &mut self.tree;
        for part in leading {
            match branch.enter(&part.name) {
                Some(below) => branch = below,
                // Conflicting paths were refused above.
                None => return Ok(()),
            }
        }
        branch.steps.push((last.name.clone(), Step::Compute(Compute::Expr(expr))));
        Ok(())
    }
}
