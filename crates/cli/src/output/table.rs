//! Tables that fit the page.

use super::{Style, visible};

/// On which side a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Between a number and its spread.
const SPREAD: &str = " ± ";

/// Columns with a heading each, and rows, some of which are marked.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<(Vec<String>, bool)>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(heading, align)| (heading.to_owned(), align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row: a cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>, marked: bool) {
        let cells: Vec<String> = cells.into().iter().map(|cell| visible(cell).into_owned()).collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push((cells, marked));
    }

    /// The lines, `width_columns` wide at the most where that is possible without cutting anything off but spreads.
    pub(super) fn lines(&self, width_columns: usize, colors: bool) -> Vec<String> {
        let marks = self.rows.iter().any(|(_, marked)| *marked);
        let mark_columns = if marks { 2 } else { 0 };
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width_of(column)).collect();
        let fits = |gap: usize| mark_columns + widths.iter().sum::<usize>() + gap * (widths.len() - 1) <= width_columns;
        let gap = if fits(2) { "  " } else { " " };
        if !fits(1) && self.rows.iter().flat_map(|(cells, _)| cells).any(|cell| cell.contains(SPREAD)) {
            return self.without_spreads().lines(width_columns, colors);
        }
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let padded = cells.zip(&self.columns).zip(&widths).map(|((cell, (_, align)), &width)| match align {
                Align::Left => pad(cell, width, false),
                Align::Right => pad(cell, width, true),
            });
            padded.collect::<Vec<_>>().join(gap).trim_end().to_owned()
        };
        let indent = |mark: &str| if marks { format!("{mark} ") } else { String::new() };
        let heading = line(&mut self.columns.iter().map(|(heading, _)| heading.as_str()));
        let mut lines = vec![format!("{}{}", indent(" "), Style::Faint.paint(&heading, colors))];
        for (cells, marked) in &self.rows {
            let text = line(&mut cells.iter().map(String::as_str));
            lines.push(if *marked {
                Style::Good.paint(&format!("{}{text}", indent("*")), colors)
            } else {
                format!("{}{text}", indent(" "))
            });
        }
        lines
    }

    /// The same without what numbers may be off by: they matter more than that does.
    fn without_spreads(&self) -> Self {
        let number = |cell: &String| cell.split(SPREAD).next().unwrap_or_default().to_owned();
        let rows = self.rows.iter().map(|(cells, marked)| (cells.iter().map(number).collect(), *marked));
        Self { columns: self.columns.clone(), rows: rows.collect() }
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|(cells, _)| cells[column].as_str());
        cells.chain([self.columns[column].0.as_str()]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// Counts characters, not bytes, as `±` and `µ` take one column but two bytes.
fn pad(cell: &str, width: usize, left: bool) -> String {
    let space = " ".repeat(width.saturating_sub(cell.chars().count()));
    if left { format!("{space}{cell}") } else { format!("{cell}{space}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_marked_row_stands_out() {
        let mut table = Table::new(&[("name", Align::Left), ("rate", Align::Right)]);
        table.row(["one".to_owned(), "1,234 ± 5".to_owned()], false);
        table.row(["three".to_owned(), "7".to_owned()], true);
        assert_eq!(table.lines(80, false), ["  name        rate", "  one    1,234 ± 5", "* three          7"]);
        assert!(table.lines(80, true)[2].contains("\u{1b}[1;32m"));
    }

    #[test]
    fn gaps_shrink_where_the_page_is_narrow() {
        let mut table = Table::new(&[("name", Align::Left), ("rate", Align::Right)]);
        table.row(["one".to_owned(), "1".to_owned()], false);
        assert_eq!(table.lines(9, false)[1], "one     1");
    }

    #[test]
    fn spreads_go_where_gaps_are_not_enough() {
        let mut table = Table::new(&[("name", Align::Left), ("rate", Align::Right)]);
        table.row(["one".to_owned(), "1,234 ± 5".to_owned()], false);
        table.row(["three".to_owned(), "1,234 ± 1,023".to_owned()], true);
        assert_eq!(table.lines(21, false)[2], "* three 1,234 ± 1,023");
        assert_eq!(table.lines(20, false)[2], "* three  1,234");
    }
}
