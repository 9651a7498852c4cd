//! Recordings as delimited text: one line per instant, with a header or without.
//!
//! The delimiter is the first of tab, `;`, `,` and space that the first line has. The first line is a header if a column is
//! chosen by name, or if none of its cells is a number. A byte order mark before it, empty lines and lines that start with `#` count for nothing.
//! A cell that is no number is an error, and so is a line that lacks a chosen column.

use super::read::{Channel, FINITE_HINT, Recording, SignalOptions, ask_for, check_limit};
use crate::memory::{self, MemoryGate};
use crate::{Error, Result};

const FORMAT: &str = "csv";

/// What some programs put before UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn read(bytes: &[u8], options: &SignalOptions, gate: MemoryGate<'_>) -> Result<Recording> {
    let start = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut lines = Lines { bytes, offset: start, number: 0 };
    let Some(first) = lines.next() else { return Err(Error::format(FORMAT, "it has no lines")) };
    let text = text_of(&first)?;
    let delimiter = ['\t', ';', ',', ' '].into_iter().find(|&delimiter| text.contains(delimiter)).unwrap_or(',');
    let cells: Vec<&str> = text.split(delimiter).map(clean).collect();
    let columns = columns(&cells, options)?;
    let by_name = options.channels.iter().any(|channel| matches!(channel, Channel::Name(_)));
    let is_header = by_name || cells.iter().all(|cell| cell.parse::<f64>().is_err());
    if !is_header {
        lines = Lines { bytes, offset: start, number: 0 };
    }
    // Each line is cut once: for each column, which channels want it.
    let last = columns.iter().max().copied().unwrap_or(0);
    let mut wanted = vec![Vec::new(); last + 1];
    for (channel, &column) in columns.iter().enumerate() {
        wanted[column].push(channel);
    }
    let count = bytes.iter().map(|&byte| u64::from(byte == b'\n')).sum::<u64>() + 1;
    // A buffer that grows takes twice of what it holds at the most.
    ask_for(count.saturating_mul(2), columns.len(), 0, gate)?;
    let mut channels = vec![Vec::new(); columns.len()];
    for line in lines {
        check_limit(channels[0].len() as u64 + 1, options)?;
        let text = text_of(&line)?;
        let mut cells = text.split(delimiter);
        for (column, wanted) in wanted.iter().enumerate() {
            let cell = cells.next().ok_or_else(|| {
                let problem = format!("line `{}` has `{column}` columns, but column `{last}` is wanted", line.number);
                Error::format_at(FORMAT, problem, line.start)
            })?;
            if wanted.is_empty() {
                continue;
            }
            let value: f64 = clean(cell).parse().map_err(|_| no_number(cell, column, &line))?;
            if !value.is_finite() {
                return Err(not_finite(cell, column, &line));
            }
            for &channel in wanted {
                memory::reserve(&mut channels[channel], 1)?;
                channels[channel].push(value);
            }
        }
    }
    if channels[0].is_empty() {
        return Err(Error::format(FORMAT, "it has a header but no numbers"));
    }
    Ok(Recording::uncalibrated(channels))
}

fn no_number(cell: &str, column: usize, line: &Line<'_>) -> Error {
    let problem = format!("{} is not a number", position(cell, column, line));
    Error::format_at(FORMAT, problem, line.start)
}

fn not_finite(cell: &str, column: usize, line: &Line<'_>) -> Error {
    Error::unsupported(FORMAT, format!("a number that is not finite, {},", position(cell, column, line)), FINITE_HINT)
}

fn position(cell: &str, column: usize, line: &Line<'_>) -> String {
    let cell: String = clean(cell).chars().take(40).collect();
    format!("`{cell}` in line `{}`, column `{column}`", line.number)
}

/// The chosen columns by number.
fn columns(cells: &[&str], options: &SignalOptions) -> Result<Vec<usize>> {
    let columns = options.channels.iter().map(|channel| {
        let found = match channel {
            Channel::Number(number) => (*number < cells.len()).then_some(*number),
            Channel::Name(name) => cells.iter().position(|cell| cell == name),
        };
        found.ok_or_else(|| {
            let head: String = cells.join(", ").chars().take(200).collect();
            Error::usage("there is no such column", format!("one of the first line, {head}"), channel)
        })
    });
    columns.collect()
}

fn clean(cell: &str) -> &str {
    cell.trim().trim_matches('"')
}

struct Line<'a> {
    bytes: &'a [u8],
    start: usize,
    number: usize,
}

fn text_of<'a>(line: &Line<'a>) -> Result<&'a str> {
    std::str::from_utf8(line.bytes).map_err(|_| {
        let problem = format!("line `{}` is not UTF-8 text (for raw numbers say `format = \"raw\"`)", line.number);
        Error::format_at(FORMAT, problem, line.start)
    })
}

/// The lines that count.
struct Lines<'a> {
    bytes: &'a [u8],
    offset: usize,
    number: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        loop {
            let start = self.offset;
            let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
            let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            self.offset = start + length + 1;
            self.number += 1;
            let bytes = rest[..length].trim_ascii();
            if !bytes.is_empty() && bytes[0] != b'#' {
                return Some(Line { bytes, start, number: self.number });
            }
        }
    }
}
