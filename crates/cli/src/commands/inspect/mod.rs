//! `forebay inspect`: what a file or folder is, by its content.

mod dataset;
mod documents;
mod features;
mod pictures;
mod records;
mod unfinished;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_codec::image::Format;
use forebay_engine::data::MANIFEST_FILE;
use forebay_pipeline::ready_text;
use forebay_record::masked_crc32c;
use forebay_storage::one_line;
use serde::Serialize;

use crate::arguments;
use crate::error::{Error, Result};
use crate::output::{Output, Page};

const EXAMPLES: &str = "\
Examples:
  forebay inspect dataset/ --verify       re-read every shard, check every sum
  forebay inspect dataset/ --record 7     the features of one sample
  forebay inspect shard-00000.tfrecord    any TFRecord file, GZIP and ZLIB too
  forebay inspect photos/                 how many pictures, of which formats
  forebay inspect photo.jpg
  forebay inspect photo.l3 --verify       mode, strips, checksums of the strips
  forebay inspect cv > my.toml            start your own pipeline from a ready one
  forebay inspect my.toml                 its steps, schemas and strategies
  forebay inspect profile.json            also plan.json

Content decides what a file is, not its name. Where --verify finds damage, the
exit code is 1.";

/// Say what a file or folder is: a data set, TFRecord file, picture, pipeline, profile or plan
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file or folder, or the name of a ready pipeline
    path: PathBuf,
    /// Read everything: checksums of shards and records, every pixel of pictures
    #[arg(long)]
    verify: bool,
    /// Show the features of this record (of a data set or TFRecord file, counted from 0)
    #[arg(long, value_name = "N")]
    record: Option<u64>,
}

/// What `inspect --json` prints.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Outcome {
    Dataset(dataset::Found),
    UnfinishedBuild(unfinished::Found),
    Records(records::Found),
    Picture(pictures::Picture),
    Pictures(pictures::Pictures),
    Pipeline(documents::PipelineFound),
    Profile(Box<super::profile::Outcome>),
    Plan(Box<forebay_plan::Plan>),
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let path = &arguments.path;
    if arguments::look_at(path)?.is_none()
        && let Some((name, text)) = path.to_str().and_then(|name| Some((name, ready_text(name)?)))
    {
        // As it is, so that it can be sent to a file. The page has nothing to add that its own comments do not say.
        let found = documents::pipeline(name, text, true)?;
        return output.present(&Outcome::Pipeline(found), |_, page| page.lines(text));
    }
    let outcome = look(arguments)?;
    output.present(&outcome, Outcome::show)?;
    match outcome.problems() {
        0 => Ok(()),
        problems => Err(Error::Format {
            path: path.clone(),
            problem: format!("is damaged: {} found", super::profile::counted(problems as u64, "problem")),
        }),
    }
}

impl Outcome {
    fn show(&self, page: &mut Page) {
        match self {
            Self::Dataset(found) => found.show(page),
            Self::UnfinishedBuild(found) => found.show(page),
            Self::Records(found) => found.show(page),
            Self::Picture(found) => found.show(page),
            Self::Pictures(found) => found.show(page),
            Self::Pipeline(found) => found.show(page),
            Self::Profile(found) => super::profile::show(found, page),
            Self::Plan(found) => super::plan::show(found, page),
        }
    }

    /// How many problems were found.
    fn problems(&self) -> usize {
        match self {
            Self::Dataset(found) => found.problems.len(),
            Self::Records(found) => found.problems.len(),
            Self::Pictures(found) => found.problems.len(),
            Self::Picture(found) => found.problems(),
            Self::UnfinishedBuild(_) | Self::Pipeline(_) | Self::Profile(_) | Self::Plan(_) => 0,
        }
    }
}

fn look(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.path;
    let metadata = fs::metadata(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::usage(
            format!("there is no file, folder or ready pipeline `{}`", path.display()),
            "check the path; `forebay pipelines` lists the ready ones",
        ),
        _ => Error::io("look at", path)(source),
    })?;
    let wants_record = |outcome: Outcome| match (&outcome, arguments.record) {
        (Outcome::Dataset(_) | Outcome::Records(_), _) | (_, None) => Ok(outcome),
        _ => Err(Error::usage(format!("`{}` has no records", path.display()), "leave `--record` out")),
    };
    if metadata.is_dir() {
        return wants_record(if arguments::look_at(&path.join(MANIFEST_FILE))?.is_some() {
            Outcome::Dataset(dataset::inspect(path, arguments.verify, arguments.record)?)
        } else if let Some(found) = unfinished::inspect(path)? {
            Outcome::UnfinishedBuild(found)
        } else {
            Outcome::Pictures(pictures::folder(path, arguments.verify)?)
        });
    }
    wants_record(look_at_file(arguments, metadata.len())?)
}

/// So many bytes are enough to tell what a file is.
const HEAD_BYTES: u64 = 4096;

/// The largest picture or document that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

fn look_at_file(arguments: &Arguments, bytes: u64) -> Result<Outcome> {
    let path = &arguments.path;
    let head = read_up_to(path, HEAD_BYTES)?;
    if head.is_empty() {
        return Err(Error::Format { path: path.clone(), problem: "is empty".to_owned() });
    }
    if Format::detect(&head).is_some() {
        return Ok(Outcome::Picture(pictures::file(path, &read_up_to(path, FILE_BYTES_MAX)?, arguments.verify)?));
    }
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    let text = || String::from_utf8(read_up_to(path, FILE_BYTES_MAX)?).map_err(|_| unknown(path));
    if head.trim_ascii_start().first() == Some(&b'{') {
        return documents::json(path, &text()?, arguments.verify, arguments.record);
    }
    if extension.as_deref() == Some("toml") {
        return Ok(Outcome::Pipeline(documents::pipeline(&path.display().to_string(), &text()?, false)?));
    }
    let is_compressed = matches!(*head, [0x1F, 0x8B, ..] | [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..]);
    if is_record_header(&head) || is_compressed || extension.as_deref().is_some_and(|name| name.starts_with("tfrec")) {
        return Ok(Outcome::Records(records::inspect(path, bytes, arguments.record)?));
    }
    Err(unknown(path))
}

fn unknown(path: &Path) -> Error {
    Error::usage(
        format!("`{}` is nothing that Forebay knows", one_line(path)),
        "it knows data sets, TFRecord files, pictures (JPEG, PNG, WebP, BMP, PNM, QOI, L3), pipelines (TOML), profiles and plans",
    )
}

/// Whether these bytes begin with a record's length and the checksum of it.
fn is_record_header(head: &[u8]) -> bool {
    head.first_chunk::<8>().zip(head.get(8..12)).is_some_and(|(length, sum)| masked_crc32c(length).to_le_bytes() == sum)
}

fn read_up_to(path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(limit_bytes).read_to_end(&mut content));
    read.map_err(Error::io("read", path))?;
    Ok(content)
}

/// Lists problems, not more than a page of them.
fn show_problems(page: &mut Page, problems: &[String]) {
    const SHOWN_MAX: usize = 20;
    if problems.is_empty() {
        return;
    }
    page.heading("Problems");
    for problem in problems.iter().take(SHOWN_MAX) {
        page.hanging("- ", problem.lines().next().unwrap_or_default());
    }
    if problems.len() > SHOWN_MAX {
        page.line(&format!("- and {} more", problems.len() - SHOWN_MAX));
    }
}
