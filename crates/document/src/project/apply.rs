//! Applying a tree of steps to a document's bytes: one walk, untouched neighbours copied together.
//!
//! What is included keeps the document's order. Computed fields come where the field was if the others are kept,
//! otherwise at the end in the order of the specification.

use super::Projection;
use super::tree::{Branch, Compute, Others, Step, without_sort};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::pipeline::expr::Scope;
use crate::pipeline::sort_spec;
use crate::raw::{Array, Blob, Doc, DocWriter, kind, with_index};
use crate::value::Value;
use smallvec::SmallVec;

/// `root` is the whole original document, which expressions see; `doc` is what the steps are applied to.
pub(super) fn apply(projection: &Projection, doc: &Doc<'_>, root: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
    let Projection { tree, others, places, .. } = projection;
    let mut writer = DocWriter::with_capacity(match others {
        Others::Keep => doc.as_bytes().len() + 64,
        Others::Drop => 256,
    });
    let fills = *places && *others == Others::Drop && tree.computes;
    let scope = Scope::new(root.borrow(), env);
    let mut walk = Walk { others: *others, places: *places, fills, scope, writer: &mut writer };
    match walk.document(tree, doc) {
        Ok(()) => Ok(writer.finish()),
        Err(error) => Err(walk.first_error(tree).unwrap_or(error)),
    }
}

struct Walk<'a, 'w> {
    others: Others,
    /// Whether what goes leaves its place.
    places: bool,
    /// Whether even a path of which nothing is there takes a place: where anything at all is computed.
    fills: bool,
    scope: Scope<'a>,
    writer: &'w mut DocWriter,
}

impl<'a> Walk<'a, '_> {
    fn document(&mut self, branch: &'a Branch, doc: &Doc<'_>) -> Result<()> {
        let bytes = doc.as_bytes();
        let mut seen: SmallVec<[bool; 16]> = smallvec::smallvec![false; branch.steps.len()];
        let mut wanted = branch.wanted;
        let mut fields = doc.iter();
        // Where the run of fields begins that are to be copied as they are.
        let mut run = fields.position();
        loop {
            let start = fields.position();
            if self.others == Others::Drop && wanted == 0 {
                break;
            }
            let Some((name, kind, value)) = fields.next_slot() else { break };
            let mut found = branch.find(name.as_bytes());
            if kind == kind::PLACE {
                found = found.filter(|(_, step)| self.others == Others::Keep && step.computes());
            }
            if let Some((at, step)) = found
                && let Some(seen) = seen.get_mut(at)
                && !std::mem::replace(seen, true)
                && matches!(step, Step::Include | Step::Branch(_))
            {
                wanted = wanted.saturating_sub(1);
            }
            match (found, self.others) {
                (Some((_, Step::Include)), _) | (None, Others::Keep) => continue,
                (found, others) => {
                    self.writer.append_elements(bytes.get(run..start).unwrap_or_default());
                    run = fields.position();
                    match (found, others) {
                        (Some((at, Step::Branch(branch))), _) => {
                            let wrote = self.value(branch, name.as_str(), kind, &value)?;
                            if let Some(seen) = seen.get_mut(at) {
                                *seen = wrote;
                            }
                        }
                        (Some((_, Step::Compute(compute))), Others::Keep) => self.compute(name.as_str(), compute)?,
                        (Some((_, Step::Exclude)), Others::Keep) => self.place(name.as_str(), self.places),
                        _ => {}
                    }
                }
            }
        }
        let end = fields.position();
        self.writer.append_elements(bytes.get(run..end).unwrap_or_default());
        if !branch.computes && !self.fills {
            return Ok(());
        }
        for (at, (name, step)) in branch.steps.iter().enumerate() {
            let seen = seen.get(at).copied().unwrap_or_default();
            match step {
                Step::Compute(compute) if !seen || self.others == Others::Drop => self.compute(name, compute)?,
                Step::Branch(inner) if !seen && inner.computes => self.make(name, inner)?,
                Step::Branch(_) if !seen => self.place(name, self.fills),
                _ => {}
            }
        }
        Ok(())
    }

    fn place(&mut self, name: &str, leave: bool) {
        self.writer.append_or_place(name, &Value::Missing, leave);
    }

    /// If several fields cannot be computed, MongoDB reports the one that the specification names first.
    fn first_error(&mut self, branch: &'a Branch) -> Option<Error> {
        branch.steps.iter().find_map(|(_, step)| match step {
            Step::Compute(Compute::Expr(expr)) => expr.eval(&mut self.scope).err(),
            Step::Branch(inner) => self.first_error(inner),
            _ => None,
        })
    }

    /// Writes what the branch makes of a value, if it makes something of it. Returns whether it wrote.
    fn value(&mut self, branch: &'a Branch, name: &str, kind: u8, value: &Blob<'_>) -> Result<bool> {
        match kind {
            kind::DOCUMENT => {
                self.writer.start_document(name);
                self.document(branch, &Doc::trusted(value.as_slice()))?;
                self.writer.end();
            }
            kind::ARRAY => {
                self.writer.start_array(name);
                let mut count = 0;
                let items = Array::trusted(value.as_slice());
                let mut items = items.raw_iter();
                while let Some((_, kind, item)) = items.next_raw() {
                    if with_index(count, |name| self.value(branch, name, kind, &item))? {
                        count += 1;
                    }
                }
                self.writer.end();
            }
            _ if branch.computes => self.make(name, branch)?,
            _ if self.others == Others::Keep => {
                self.writer.append_raw(name, kind, value.as_slice());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A document of nothing but the computed fields.
    fn make(&mut self, name: &str, branch: &'a Branch) -> Result<()> {
        self.writer.start_document(name);
        for (name, step) in &branch.steps {
            match step {
                Step::Compute(compute) => self.compute(name, compute)?,
                Step::Branch(inner) if inner.computes => self.make(name, inner)?,
                Step::Branch(_) => self.place(name, self.fills),
                _ => {}
            }
        }
        self.writer.end();
        Ok(())
    }

    fn compute(&mut self, name: &str, compute: &'a Compute) -> Result<()> {
        match compute {
            Compute::Expr(expr) => {
                let value = expr.eval(&mut self.scope)?;
                self.writer.append_or_place(name, &value, self.places);
            }
            Compute::ElemMatch { field, test } => {
                if let Some(Value::Array(items)) = self.scope.root.get(field)
                    && let Some((_, item)) = test.element_of(&items, self.scope.env)?
                {
                    self.writer.start_array(name).append("0", &item).end();
                }
            }
            Compute::SortKey(Some(sort)) => {
                let key = sort_spec::key(sort, &self.scope.root)?;
                self.writer.append(name, &Value::Array(key.into_iter().collect()));
            }
            Compute::SortKey(None) => return Err(without_sort()),
            Compute::Nothing => {}
        }
        Ok(())
    }
}
