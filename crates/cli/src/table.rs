//! Text for people that fits 80 columns: tables of plain columns, paragraphs that are folded, values that are cut.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

/// What every terminal has.
pub(crate) const WIDTH: usize = 80;

/// Rows under headings; columns whose heading begins with `>` are numbers and stand to the right. What is too wide is folded
/// inside its cell.
pub(crate) fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(WIDTH).unwrap_or(u16::MAX));
    table.set_header(headings.iter().map(|heading| Cell::new(heading.trim_start_matches('>'))));
    for row in rows {
        table.add_row(row.iter().map(|cell| crate::plain::line(cell)));
    }
    for (at, heading) in headings.iter().enumerate() {
        if let (true, Some(column)) = (heading.starts_with('>'), table.column_mut(at)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

/// Said at the top of an answer that was given while the rules are switched off.
pub(crate) fn switched_off(answer: &bson::Document, meaning: &str) -> String {
    match answer.get_bool("raw") {
        Ok(true) => format!(
            "{}\n",
            folded("", &format!("The rules are switched off for this run of the server (--raw): {meaning}"))
        ),
        _ => String::new(),
    }
}

/// A text of at most `width` characters; a longer one ends with `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// `head` and the text behind it, folded at spaces; further lines stand under the text's first word. A word that is longer than
/// a line is divided.
pub(crate) fn folded(head: &str, text: &str) -> String {
    let indent = head.chars().count().min(WIDTH / 2);
    let mut out = head.to_owned();
    let mut column = head.chars().count();
    let mut is_first = true;
    for word in text.split(' ') {
        let length = word.chars().count();
        let space = usize::from(!is_first);
        if column + space + length > WIDTH && column > indent {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if !is_first {
            out.push(' ');
            column += 1;
        }
        is_first = false;
        for letter in word.chars() {
            if column == WIDTH {
                out.push_str(&format!("\n{:indent$}", ""));
                column = indent;
            }
            out.push(letter);
            column += 1;
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
    }

    #[test]
    fn tables_fit_whatever_is_in_them() {
        let long =
            "a_collection_with_a_very_long_name_indeed.and_a_field_of_which_nobody_thought_that_it_would_be_so_long";
        let row = |name: &str| vec![name.to_owned(), name.to_owned(), "1,234,567".to_owned(), "{ \"a\": 1 }".repeat(9)];
        let told = table(&["rule", "database", ">count", "stored"], vec![row(long), row("short")]);
        assert!(widest(&told) <= WIDTH, "{told}");
        let letters: String = told.split_whitespace().collect();
        assert!(letters.contains("1,234,567") && told.contains("short"), "{told}");
        let small = table(&["rule", ">count"], vec![vec!["a.b".to_owned(), "7".to_owned()]]);
        assert_eq!(small, " rule  count\n a.b       7\n");
    }

    #[test]
    fn paragraphs_are_folded_and_values_cut() {
        let told = folded("Problem    ", &"some words ".repeat(30));
        assert!(widest(&told) <= WIDTH && told.lines().skip(1).all(|line| line.starts_with("           ")), "{told}");
        assert_eq!(folded("1. ", "a b"), "1. a b\n");
        let exact = folded("", &format!("{} bbbbb", "a".repeat(75)));
        assert_eq!(exact, format!("{}\nbbbbb\n", "a".repeat(75)));
        let told = folded("1. ", &format!("short {} short", "long".repeat(50)));
        assert!(
            widest(&told) <= WIDTH && told.starts_with("1. short\n   long") && told.ends_with("long short\n"),
            "{told}"
        );
        assert_eq!((cut("abc", 3), cut("abcd", 3)), ("abc".to_owned(), "ab…".to_owned()));
    }
}
