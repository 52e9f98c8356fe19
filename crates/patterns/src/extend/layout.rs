//! How a text is laid out: its line ends, its indentation, where a node ends, where a line may be put in.

use crate::declare::tree::{Entries, MapEntry, Node, NodeContent};

/// What a text without any nesting is indented by.
const STEP: usize = 2;

pub(super) struct Layout<'t> {
    pub(super) text: &'t str,
    pub(super) newline: &'static str,
    /// How much deeper a collection stands than the word `collections`.
    pub(super) step: usize,
}

impl<'t> Layout<'t> {
    pub(super) fn of(text: &'t str, tree: &Node) -> Layout<'t> {
        let mut layout = Layout { text, newline: newline(text), step: STEP };
        if let NodeContent::Map(top) = &tree.content
            && let Some(collections) = top.find("collections")
            && let NodeContent::Map(inner) = &collections.value.content
            && !layout.is_flow(&collections.value)
            && let Some(first) = inner.first()
        {
            layout.step = column(first).saturating_sub(column(collections)).max(1);
        }
        layout
    }

    pub(super) fn slice(&self, start: usize, end: usize) -> &'t str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Whether a map or list is written in braces or brackets.
    pub(super) fn is_flow(&self, node: &Node) -> bool {
        node.spot.is_some_and(|spot| self.slice(spot.start, self.text.len()).starts_with(['{', '[']))
    }

    /// Behind the last character of an entry. What the parser calls the end of a map in lines may stand far behind it.
    pub(super) fn end_of(&self, entry: &MapEntry) -> usize {
        self.end_of_node(&entry.value).unwrap_or_default().max(entry.spot.map_or(0, |spot| spot.end))
    }

    fn end_of_node(&self, node: &Node) -> Option<usize> {
        let own = node.spot?;
        match &node.content {
            NodeContent::Map(entries) if !self.is_flow(node) => entries.last().map(|entry| self.end_of(entry)),
            NodeContent::List(items) if !self.is_flow(node) => items.last().and_then(|item| self.end_of_node(item)),
            // Nothing is written: the parser's place of it is that of the next word.
            NodeContent::Scalar(_) if own.start == own.end => None,
            _ => Some(own.start + self.slice(own.start, own.end).trim_end().len()),
        }
    }

    /// Where the line of `at` begins.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.slice(0, at).rfind('\n').map_or(0, |end| end + 1)
    }

    /// Behind the line of `at`, with its end.
    pub(super) fn next_line(&self, at: usize) -> usize {
        self.slice(at, self.text.len()).find('\n').map_or(self.text.len(), |end| at + end + 1)
    }

    /// Behind the line of `at` and the comments right beneath it that are indented by `indent` or more.
    pub(super) fn behind_comments(&self, at: usize, indent: usize) -> usize {
        let mut place = self.next_line(at);
        loop {
            let line = self.slice(place, self.next_line(place));
            let comment = line.trim_start_matches(' ');
            if !comment.starts_with('#') || line.len() - comment.len() < indent {
                return place;
            }
            place += line.len();
        }
    }

    /// The indentation of `entry` if it is the first word of its line.
    pub(super) fn indent(&self, entry: &MapEntry) -> Option<usize> {
        let spot = entry.spot?;
        let before = self.slice(self.line_start(spot.start), spot.start);
        before.bytes().all(|byte| byte == b' ').then_some(before.len())
    }

    /// The indentation of the entries of a map in lines.
    pub(super) fn indent_of(&self, entries: &Entries) -> Option<usize> {
        entries.first().and_then(|entry| self.indent(entry))
    }
}

/// How most lines end.
pub(super) fn newline(text: &str) -> &'static str {
    let with_return = text.matches("\r\n").count();
    if with_return > 0 && with_return * 2 >= text.matches('\n').count() { "\r\n" } else { "\n" }
}

fn column(entry: &MapEntry) -> usize {
    entry.spot.map_or(1, |spot| spot.column)
}
