//! The listing: the samples of a source, their order and their labels.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use forebay_pipeline::{Format, Label, Order, Random, Source};
use globset::GlobBuilder;
use rustix::io::Errno;
use walkdir::WalkDir;

use super::beside::check_beside;
use super::manifest::Skipped;
use super::shards::list_shards;
use crate::error::{Error, Result};
use crate::load::OnError;

/// The samples of a source, in the order that numbers them.
#[derive(Debug, Clone)]
pub struct Listing {
    root: PathBuf,
    source: Source,
    entries: Vec<Entry>,
    /// The tar or TFRecord files that the samples lie in; none where each lies in files of its own.
    shards: Vec<PathBuf>,
    classes: Vec<String>,
    /// What could not be listed.
    lost: Vec<Skipped>,
}

/// One sample of a source.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The sample's key: the path of its file below the root, or what its shard calls it.
    pub key: Arc<str>,
    /// How many bytes it takes.
    pub bytes: u64,
    /// When its file was changed last, where the file system says so.
    pub modified: Option<SystemTime>,
    /// Its class, as a number into [`Listing::classes`].
    pub label: Option<i64>,
    /// Where it lies.
    pub(super) place: Place,
}

/// Where a sample lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In a file of its own, at this path below the root; further fields in files beside it.
    File(PathBuf),
    /// In a shard, as record number `record`.
    Shard { shard: usize, record: u64, offset: u64 },
}

impl Entry {
    /// The path of its file below the root; empty where it lies in a shard.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::File(path) => path,
            Place::Shard { .. } => Path::new(""),
        }
    }
}

impl Listing {
    /// Lists what `source` means in the folder `root`.
    pub fn scan(source: &Source, root: &Path) -> Result<Self> {
        Self::scan_on_error(source, root, OnError::Fail)
    }

    /// The same, where `on_error` says what happens to shards and folders that are damaged: with [`OnError::Skip`] their samples
    /// are listed as far as they are whole, and the rest is [`lost`](Self::lost).
    pub fn scan_on_error(source: &Source, root: &Path, on_error: OnError) -> Result<Self> {
        let mut lost = Vec::new();
        let mut entries = walk(source, root, on_error, &mut lost)?;
        if entries.is_empty() {
            return Err(Error::Usage {
                problem: format!("no file below `{}` matches `{}`", root.display(), source.pattern()),
                remedy: "check the folder, or set `files` in the pipeline's [source]".to_owned(),
            });
        }
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let (mut shards, mut classes) = (Vec::new(), Vec::new());
        if source.format == Format::Files {
            classes = match source.label {
                Label::None => Vec::new(),
                Label::Folder => label_by(&mut entries, |path| Ok(folder_of(path)))?,
                Label::Table => {
                    let table = read_table(source, root)?;
                    label_by_table(&mut entries, |path| table_entry(&table, path))?
                }
            };
        } else {
            let found = list_shards(source.format, root, &entries, on_error)?;
            (shards, entries) = (found.paths, found.entries);
            lost.extend(found.lost);
        }
        if source.order() == Order::Shuffled {
            Random::from_parts(&[source.seed]).shuffle(&mut entries);
        }
        let listing = Self { root: root.to_owned(), source: source.clone(), entries, shards, classes, lost };
        check_beside(&listing)?;
        Ok(listing)
    }

    /// The first `count` samples only.
    #[must_use]
    pub fn take(mut self, count: u64) -> Self {
        self.entries.truncate(count as usize);
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What it is a listing of.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The samples, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What is damaged and could not be listed.
    pub fn lost(&self) -> &[Skipped] {
        &self.lost
    }

    /// The names of the classes; a label is a place in this list.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The size of all samples together.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// The full paths of the shards; none where each sample lies in files of its own.
    pub fn shards(&self) -> &[PathBuf] {
        &self.shards
    }

    /// The full paths of every file that is read.
    pub fn paths(&self) -> Vec<PathBuf> {
        if !self.shards.is_empty() {
            return self.shards.clone();
        }
        self.entries.iter().flat_map(|entry| self.files_of(entry)).collect()
    }

    /// The full paths of a sample's own files: the first is the sample's, and each field beside it has one.
    pub(super) fn files_of(&self, entry: &Entry) -> Vec<PathBuf> {
        let Place::File(path) = &entry.place else { return Vec::new() };
        let beside = self.source.fields.iter().map(|field| self.root.join(beside(path, &field.from)));
        std::iter::once(self.root.join(path)).chain(beside).collect()
    }
}

/// The path of the file beside `path` that `from` describes: `masks/{stem}.png`.
fn beside(path: &Path, from: &str) -> PathBuf {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
    let replaced = from
        .replace("{stem}", &text(path.file_stem()))
        .replace("{name}", &text(path.file_name()))
        .replace("{folder}", if folder.is_empty() { "." } else { &folder });
    PathBuf::from(replaced)
}

fn walk(source: &Source, root: &Path, on_error: OnError, lost: &mut Vec<Skipped>) -> Result<Vec<Entry>> {
    let glob = GlobBuilder::new(source.pattern())
        .literal_separator(true)
        .empty_alternates(true)
        .case_insensitive(true)
        .build()
        .map_err(|error| Error::Usage {
            problem: format!("`{}` is not a file pattern: {}", source.pattern(), error.kind()),
            remedy: "write it like `**/*.{jpg,png}`".to_owned(),
        })?;
    let matcher = glob.compile_matcher();
    let mut files = Vec::new();
    let mut last = root.to_owned();
    for entry in WalkDir::new(root).follow_links(true) {
        let (path, metadata) = match entry {
            Ok(entry) => {
                entry.path().clone_into(&mut last);
                let below = last.strip_prefix(root).unwrap_or(&last);
                if entry.file_type().is_dir() || !matcher.is_match(below) {
                    continue;
                }
                // Its size and time are part of what a build is known by: they are never guessed.
                let metadata = entry.metadata().map_err(|error| cannot_list(error, &last, root))?;
                (entry.into_path(), Some(metadata))
            }
            // A link to a folder that it lies in leads nowhere new.
            Err(error) if error.loop_ancestor().is_some() => continue,
            // A link whose target is gone is a file that cannot be read: a damaged sample, if it is one at all.
            Err(error) if leads_nowhere(&error) => (error.path().map(Path::to_owned).unwrap_or_default(), None),
            Err(error) => {
                let path = error.path().unwrap_or(root);
                let key = path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned();
                let error = cannot_list(error, &last, root);
                // Without the root there is nothing to go on with.
                if on_error == OnError::Fail || key.is_empty() {
                    return Err(error);
                }
                lost.push(Skipped { key, reason: error.to_string(), samples: None });
                continue;
            }
        };
        let below = path.strip_prefix(root).unwrap_or(&path);
        if metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) || !matcher.is_match(below) {
            continue;
        }
        files.push(Entry {
            key: below.to_string_lossy().into(),
            place: Place::File(below.to_owned()),
            bytes: metadata.as_ref().map_or(0, std::fs::Metadata::len),
            modified: metadata.and_then(|metadata| metadata.modified().ok()),
            label: None,
        });
    }
    Ok(files)
}

/// Whether this is about a link whose target is not there or out of reach, and not about a disk that fails.
fn leads_nowhere(error: &walkdir::Error) -> bool {
    let said = error.io_error().and_then(Errno::from_io_error);
    matches!(said, Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP))
        && error.path().is_some_and(Path::is_symlink)
}

/// An error that names what could not be listed. Where reading on in a folder failed it is not said in which: it is the one of its
/// depth that `last`, the entry before, lies in.
fn cannot_list(error: walkdir::Error, last: &Path, root: &Path) -> Error {
    let below = last.strip_prefix(root).unwrap_or(Path::new(""));
    let folder = || root.components().chain(below.components().take(error.depth().saturating_sub(1))).collect();
    let path = error.path().map_or_else(folder, Path::to_owned);
    let source = error.into_io_error().unwrap_or_else(|| std::io::Error::other("cannot be listed"));
    Error::Io { doing: "list", path, source }
}

/// Gives each file the class that `class_of` names by its path, and returns the classes in alphabetical order.
fn label_by(entries: &mut [Entry], class_of: impl Fn(&Path) -> Result<String>) -> Result<Vec<String>> {
    let names: Vec<String> = entries.iter().map(|entry| class_of(entry.path())).collect::<Result<_>>()?;
    let classes: Vec<String> = names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    for (entry, name) in entries.iter_mut().zip(&names) {
        entry.label = classes.binary_search(name).ok().map(|class| class as i64);
    }
    Ok(classes)
}

/// The same of a table, where labels that are all whole numbers stay what they are. They have names if they count from 0.
fn label_by_table(entries: &mut [Entry], class_of: impl Fn(&Path) -> Result<String>) -> Result<Vec<String>> {
    let names: Vec<String> = entries.iter().map(|entry| class_of(entry.path())).collect::<Result<_>>()?;
    let Ok(numbers) = names.iter().map(|name| name.parse::<i64>()).collect::<std::result::Result<Vec<_>, _>>() else {
        return label_by(entries, class_of);
    };
    for (entry, &number) in entries.iter_mut().zip(&numbers) {
        entry.label = Some(number);
    }
    let distinct: BTreeSet<i64> = numbers.into_iter().collect();
    let counted = distinct.iter().copied().eq(0..distinct.len() as i64);
    Ok(if counted { distinct.iter().map(ToString::to_string).collect() } else { Vec::new() })
}

/// The name of the folder a file is in; the empty name for files right in the root.
fn folder_of(path: &Path) -> String {
    let folder = path.parent().and_then(Path::file_name);
    folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn read_table(source: &Source, root: &Path) -> Result<HashMap<String, String>> {
    let name = source.table.as_deref().ok_or_else(|| Error::Usage {
        problem: "the source has `label = \"table\"` but no `table`".to_owned(),
        remedy: "add `table = \"labels.tsv\"`, a file below the data folder".to_owned(),
    })?;
    let path = root.join(name);
    let text = std::fs::read_to_string(&path).map_err(Error::io("read the label table", &path))?;
    let mut table = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut columns = line.split('\t');
        let (Some(key), Some(label)) = (columns.next(), columns.next()) else {
            return Err(Error::Format {
                path,
                problem: format!("line {} has no tab: expected path, tab, label; found `{line}`", number + 1),
            });
        };
        table.insert(key.trim().to_owned(), label.trim().to_owned());
    }
    Ok(table)
}

/// The label of a file by its path, its name, or its name without the extension.
fn table_entry(table: &HashMap<String, String>, path: &Path) -> Result<String> {
    let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
    let names = [Some(text(path.as_os_str())), path.file_name().map(text), path.file_stem().map(text)];
    names.into_iter().flatten().find_map(|name| table.get(&name)).cloned().ok_or_else(|| Error::Usage {
        problem: format!("the label table has no line for `{}`", path.display()),
        remedy: "add one (path or file name, tab, label), or narrow the source's `files`".to_owned(),
    })
}
