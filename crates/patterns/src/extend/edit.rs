//! Changes of a text by byte offsets.

/// `text` stands where `at..until` was; nothing was there if the two are the same.
#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) until: usize,
    /// Of two insertions at one place the deeper one comes first: it belongs to what stands above.
    pub(super) depth: usize,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn insert(at: usize, depth: usize, text: String) -> Edit {
        Edit { at, until: at, depth, text }
    }
}

pub(super) fn applied(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.at, std::cmp::Reverse(edit.depth)));
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for edit in &edits {
        out.push_str(text.get(from..edit.at).unwrap_or_default());
        out.push_str(&edit.text);
        from = edit.until.max(from);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}
