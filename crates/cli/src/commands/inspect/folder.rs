//! A folder of files other than a data set: the number of files by format.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_codec::image::{DecodeOptions, Decoder, Format};
use forebay_engine::data::{Listing, ListingOptions};
use forebay_engine::load::OnError;
use forebay_pipeline::{Label, Order, Source};
use forebay_plan::units;
use forebay_record::{Index, name_text};
use forebay_storage::{is_url, open_file};
use serde::Serialize;

use super::images::extension_says;
use super::sort::{HEAD_BYTES, Sort, promised};
use super::{FILE_BYTES_MAX, look_at_file, read_up_to, show_problems};
use crate::error::{Error, Result};
use crate::output::{Align, Page, Table};

/// A folder of files.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    files: u64,
    bytes: u64,
    /// By content, where it is known; most bytes first.
    formats: Vec<FormatCount>,
    /// The folders that samples are in.
    classes: Vec<ClassCount>,
    /// Images whose name promises another format than they have.
    wrong_extensions: u64,
    /// Links that lead nowhere.
    dangling_links: u64,
    verified: bool,
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct FormatCount {
    format: &'static str,
    /// Whether pipelines read it.
    supported: bool,
    files: u64,
    bytes: u64,
    /// What the first of them is, in words.
    first: Option<String>,
}

#[derive(Debug, Serialize)]
struct ClassCount {
    name: String,
    files: u64,
}

/// What is gathered while files are looked at.
#[derive(Default)]
struct Survey {
    formats: BTreeMap<&'static str, FormatCount>,
    classes: BTreeMap<String, u64>,
    wrong_extensions: u64,
    dangling_links: u64,
    problems: Vec<String>,
    /// Whether every sample is an image.
    only_images: bool,
    decoder: Decoder,
}

/// Reads the beginning of every file below `path`, or all of it. Returns whether there are images, and no other samples.
pub(super) fn inspect(path: &Path, verify: bool) -> Result<(Found, bool)> {
    let source =
        Source { files: Some("**/*".to_owned()), label: Label::None, order: Some(Order::Sorted), ..Source::default() };
    let options = ListingOptions { on_error: OnError::Skip, ..ListingOptions::default() };
    let listing = Listing::scan_with(&source, path, &options)?;
    let mut survey = Survey { only_images: true, ..Survey::default() };
    survey.problems.extend(listing.lost().iter().map(|lost| first_line(&lost.reason)));
    for file in listing.entries() {
        let full = listing.root().file(file.path());
        survey.add(&full, file.path(), &file.key, file.bytes, verify);
    }
    let images = survey.only_images && survey.formats.values().any(|count| Format::from_name(count.format).is_some());
    let mut formats: Vec<FormatCount> = survey.formats.into_values().collect();
    formats.sort_by_key(|count| std::cmp::Reverse(count.bytes));
    let classes = survey.classes.into_iter().map(|(name, files)| ClassCount { name, files });
    let found = Found {
        path: path.to_owned(),
        files: listing.len() as u64,
        bytes: listing.bytes(),
        formats,
        classes: classes.collect(),
        wrong_extensions: survey.wrong_extensions,
        dangling_links: survey.dangling_links,
        verified: verify,
        problems: survey.problems,
    };
    Ok((found, images))
}

impl Survey {
    /// Adds one file; `below` is its path relative to the folder. An error in it does not end the work.
    fn add(&mut self, full: &Path, below: &Path, key: &str, bytes: u64, verify: bool) {
        let head = match head(full) {
            Ok(head) => head,
            Err(_) if leads_nowhere(full) => {
                self.dangling_links += 1;
                let to = std::fs::read_link(full).unwrap_or_default();
                return self.problems.push(format!("`{key}` is a link that leads nowhere: to `{}`", to.display()));
            }
            Err(error) => return self.problems.push(first_line(&error.to_string())),
        };
        let sort = Sort::of(full, &head, bytes);
        self.only_images &= !sort.is_sample() || matches!(sort, Sort::Image(_));
        if sort.is_sample() {
            let class = below.parent().and_then(Path::file_name).unwrap_or_default();
            *self.classes.entry(name_text(class.as_bytes()).into_owned()).or_default() += 1;
        }
        if let Sort::Image(format) = sort {
            self.wrong_extensions += u64::from(extension_says(full, format).is_some());
        }
        let is_first = !self.formats.contains_key(sort.name());
        let count = self.formats.entry(sort.name()).or_insert_with(|| FormatCount {
            format: sort.name(),
            supported: !sort.is_unsupported(),
            files: 0,
            bytes: 0,
            first: None,
        });
        count.files += 1;
        count.bytes += bytes;
        match (sort, promised(full)) {
            (Sort::Empty | Sort::Unknown, Some(format)) => {
                let what = if sort == Sort::Empty { "it has zero bytes" } else { "its content is of no known format" };
                self.problems.push(format!("`{key}`: its name says {format}, but {what}"));
            }
            (sort, _) if verify || is_first => {
                let looked = self.look(sort, full, bytes, verify);
                let count = self.formats.get_mut(sort.name()).filter(|_| is_first);
                match looked {
                    Ok(first) => _ = count.map(|count| count.first = first),
                    Err(problem) => self.problems.push(format!("`{key}`: {problem}")),
                }
            }
            _ => {}
        }
    }

    /// Examines a file: returns a short description, or what is wrong with it.
    fn look(&mut self, sort: Sort, path: &Path, bytes: u64, verify: bool) -> Result<Option<String>, String> {
        let said = |error: &dyn std::fmt::Display| first_line(&error.to_string());
        if matches!(sort, Sort::Image(_)) && verify {
            let content = read_up_to(path, FILE_BYTES_MAX).map_err(|error| said(&error))?;
            self.decoder.decode(&content, &DecodeOptions::default()).map_err(|error| said(&error))?;
        }
        let is_closer = match sort {
            // A shard may be read for hours: its headers say how many records there are.
            Sort::Records if !verify => return Ok(records(path)),
            Sort::Records => true,
            // What these are, their documents say; nothing of them is a sample.
            Sort::Json | Sort::Pipeline | Sort::Text | Sort::Index | Sort::Empty | Sort::Unknown => false,
            sort => !matches!(sort, Sort::Foreign(_) | Sort::Compressed),
        };
        if !is_closer {
            return Ok(None);
        }
        let outcome = look_at_file(path, bytes, verify && !matches!(sort, Sort::Image(_)), None);
        let outcome = outcome.map_err(|error| said(&error))?;
        match outcome.problems().first() {
            Some(problem) => Err(first_line(problem)),
            None => Ok(outcome.brief()),
        }
    }
}

/// The beginning of a regular file: a pipe would be waited for.
fn head(path: &Path) -> Result<Vec<u8>> {
    if is_url(path) {
        return read_up_to(path, HEAD_BYTES);
    }
    let mut head = Vec::new();
    let file = open_file(path).map_err(forebay_engine::Error::from)?;
    file.take(HEAD_BYTES).read_to_end(&mut head).map_err(Error::io("read", path))?;
    Ok(head)
}

fn leads_nowhere(path: &Path) -> bool {
    path.is_symlink() && matches!(path.try_exists(), Ok(false))
}

/// How many records a shard has that is not compressed and not damaged.
fn records(path: &Path) -> Option<String> {
    let index = Index::scan_headers(open_file(path).ok()?, "").ok()?;
    Some(units::counted(index.len() as u64, "record"))
}

/// Errors have hints in further lines.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

impl Found {
    fn images(&self) -> u64 {
        self.formats.iter().filter(|count| Format::from_name(count.format).is_some()).map(|count| count.files).sum()
    }

    pub(super) fn show(&self, page: &mut Page, images: bool) {
        const SHOWN_MAX: usize = 20;
        let mean = self.bytes as f64 / self.files.max(1) as f64;
        let mut facts = vec![
            ("folder", self.path.display().to_string()),
            (if images { "images" } else { "files" }, units::count(if images { self.images() } else { self.files })),
            ("size", format!("{}, {} each", units::bytes(self.bytes as f64), units::bytes(mean))),
        ];
        if self.wrong_extensions > 0 {
            let count = units::counted(self.wrong_extensions, "file");
            facts.push(("names", format!("{count} promise another format; content decides")));
        }
        if self.dangling_links > 0 {
            facts.push(("links", format!("{} lead nowhere", units::count(self.dangling_links))));
        }
        let unsupported: Vec<&str> =
            self.formats.iter().filter(|count| !count.supported).map(|count| count.format).collect();
        if !unsupported.is_empty() {
            let names = unsupported.join(", ");
            facts.push(("not read", format!("{names}: no pipeline reads them; convert them first")));
        }
        if self.verified && self.problems.is_empty() {
            let what = if images { "every pixel could be decoded" } else { "everything could be read" };
            facts.push(("verified", what.to_owned()));
        }
        page.facts(&facts);
        page.gap();
        page.table(&self.formats_table(images));
        if !self.classes.is_empty() {
            page.gap();
            let mut table = Table::new(&[("class (folder)", Align::Left), ("files", Align::Right)]);
            for class in self.classes.iter().take(SHOWN_MAX) {
                let name = if class.name.is_empty() { "(none)" } else { &class.name };
                table.row([name.to_owned(), units::count(class.files)], false);
            }
            page.table(&table);
            if self.classes.len() > SHOWN_MAX {
                page.line(&format!("and {} more", units::count((self.classes.len() - SHOWN_MAX) as u64)));
            }
        }
        show_problems(page, &self.problems);
    }

    /// Of images the first says little: they differ.
    fn formats_table(&self, images: bool) -> Table {
        let columns =
            [("format", Align::Left), ("files", Align::Right), ("bytes", Align::Right), ("the first", Align::Left)];
        let shown = if images { 3 } else { 4 };
        let mut table = Table::new(&columns[..shown]);
        for count in &self.formats {
            let first = count.first.as_deref().unwrap_or_default().chars().take(60).collect();
            let bytes = units::bytes(count.bytes as f64);
            let row = [count.format.to_owned(), units::count(count.files), bytes, first];
            table.row(&row[..shown], false);
        }
        table
    }
}
