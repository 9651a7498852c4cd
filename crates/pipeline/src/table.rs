//! Tables as people have them: rows of text, with tabs or commas between their fields.
//!
//! Columns are separated by tabs where the first line has one, else by commas. Quotes are those of RFC 4180: a field that begins with one goes to the next
//! that is not doubled, lines and separators included. A quote further in is a letter like others.

use std::borrow::Cow;

/// The rows of a table that have anything in them.
pub struct Rows<'a> {
    rest: &'a str,
    separator: char,
    /// The number of the line that comes next.
    line: usize,
}

/// The line that a row begins in, and its fields.
pub type Row<'a> = (usize, Vec<Cow<'a, str>>);

impl<'a> Rows<'a> {
    /// The rows of `text`.
    pub fn new(text: &'a str) -> Self {
        Self { rest: text, separator: if has_tab(text) { '\t' } else { ',' }, line: 1 }
    }

    /// The next row, or the line that is wrong and what is wrong with it.
    pub fn next_row(&mut self) -> Option<Result<Row<'a>, (usize, &'static str)>> {
        let (blank, rest) = blank_lines(self.rest);
        (self.line, self.rest) = (self.line + blank, rest);
        if rest.is_empty() {
            return None;
        }
        let line = self.line;
        let mut fields = Vec::new();
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(quoted) => self.quoted(quoted),
                None => Ok(self.plain()),
            };
            match field {
                Ok(field) => fields.push(field),
                Err(problem) => return Some(Err((line, problem))),
            }
            if let Some(rest) = self.rest.strip_prefix(self.separator) {
                self.rest = rest;
                continue;
            }
            self.rest = self.rest.strip_prefix("\r\n").or(self.rest.strip_prefix('\n')).unwrap_or(self.rest);
            self.line += 1;
            return Some(Ok((line, fields)));
        }
    }

    /// A field without quotes: up to the separator or the end of the line.
    fn plain(&mut self) -> Cow<'a, str> {
        let end = self.rest.find([self.separator, '\n']).unwrap_or(self.rest.len());
        let (field, rest) = self.rest.split_at(end);
        self.rest = rest;
        Cow::Borrowed(field.trim())
    }

    /// A field whose first quote was taken: up to the next that is not doubled.
    fn quoted(&mut self, mut rest: &'a str) -> Result<Cow<'a, str>, &'static str> {
        let mut field = Cow::Borrowed("");
        loop {
            let (part, after) = rest.split_once('"').ok_or("begins a quote that nothing ends")?;
            self.line += part.matches('\n').count();
            if field.is_empty() {
                field = Cow::Borrowed(part);
            } else {
                field.to_mut().push_str(part);
            }
            let Some(doubled) = after.strip_prefix('"') else {
                let at_end = after.is_empty() || after.starts_with("\r\n") || after.starts_with([self.separator, '\n']);
                self.rest = after;
                return if at_end { Ok(field) } else { Err("goes on behind a quote that ends its field") };
            };
            field.to_mut().push('"');
            rest = doubled;
        }
    }
}

/// Whether the first line that has anything in it has a tab between its fields.
fn has_tab(text: &str) -> bool {
    let (mut quoted, mut begins) = (false, true);
    for letter in blank_lines(text).1.chars() {
        match letter {
            '"' if quoted || begins => quoted = !quoted,
            '\t' if !quoted => return true,
            '\n' if !quoted => return false,
            _ => {}
        }
        // A quote behind a quote is a doubled one.
        begins = letter == ',' || letter == '"';
    }
    false
}

/// How many lines without anything in them `text` begins with, and what follows.
fn blank_lines(mut text: &str) -> (usize, &str) {
    let mut lines = 0;
    while !text.is_empty() {
        let (line, after) = text.split_once('\n').unwrap_or((text, ""));
        if !line.trim().is_empty() {
            break;
        }
        (lines, text) = (lines + 1, after);
    }
    (lines, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str) -> Result<Vec<Vec<String>>, (usize, &'static str)> {
        let mut rows = Rows::new(text);
        let all = std::iter::from_fn(|| rows.next_row());
        all.map(|row| row.map(|(_, fields)| fields.into_iter().map(Cow::into_owned).collect())).collect()
    }

    #[test]
    fn quotes_are_those_of_rfc_4180() {
        assert_eq!(
            rows("a, b ,\"c,\nd\"\r\n\n\"say \"\"hi\"\"\",\"\",5\" disk\n").unwrap(),
            [["a", "b", "c,\nd"], ["say \"hi\"", "", "5\" disk"]]
        );
        assert_eq!(rows("a,b.jpg\tcat, wild\n").unwrap(), [["a,b.jpg", "cat, wild"]]);
        assert_eq!(rows("\"a\tb\",c\n\"d\"\"e\",f").unwrap(), [["a\tb", "c"], ["d\"e", "f"]]);
        assert_eq!(rows("a,b\nc,\"d\n\n"), Err((2, "begins a quote that nothing ends")));
        assert_eq!(rows("\"a\nb\",c\nd,\"e\"f\n"), Err((3, "goes on behind a quote that ends its field")));
    }

    proptest! {
        /// What is written with quotes comes back, whatever it is; and nothing else ends otherwise than in rows or an error.
        #[test]
        fn rows_come_back(table in prop::collection::vec(prop::collection::vec("[a\",\t\r\n é]{0,5}", 2..4), 0..5), noise in "[a\",\t\r\n]{0,20}") {
            for separator in [",", "\t"] {
                let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
                let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(separator) + "\r\n";
                prop_assert_eq!(rows(&table.iter().map(line).collect::<String>()), Ok(table.clone()));
            }
            let _ = rows(&noise);
        }
    }
}
