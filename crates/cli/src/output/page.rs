//! A page of text: headings, paragraphs, facts and tables, wrapped to the page's width.

use super::{Style, Table, visible};

/// Text for standard output.
pub(crate) struct Page {
    text: String,
    colors: bool,
    width_columns: usize,
}

impl Page {
    pub(super) fn new(colors: bool, width_columns: usize) -> Self {
        Self { text: String::new(), colors, width_columns }
    }

    /// A heading, with space before it unless it comes first.
    pub(crate) fn heading(&mut self, text: &str) {
        self.gap();
        self.push_line(&Style::Heading.paint(&visible(text), self.colors));
    }

    /// An empty line, unless the page is empty.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A line, however long.
    pub(crate) fn line(&mut self, text: &str) {
        self.push_line(&visible(text));
    }

    /// Lines of a text of ours, as they are.
    pub(crate) fn lines(&mut self, text: &str) {
        text.lines().for_each(|line| self.push_line(line));
    }

    fn push_line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// A paragraph, wrapped.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.hanging("", text);
    }

    /// A paragraph whose first line begins with `label`, and whose others are indented as far.
    pub(crate) fn hanging(&mut self, label: &str, text: &str) {
        let indent = label.chars().count();
        let mut line = visible(label).into_owned();
        let mut columns = indent;
        let mut empty = true;
        for word in text.split_whitespace() {
            let word = &*visible(word);
            let length = word.chars().count();
            if !empty && columns + 1 + length > self.width_columns {
                let full = std::mem::replace(&mut line, " ".repeat(indent));
                self.push_line(&full);
                (columns, empty) = (indent, true);
            }
            if !empty {
                line.push(' ');
                columns += 1;
            }
            line.push_str(word);
            columns += length;
            empty = false;
        }
        self.push_line(line.trim_end());
    }

    /// What to know before relying on the results above, a paragraph each.
    pub(crate) fn warnings(&mut self, texts: &[String]) {
        for text in texts {
            self.gap();
            self.hanging("warning: ", text);
        }
    }

    /// Names and what they are, in two columns.
    pub(crate) fn facts(&mut self, facts: &[(&str, String)]) {
        let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, value) in facts {
            let space = " ".repeat(width - name.chars().count());
            self.hanging(&format!("{name}{space}  "), value);
        }
    }

    /// A table.
    pub(crate) fn table(&mut self, table: &Table) {
        for line in table.lines(self.width_columns, self.colors) {
            self.push_line(&line);
        }
    }

    /// What to do next: a sentence and a command to type.
    pub(crate) fn next_step(&mut self, sentence: &str, command: &str) {
        self.gap();
        self.paragraph(sentence);
        self.push_line(&format!("  {}", Style::Heading.paint(&visible(command), self.colors)));
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_wrap_and_hang() {
        let mut page = Page::new(false, 20);
        page.hanging("note: ", "one two three four five");
        page.facts(&[("a", "1".to_owned()), ("bcd", "2".to_owned())]);
        assert_eq!(page.into_text(), "note: one two three\n      four five\na    1\nbcd  2\n");
    }

    #[test]
    fn a_word_longer_than_the_line_stands_alone() {
        let mut page = Page::new(false, 5);
        page.paragraph("a abcdefgh b");
        assert_eq!(page.into_text(), "a\nabcdefgh\nb\n");
    }
}
