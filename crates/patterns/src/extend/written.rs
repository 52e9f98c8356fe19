//! How an entry of the addition is written where it goes: as lines of its own, or inside braces.

use super::layout::Layout;
use crate::declare::tree::MapEntry;
use crate::languages::yaml;

/// Lines with `indent`, each with its end; nested lines are indented as much as the file's are.
pub(super) fn in_lines(added: &Layout<'_>, entry: &MapEntry, indent: usize, file: &Layout<'_>) -> String {
    let key = entry.spot.map_or(0, |spot| spot.start);
    let (start, base) = match added.indent(entry) {
        Some(base) => (above(added, key, base), base),
        // Inside braces: its further lines, if there are any, are indented anyhow.
        None => (key, 0),
    };
    let text = added.slice(start, added.end_of(entry));
    let end = added.end_of(entry);
    // What stands behind it on its last line is a comment, unless it is inside braces.
    let rest = if added.indent(entry).is_some() { added.slice(end, added.next_line(end)).trim_end() } else { "" };
    let mut out = String::new();
    for (number, line) in format!("{text}{rest}").lines().enumerate() {
        let words = line.trim_start_matches(' ');
        let deeper = (line.len() - words.len()).saturating_sub(base);
        let deeper = match added.step {
            _ if number == 0 => 0,
            step if deeper.is_multiple_of(step) => deeper / step * file.step,
            _ => deeper,
        };
        if words.trim_end().is_empty() {
            out.push_str(file.newline);
            continue;
        }
        out.push_str(&" ".repeat(indent + deeper));
        out.push_str(words.trim_end_matches('\r'));
        out.push_str(file.newline);
    }
    out
}

/// Where the comments begin that stand right above a line, indented as it is.
fn above(added: &Layout<'_>, key: usize, base: usize) -> usize {
    let mut start = added.line_start(key);
    while start > 0 {
        let before = added.line_start(start - 1);
        let line = added.slice(before, start);
        if line.len() - line.trim_start_matches(' ').len() != base || !line.trim_start().starts_with('#') {
            break;
        }
        start = before;
    }
    start
}

/// `name: value` on one line, as it may stand inside braces.
pub(super) fn in_braces(entry: &MapEntry) -> String {
    format!("{}: {}", yaml::key(&entry.key), yaml::flow(&entry.value.to_value()))
}
