//! A tar, as WebDataset has it, and the index of a shard.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use forebay_plan::units;
use forebay_record::{Index, parse_tar_index, survey_tar};
use serde::Serialize;

use super::{FILE_BYTES_MAX, read_up_to, reader, show_problems};
use crate::error::{Error, Result};
use crate::output::{Align, Page, Table};

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    bytes: u64,
    samples: u64,
    /// What the samples are made of, by the end of the members' names.
    members: Vec<Members>,
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Members {
    name: String,
    files: u64,
    bytes: u64,
}

/// Names beyond this number are counted as one: then they are keys rather than field names.
const NAMES_MAX: usize = 50;
const OTHERS: &str = "(others)";

/// Reads the headers of all members, and skips their content.
pub(super) fn inspect(path: &Path, bytes: u64) -> Result<Found> {
    let file = reader::open(path)?;
    let mut members: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut seen = |name: &str, bytes: u64| {
        let name = if members.len() < NAMES_MAX || members.contains_key(name) { name } else { OTHERS };
        let count = members.entry(name.to_owned()).or_default();
        *count = (count.0 + 1, count.1 + bytes);
    };
    let (samples, damage) = survey_tar(BufReader::new(file), &path.display().to_string(), &mut seen)?;
    let members = members.into_iter().map(|(name, (files, bytes))| Members { name, files, bytes });
    Ok(Found {
        path: path.to_owned(),
        bytes,
        samples: samples.len() as u64,
        members: members.collect(),
        problems: damage.map(|damage| damage.to_string()).into_iter().collect(),
    })
}

impl Found {
    /// In a few words.
    pub(super) fn brief(&self) -> String {
        let names: Vec<&str> = self.members.iter().take(6).map(|member| member.name.as_str()).collect();
        format!("{} of {}", units::counted(self.samples, "sample"), names.join(", "))
    }

    pub(super) fn show(&self, page: &mut Page) {
        page.facts(&[
            ("tar", self.path.display().to_string()),
            ("size", units::bytes(self.bytes as f64)),
            ("samples", units::count(self.samples)),
        ]);
        page.gap();
        let mut table = Table::new(&[("member", Align::Left), ("files", Align::Right), ("bytes", Align::Right)]);
        for member in &self.members {
            table.row([member.name.clone(), units::count(member.files), units::bytes(member.bytes as f64)], false);
        }
        page.table(&table);
        show_problems(page, &self.problems);
    }
}

/// What an index says.
#[derive(Debug, Serialize)]
pub(super) struct IndexFound {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    bytes: u64,
    records: u64,
    /// How long the shard is at least.
    shard_bytes: u64,
}

pub(super) fn index(path: &Path, bytes: u64) -> Result<IndexFound> {
    let content = read_up_to(path, FILE_BYTES_MAX)?;
    let (records, shard_bytes) = if content.starts_with(b"v1.") {
        of_tar(path, &content)?
    } else {
        let index = Index::parse(&content, &path.display().to_string())?;
        (index.len() as u64, index.end())
    };
    Ok(IndexFound { path: path.to_owned(), bytes, records, shard_bytes })
}

/// The samples that an index of DALI's has, and the bytes of the tar next to it, without which it says little.
fn of_tar(path: &Path, content: &[u8]) -> Result<(u64, u64)> {
    let tar = path.with_extension("tar");
    let tar_bytes = reader::size(&tar)?;
    let samples = parse_tar_index(content, tar_bytes).ok_or_else(|| Error::Format {
        path: path.to_owned(),
        problem: format!("is not an index (version 1.2) of `{}` as it is; the tar is listed without it", tar.display()),
    })?;
    Ok((samples.len() as u64, tar_bytes))
}

impl IndexFound {
    pub(super) fn show(&self, page: &mut Page) {
        page.facts(&[
            ("index", self.path.display().to_string()),
            ("bytes", units::bytes(self.bytes as f64)),
            ("records", units::count(self.records)),
            ("shard", format!("{} or more", units::bytes(self.shard_bytes as f64))),
        ]);
    }
}
