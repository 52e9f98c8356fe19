//! The operations that were kept of one database: so many bytes, the oldest leave first.

use crate::identity;
use document::Doc;
use std::collections::VecDeque;

/// The size of MongoDB's own collection.
pub(super) const BYTES: usize = 1 << 20;

pub(super) struct BoundedEntries {
    entries: VecDeque<Doc<'static>>,
    bytes: usize,
    uuid: [u8; 16],
}

impl Default for BoundedEntries {
    fn default() -> BoundedEntries {
        BoundedEntries { entries: VecDeque::new(), bytes: 0, uuid: identity::uuid() }
    }
}

impl BoundedEntries {
    pub(super) fn push(&mut self, entry: Doc<'static>) {
        self.bytes += entry.as_bytes().len();
        self.entries.push_back(entry);
        while self.bytes > BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.as_bytes().len();
        }
    }

    pub(super) fn all(&self) -> Vec<Doc<'static>> {
        self.entries.iter().cloned().collect()
    }

    pub(super) fn uuid(&self) -> [u8; 16] {
        self.uuid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{DocWriter, Value};

    #[test]
    fn the_oldest_leave_first() {
        let mut kept = BoundedEntries::default();
        let text = "x".repeat(1000);
        for at in 0..3_000 {
            let mut writer = DocWriter::new();
            writer.append("at", &Value::Int32(at)).append("text", &Value::from(text.as_str()));
            kept.push(writer.finish());
        }
        let all = kept.all();
        let bytes: usize = all.iter().map(|doc| doc.as_bytes().len()).sum();
        assert!(bytes <= BYTES && bytes > BYTES - 2_000, "{bytes}");
        assert_eq!(all.last().unwrap().get("at"), Some(Value::Int32(2_999)));
    }
}
