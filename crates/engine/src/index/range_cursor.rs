//! A place in a list of key ranges, which outlives the snapshot that it was reached in.

use super::access::ranges::KeyRange;
use super::scan::{Row, SeenKeys};
use crate::store::Space;
use crate::transaction::snapshot::{ReadSnapshot, SnapshotRange};
use bytes::Bytes;
use document::Result;
use std::collections::VecDeque;

pub(super) struct Cursor {
    /// How many ranges are behind.
    pub(super) begun: usize,
    pub(super) open: Option<SnapshotRange>,
    pub(super) last: Option<Bytes>,
    pub(super) seen: Option<SeenKeys>,
    /// An entry that was read too early.
    pub(super) ahead: Option<(Bytes, Bytes)>,
    /// Rows of entries that were cut, in order by their documents.
    pub(super) gathered: VecDeque<Row>,
}

impl Cursor {
    pub(super) fn new(may_repeat: bool) -> Cursor {
        Cursor {
            begun: 0,
            open: None,
            last: None,
            seen: may_repeat.then(SeenKeys::default),
            ahead: None,
            gathered: VecDeque::new(),
        }
    }

    /// The next key and value, beginning the next range when one ends.
    pub(super) fn next(
        &mut self,
        ranges: &[KeyRange],
        reverse: bool,
        snapshot: &ReadSnapshot,
        space: &Space,
        seeks: &mut u64,
    ) -> Result<Option<(Bytes, Bytes)>> {
        if let Some(entry) = self.ahead.take() {
            return Ok(Some(entry));
        }
        loop {
            if let Some(open) = &mut self.open {
                match open.next() {
                    Some(entry) => return entry.map(Some),
                    None => {
                        self.open = None;
                        self.last = None;
                        self.begun += 1;
                    }
                }
            }
            let at = if reverse { ranges.len().checked_sub(self.begun + 1) } else { Some(self.begun) };
            let Some(range) = at.and_then(|at| ranges.get(at)) else { return Ok(None) };
            *seeks += 1;
            self.open = Some(match (&self.last, reverse) {
                (None, _) => snapshot.range(space, &range.from, &range.to, reverse),
                (Some(last), true) => snapshot.range(space, &range.from, last, true),
                (Some(last), false) => {
                    let behind = [last, &[0][..]].concat();
                    snapshot.range(space, &behind, &range.to, false)
                }
            });
        }
    }
}
