//! Tables that fit the page.

use super::{Style, visible};

/// The alignment of a column's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Between a number and its spread.
const SPREAD: &str = " ± ";

/// Between a number and its interval.
const INTERVAL: &str = " (";

/// Columns with headings, and rows, some of which are marked.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<(Vec<String>, bool)>,
    /// Headings of columns that matter less than an interval, the least first.
    lesser: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|&(heading, align)| (heading.to_owned(), align)).collect();
        Self { columns, rows: Vec::new(), lesser: Vec::new() }
    }

    /// Columns that are dropped, in this order, if intervals would not fit next to them.
    pub(crate) fn leave_out_before_intervals(&mut self, headings: &[&str]) {
        self.lesser = headings.iter().map(|&heading| heading.to_owned()).collect();
    }

    /// Adds a row: a cell for each column.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>, marked: bool) {
        let cells: Vec<String> = cells.into().iter().map(|cell| visible(cell).into_owned()).collect();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push((cells, marked));
    }

    /// The lines, `width_columns` wide at the most where that is possible without cutting anything off but spreads and what matters less.
    pub(super) fn lines(&self, width_columns: usize, colors: bool) -> Vec<String> {
        let marks = self.rows.iter().any(|(_, marked)| *marked);
        let mark_columns = if marks { 2 } else { 0 };
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width_of(column)).collect();
        let fits = |gap: usize| mark_columns + widths.iter().sum::<usize>() + gap * (widths.len() - 1) <= width_columns;
        let gap = if fits(2) { "  " } else { " " };
        if !fits(1) {
            let narrower = self.has(INTERVAL).then(|| self.without_a_lesser_column()).flatten();
            let narrower =
                narrower.or_else(|| (self.has(SPREAD) || self.has(INTERVAL)).then(|| self.without_spreads()));
            if let Some(narrower) = narrower {
                return narrower.lines(width_columns, colors);
            }
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

    /// Whether a number has `mark` after it.
    fn has(&self, mark: &str) -> bool {
        self.rows.iter().any(|(cells, _)| {
            cells.iter().zip(&self.columns).any(|(cell, (_, align))| *align == Align::Right && cell.contains(mark))
        })
    }

    /// The same without what numbers may be off by: they matter more than that does.
    fn without_spreads(&self) -> Self {
        let number = |(cell, (_, align)): (&String, &(String, Align))| match align {
            Align::Left => cell.clone(),
            Align::Right => {
                let number = cell.split(SPREAD).next().unwrap_or_default();
                number.split(INTERVAL).next().unwrap_or_default().to_owned()
            }
        };
        let rows = self
            .rows
            .iter()
            .map(|(cells, marked)| (cells.iter().zip(&self.columns).map(number).collect(), *marked))
            .collect();
        Self { columns: self.columns.clone(), rows, lesser: self.lesser.clone() }
    }

    /// The same without the column that matters least; `None` where all that are left matter.
    fn without_a_lesser_column(&self) -> Option<Self> {
        let (heading, lesser) = self.lesser.split_first()?;
        let kept = |column: &usize| self.columns[*column].0 != *heading;
        let kept: Vec<usize> = (0..self.columns.len()).filter(kept).collect();
        let rows = self
            .rows
            .iter()
            .map(|(cells, marked)| (kept.iter().map(|&column| cells[column].clone()).collect(), *marked))
            .collect();
        let columns = kept.iter().map(|&column| self.columns[column].clone()).collect();
        Some(Self { columns, rows, lesser: lesser.to_vec() })
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

    #[test]
    fn columns_that_matter_less_go_before_intervals() {
        let columns = [("name", Align::Left), ("rate", Align::Right), ("model", Align::Right), ("bound", Align::Left)];
        let mut table = Table::new(&columns);
        table.leave_out_before_intervals(&["model"]);
        table.row(["one", "≈ 7 (6-9)", "7", "CPU (both)"].map(str::to_owned), false);
        assert_eq!(table.lines(40, false)[1], "one   ≈ 7 (6-9)      7  CPU (both)");
        assert_eq!(table.lines(28, false)[1], "one   ≈ 7 (6-9)  CPU (both)");
        assert_eq!(table.lines(24, false)[1], "one    ≈ 7  CPU (both)", "words are no interval");
        let mut quiet = Table::new(&columns);
        quiet.leave_out_before_intervals(&["model"]);
        quiet.row(["one", "7 ± 2,000", "7", "CPU"].map(str::to_owned), false);
        assert_eq!(quiet.lines(22, false), ["name rate model bound", "one     7     7 CPU"]);
    }
}
