//! Changes to a document's bytes, collected first and spliced in with one copy.
//!
//! Positions are those of the original bytes throughout. Containers on the way to a change get their length adjusted;
//! everything else is copied in runs.

use crate::raw::{Doc, DocWriter};
use bytes::Bytes;
use smallvec::SmallVec;
use std::ops::Range;

pub(super) struct Edits {
    list: SmallVec<[Edit; 4]>,
    /// Where a container begins, and by how much it grows; a container may come several times.
    growth: SmallVec<[(usize, i64); 8]>,
    /// New elements, one after the other.
    pub(super) scratch: DocWriter,
}

struct Edit {
    /// What goes …
    old: Range<usize>,
    /// … and what comes in its place, in the scratch bytes.
    new: Range<usize>,
}

impl Edits {
    pub(super) fn new() -> Edits {
        Edits { list: SmallVec::new(), growth: SmallVec::new(), scratch: DocWriter::with_capacity(64) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the last change brought in something.
    pub(super) fn last_writes(&self) -> bool {
        self.list.last().is_some_and(|edit| !edit.new.is_empty())
    }

    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Puts what was written to the scratch bytes since `from` in the place of `old`. `containers` are the beginnings of
    /// all that enclose it.
    pub(super) fn replace(&mut self, old: Range<usize>, from: usize, containers: &[usize]) {
        let new = from..self.scratch.len();
        let grown = i64::try_from(new.len()).unwrap_or_default() - i64::try_from(old.len()).unwrap_or_default();
        if grown != 0 {
            self.growth.extend(containers.iter().map(|container| (*container, grown)));
        }
        self.list.push(Edit { old, new });
    }

    /// The document with all changes; `None` if two of them touch the same bytes.
    pub(super) fn splice(mut self, original: &[u8]) -> Option<Doc<'static>> {
        // Changes at the same place stay in the order they were made: that is the order of new fields.
        self.list.sort_by_key(|edit| edit.old.start);
        self.growth.sort_unstable_by_key(|(container, _)| *container);
        let scratch = self.scratch.written();
        let mut result = Vec::with_capacity(original.len() + scratch.len());
        let mut copied = 0;
        let mut growth = self.growth.iter().peekable();
        for edit in &self.list {
            let run = original.get(copied..edit.old.start)?;
            let start = result.len();
            result.extend_from_slice(run);
            while let Some((container, grown)) = growth.next_if(|(container, _)| *container < edit.old.start) {
                adjust(&mut result, start + container.checked_sub(copied)?, *grown)?;
            }
            result.extend_from_slice(scratch.get(edit.new.clone())?);
            copied = edit.old.end;
        }
        result.extend_from_slice(original.get(copied..)?);
        Some(Doc::trusted_bytes(Bytes::from(result)))
    }
}

/// Adds to the length that stands at `position`.
fn adjust(bytes: &mut [u8], position: usize, grown: i64) -> Option<()> {
    let slot = bytes.get_mut(position..position + 4)?;
    let length = i64::from(i32::from_le_bytes((&*slot).try_into().ok()?)) + grown;
    slot.copy_from_slice(&i32::try_from(length).ok()?.to_le_bytes());
    Some(())
}
