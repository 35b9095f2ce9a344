//! Tables as text.

/// A table: its head, then its rows.
pub fn headed<'h>(
    head: impl IntoIterator<Item = &'h str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Vec<Vec<String>> {
    let head = head.into_iter().map(str::to_owned).collect();
    std::iter::once(head).chain(rows).collect()
}

/// The text of a table: the first column aligned left, the others right.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (i, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            text += &if i == 0 { format!("  {cell}{pad}") } else { format!("  {pad}{cell}") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}
