//! The one projection, used by `find`, `$project`, `$addFields` and `$unset`: inclusion, exclusion, computed fields,
//! `$slice`, `$elemMatch`, positional.
//!
//! A specification becomes a [`Branch`] of steps by field name; [`apply`] walks it beside a document's bytes and copies
//! what is not touched in runs. What only `find` knows is in [`find_only`].

mod add_fields;
mod apply;
mod find_only;
mod meta;
mod parse;
mod tree;

#[cfg(test)]
mod tests;

use crate::env::Env;
use crate::error::Result;
use crate::filter::{Details, Filter};
use crate::op::SortSpec;
use crate::pipeline::expr::Names;
use crate::raw::Doc;
use crate::text::carried;
use crate::value::Path;
use find_only::Slice;
use tree::{Branch, Others};

/// A compiled projection.
#[derive(Clone, Debug)]
pub struct Projection {
    tree: Branch,
    others: Others,
    /// The array on this path shrinks to the element that the filter matched.
    positional: Option<Path>,
    /// Cut after everything else.
    slices: Vec<Slice>,
    /// Whether a field that goes leaves its place, for a later stage of the pipeline to fill.
    places: bool,
    /// As the client wrote it; only a projection of `find` keeps it, for `explain`.
    source: Option<Doc<'static>>,
    /// Whether it reads the score of a text search; only a projection of `find` knows.
    reads_score: bool,
}

impl Projection {
    /// The projection of `find` and `findAndModify`. The positional `$` uses what the match found out ([`Details`]), so
    /// the caller must match with [`Filter::matches_with`].
    pub fn parse_find(spec: &Doc<'_>, filter: &Filter, names: &mut Names) -> Result<Projection> {
        // What the filter reads of a score, it does not find.
        names.take_reads_score();
        let projection = parse::parse(spec, parse::Dialect::Find, names)?;
        let reads_score = names.take_reads_score();
        if projection.positional.is_some() {
            filter.check_no_text()?;
        }
        Ok(Projection { source: Some(spec.clone().into_owned()), reads_score, ..projection })
    }

    /// Refuses to show a score that `filter` does not give.
    pub fn check_score(&self, filter: &Filter) -> Result<()> {
        if self.reads_score && !filter.has_text() { Err(carried::unavailable()) } else { Ok(()) }
    }

    /// Whether a projection of `find` reads the score of a text search.
    pub fn reads_score(&self) -> bool {
        self.reads_score
    }

    /// The specification of a projection of `find`.
    pub fn source(&self) -> Option<&Doc<'static>> {
        self.source.as_ref()
    }

    /// The projection of `$project`.
    pub fn parse_stage(spec: &Doc<'_>, names: &mut Names) -> Result<Projection> {
        parse::parse(spec, parse::Dialect::Stage, names)
    }

    /// The computed fields of `$addFields` and `$set`: everything else stays.
    pub fn parse_add_fields(spec: &Doc<'_>, names: &mut Names) -> Result<Projection> {
        add_fields::parse(spec, names)
    }

    /// The paths that `$unset` takes away.
    pub fn parse_unset(paths: &[&str], names: &mut Names) -> Result<Projection> {
        parse::parse_unset(paths, names)
    }

    /// Tells the projection how its documents are sorted, for `{ $meta: "sortKey" }`; refuses that without a sort.
    pub fn with_sort(mut self, sort: Option<&SortSpec>) -> Result<Projection> {
        self.tree.set_sort(sort)?;
        Ok(self)
    }

    /// Whether it asks for the array index that a filter's match found: match with [`Filter::matches_with`] then.
    pub fn needs_details(&self) -> bool {
        self.positional.is_some()
    }

    pub fn apply(&self, doc: &Doc<'_>, details: &Details, env: &Env) -> Result<Doc<'static>> {
        let reduced = match &self.positional {
            Some(path) => find_only::reduce(doc, &path.parts, details)?,
            None => None,
        };
        let input = reduced.as_ref().map_or_else(|| doc.clone(), Doc::borrow);
        let mut output = match self.is_identity() {
            true => input.into_owned(),
            false => apply::apply(self, &input.borrow(), &doc.borrow(), env)?,
        };
        for slice in &self.slices {
            output = slice.apply(&output);
        }
        Ok(output)
    }

    fn is_identity(&self) -> bool {
        self.others == Others::Keep && !self.tree.changes
    }

    /// The paths it needs of a document, if that is less than all: what a covering index must hold.
    pub fn reads(&self) -> Option<Vec<Path>> {
        if self.others == Others::Keep || self.positional.is_some() {
            return None;
        }
        let mut paths = Vec::new();
        self.tree.collect_reads(&mut Vec::new(), &mut paths).then_some(paths)
    }

    /// Whether what is at `path`, and below, is the same after it as before.
    pub fn keeps(&self, path: &Path) -> bool {
        let cut = self.slices.iter().map(|slice| &slice.path).chain(&self.positional);
        if cut.into_iter().any(|cut| cut.is_prefix_of(path) || path.is_prefix_of(cut)) {
            return false;
        }
        self.tree.keeps(&path.parts, self.others)
    }
}
