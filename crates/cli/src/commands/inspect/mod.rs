//! `forebay inspect`: describe a file or folder, by its content.

mod arrays;
mod arrows;
mod audio;
mod dataset;
mod documents;
mod features;
mod folder;
mod images;
mod mix;
mod parquets;
mod reader;
mod records;
mod sort;
mod tars;
mod texts;
mod unfinished;

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_codec::image;
use forebay_engine::data::{MANIFEST_FILE, MIX_FILE};
use forebay_pipeline::preset_text;
use forebay_plan::units;
use forebay_storage::{EntryKind, one_line};
use serde::Serialize;

use self::sort::{HEAD_BYTES, Sort};
use crate::arguments;
use crate::error::{Error, Result};
use crate::output::{Output, Page};

const EXAMPLES: &str = "\
Examples:
  forebay inspect dataset/                strategy, schema and shards
  forebay inspect dataset/ --verify       verify all checksums
  forebay inspect dataset/ --record 7     the features of one sample
  forebay inspect shard-00000.tfrecord    any TFRecord file, compressed ones too
  forebay inspect shard-000000.tar        number and members of the samples
  forebay inspect train.parquet           rows, row groups, columns and their types
  forebay inspect data-00000.arrow        the same of an Arrow file or stream
  forebay inspect s3://bucket/dataset     in a bucket
  forebay inspect photos/                 number of files by format and class
  forebay inspect photo.jpg               size, channels and orientation
  forebay inspect speech.flac             sample rate and duration; MP3 too
  forebay inspect tensor.npy              shape and dtype; HDF5 and IDX too
  forebay inspect page.html               length of the article
  forebay inspect photo.l3 --verify       mode, strips, checksums of the strips
  forebay inspect cv > my.toml            copy a preset to edit
  forebay inspect my.toml                 steps, schemas and strategies
  forebay inspect profile.json            tables of a profile or plan

Files are recognized by their content, not by their names. In a folder, broken
links and unreadable files are listed, and the others are still inspected.
Formats that Forebay knows but does not read (GIF, TIFF, Ogg) are named. The
exit code is 1 if anything is damaged.";

/// Describe a file or folder: data sets, shards, images, audio, arrays, pipelines, profiles, plans
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File, folder or preset
    path: PathBuf,
    /// Verify the content: check checksums, and decode all images and audio
    #[arg(long)]
    verify: bool,
    /// Show the features of the N-th record of a data set or TFRecord file, counted from 0
    #[arg(long, value_name = "N")]
    record: Option<u64>,
}

/// What `inspect --json` prints.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Outcome {
    Dataset(Box<dataset::Found>),
    Mix(mix::Found),
    UnfinishedBuild(unfinished::Found),
    Records(records::Found),
    Image(images::Image),
    Audio(audio::Found),
    Arrays(arrays::Found),
    Tar(tars::Found),
    Parquet(parquets::Found),
    Arrow(arrows::Found),
    Index(tars::IndexFound),
    Text(texts::Found),
    /// A folder of images, and of no other samples.
    Images(folder::Found),
    /// Another folder.
    Files(folder::Found),
    Pipeline(Box<documents::PipelineFound>),
    Profile(Box<super::profile::Outcome>),
    Plan(Box<forebay_plan::Plan>),
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let path = &arguments.path;
    if arguments::look_at(path)?.is_none()
        && let Some((name, text)) = path.to_str().and_then(|name| Some((name, preset_text(name)?)))
    {
        // As it is, so that it can be sent to a file. The page has nothing to add that its own comments do not say.
        let found = documents::pipeline(name, text, true)?;
        return output.present(&Outcome::Pipeline(Box::new(found)), |_, page| page.lines(text));
    }
    let outcome = look(arguments)?;
    output.present(&outcome, Outcome::show)?;
    match outcome.problems().len() {
        0 => Ok(()),
        problems => {
            let problems = units::counted(problems as u64, "problem");
            // Of a folder, files that are whole may be what cannot be read, and links that lead nowhere.
            let is_folder = matches!(outcome, Outcome::Images(_) | Outcome::Files(_));
            let problem = if is_folder { format!("has {problems}") } else { format!("is damaged: {problems} found") };
            Err(Error::Format { path: path.clone(), problem })
        }
    }
}

impl Outcome {
    fn show(&self, page: &mut Page) {
        match self {
            Self::Dataset(found) => found.show(page),
            Self::Mix(found) => found.show(page),
            Self::UnfinishedBuild(found) => found.show(page),
            Self::Records(found) => found.show(page),
            Self::Image(found) => found.show(page),
            Self::Audio(found) => found.show(page),
            Self::Arrays(found) => found.show(page),
            Self::Tar(found) => found.show(page),
            Self::Parquet(found) => found.show(page),
            Self::Arrow(found) => found.show(page),
            Self::Index(found) => found.show(page),
            Self::Text(found) => found.show(page),
            Self::Images(found) => found.show(page, true),
            Self::Files(found) => found.show(page, false),
            Self::Pipeline(found) => found.show(page),
            Self::Profile(found) => super::profile::show(found, page),
            Self::Plan(found) => super::plan::show(found, page),
        }
    }

    /// What was found to be wrong.
    fn problems(&self) -> Vec<String> {
        match self {
            Self::Dataset(found) => found.problems.clone(),
            Self::Mix(found) => found.problems.clone(),
            Self::Records(found) => found.problems.clone(),
            Self::Images(found) | Self::Files(found) => found.problems.clone(),
            Self::Image(found) => found.problems(),
            Self::Audio(found) => found.problems.clone(),
            Self::Tar(found) => found.problems.clone(),
            Self::Parquet(found) => found.problems.clone(),
            Self::Arrow(found) => found.problems.clone(),
            _ => Vec::new(),
        }
    }

    /// What a file is in a few words, where its format leaves more to say.
    fn brief(&self) -> Option<String> {
        match self {
            Self::Image(found) => Some(found.brief()),
            Self::Audio(found) => Some(found.brief()),
            Self::Arrays(found) => Some(found.brief()),
            Self::Tar(found) => Some(found.brief()),
            Self::Parquet(found) => Some(found.brief()),
            Self::Arrow(found) => Some(found.brief()),
            Self::Text(found) => Some(found.brief()),
            _ => None,
        }
    }
}

fn look(arguments: &Arguments) -> Result<Outcome> {
    let path = &arguments.path;
    let found = arguments::look_at(path)?.ok_or_else(|| {
        Error::usage(
            format!("there is no file, folder or preset `{}`", one_line(path)),
            "check the path; `forebay pipelines` lists the presets",
        )
    })?;
    let wants_record = |outcome: Outcome| match (&outcome, arguments.record) {
        (Outcome::Dataset(_) | Outcome::Records(_), _) | (_, None) => Ok(outcome),
        _ => Err(Error::usage(format!("`{}` has no records", path.display()), "omit `--record`")),
    };
    if found == EntryKind::Folder {
        return wants_record(if arguments::look_at(&path.join(MANIFEST_FILE))?.is_some() {
            Outcome::Dataset(Box::new(dataset::inspect(path, arguments.verify, arguments.record)?))
        } else if arguments::look_at(&path.join(MIX_FILE))?.is_some() {
            Outcome::Mix(mix::inspect(path, arguments.verify)?)
        } else if let Some(found) = unfinished::inspect(path)? {
            Outcome::UnfinishedBuild(found)
        } else {
            match folder::inspect(path, arguments.verify)? {
                (found, true) => Outcome::Images(found),
                (found, false) => Outcome::Files(found),
            }
        });
    }
    let bytes = reader::size(path)?;
    wants_record(look_at_file(path, bytes, arguments.verify, arguments.record)?)
}

/// The largest image or document that is read.
const FILE_BYTES_MAX: u64 = 1 << 30;

fn look_at_file(path: &Path, bytes: u64, verify: bool, record: Option<u64>) -> Result<Outcome> {
    let head = read_up_to(path, HEAD_BYTES)?;
    let whole = || read_up_to(path, FILE_BYTES_MAX);
    let text = || String::from_utf8(whole()?).map_err(|_| unknown(path));
    let sort = Sort::of(path, &head, bytes);
    Ok(match sort {
        Sort::Image(_) => Outcome::Image(images::file(path, &whole()?, verify)?),
        Sort::Audio(_) => Outcome::Audio(audio::inspect(path, &whole()?, bytes, verify)?),
        Sort::Npy | Sort::Hdf5 | Sort::Idx => Outcome::Arrays(arrays::inspect(path, sort, bytes)?),
        Sort::Tar => Outcome::Tar(tars::inspect(path, bytes)?),
        Sort::Parquet => Outcome::Parquet(parquets::inspect(path, bytes, verify)?),
        Sort::Arrow => Outcome::Arrow(arrows::inspect(path, bytes, verify)?),
        Sort::Records => Outcome::Records(records::inspect(path, bytes, record)?),
        Sort::Index => Outcome::Index(tars::index(path, bytes)?),
        Sort::Html | Sort::Text => Outcome::Text(texts::inspect(path, sort, bytes)?),
        Sort::Json => return documents::json(path, &text()?, verify, record),
        Sort::Pipeline => {
            Outcome::Pipeline(Box::new(documents::pipeline(&path.display().to_string(), &text()?, false)?))
        }
        Sort::Compressed => {
            let problem = format!("`{}` is compressed, and `inspect` does not look into it", one_line(path));
            let remedy = "decompress it first (`gunzip`, `unzstd`); sources may be compressed";
            return Err(Error::usage(problem, remedy));
        }
        Sort::Foreign(_) => return Err(foreign(path, &head)),
        Sort::Empty => return Err(Error::Format { path: path.to_owned(), problem: "is empty".to_owned() }),
        Sort::Unknown => return Err(unknown(path)),
    })
}

/// What the decoders say of a format that they know and do not read.
fn foreign(path: &Path, head: &[u8]) -> Error {
    let named = |error: &forebay_codec::Error| matches!(error, forebay_codec::Error::Unsupported { .. });
    let picture = image::EncodedImage::open(head).err().filter(named);
    match picture.or_else(|| forebay_codec::audio::inspect(head).err().filter(named)) {
        Some(source) => Error::Codec { path: path.to_owned(), source },
        None => unknown(path),
    }
}

fn unknown(path: &Path) -> Error {
    Error::usage(
        format!("the format of `{}` is unknown", one_line(path)),
        "supported are data sets, TFRecord, Parquet and Arrow files, tars, images (JPEG, PNG, WebP, BMP, PNM, QOI, L3), audio (FLAC, MP3, WAV), \
         arrays (NPY, HDF5, IDX), HTML, text, pipelines (TOML), profiles and plans",
    )
}

fn read_up_to(path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    reader::open(path)?.take(limit_bytes).read_to_end(&mut content).map_err(Error::io("read", path))?;
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
