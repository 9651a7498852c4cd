//! A web page, or another text.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use forebay_codec::text::{ArticleLimits, article_text};
use forebay_plan::units;
use serde::Serialize;

use super::sort::Sort;
use super::{read_up_to, reader};
use crate::error::{Error, Result};
use crate::output::Page;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    /// `html` or `text`.
    format: &'static str,
    bytes: u64,
    lines: u64,
    /// Of a page: the text of its article.
    letters: Option<u64>,
    words: Option<u64>,
}

pub(super) fn inspect(path: &Path, sort: Sort, bytes: u64) -> Result<Found> {
    let mut found =
        Found { path: path.to_owned(), format: sort.name(), bytes, lines: lines(path)?, letters: None, words: None };
    let limits = ArticleLimits::default();
    if sort == Sort::Html {
        // One byte more than allowed, so that a longer page is refused as too long.
        let page = read_up_to(path, limits.max_bytes as u64 + 1)?;
        let text =
            article_text(&page, None, &limits).map_err(|source| Error::Codec { path: path.to_owned(), source })?;
        found.letters = Some(text.chars().count() as u64);
        found.words = Some(text.split_whitespace().count() as u64);
    }
    Ok(found)
}

/// The number of lines of a file, of which only a piece is in memory.
fn lines(path: &Path) -> Result<u64> {
    let mut input = BufReader::new(reader::open(path)?);
    let mut lines = 0;
    let mut open = false;
    loop {
        let piece = input.fill_buf().map_err(Error::io("read", path))?;
        let Some(&last) = piece.last() else { return Ok(lines + u64::from(open)) };
        lines += piece.split(|&byte| byte == b'\n').skip(1).count() as u64;
        open = last != b'\n';
        let length = piece.len();
        input.consume(length);
    }
}

impl Found {
    /// In a few words.
    pub(super) fn brief(&self) -> String {
        match self.words {
            Some(words) => format!("{} words of text", units::count(words)),
            None => format!("{} lines", units::count(self.lines)),
        }
    }

    pub(super) fn show(&self, page: &mut Page) {
        let what = if self.format == "html" { "web page" } else { "text" };
        let mut facts = vec![
            (what, self.path.display().to_string()),
            ("bytes", units::bytes(self.bytes as f64)),
            ("lines", units::count(self.lines)),
        ];
        if let (Some(letters), Some(words)) = (self.letters, self.words) {
            facts.push(("article", format!("{} letters, {} words", units::count(letters), units::count(words))));
        }
        page.facts(&facts);
    }
}
