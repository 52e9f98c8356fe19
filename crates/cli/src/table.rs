//! Tables for people: plain columns, as wide as they need to be.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// Rows under headings; columns whose heading begins with `>` are numbers and stand to the right.
pub(crate) fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(headings.iter().map(|heading| Cell::new(heading.trim_start_matches('>'))));
    for row in rows {
        table.add_row(row);
    }
    for (at, heading) in headings.iter().enumerate() {
        if let (true, Some(column)) = (heading.starts_with('>'), table.column_mut(at)) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}
