//! The listing: the samples of a source, their order and their labels.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::{Format, Label, Order, Random, Source};
use forebay_record::name_text;
use forebay_storage::{Folder, Status, Version};
use globset::GlobBuilder;
use xxhash_rust::xxh3::Xxh3;

use super::beside::check_beside;
use super::manifest::Skipped;
use super::shards::list_shards;
use crate::error::{Error, Result};
use crate::load::OnError;

/// The largest table of labels that is read.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// Which files a source may name besides those that are found in the data folder.
///
/// Links in the data folder are part of the data, and are followed wherever they lead: that is how data sets are often put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Those below the data folder. `..` takes back a part of the path as it is written, whether that is a link or not.
    #[default]
    Root,
    /// All that this user may read.
    Anywhere,
}

impl Reach {
    /// What `named` is called below `root`; `None` if it lies elsewhere and must not.
    fn below(self, root: &Path, named: &Path) -> Option<PathBuf> {
        if self == Self::Anywhere {
            return Some(named.to_owned());
        }
        let root = if named.is_absolute() { std::path::absolute(root).ok() } else { None };
        let named = root.and_then(|root| named.strip_prefix(root).ok()).unwrap_or(named);
        let mut below = PathBuf::new();
        for part in named.components() {
            match part {
                Component::Normal(name) => below.push(name),
                Component::CurDir => {}
                Component::ParentDir if below.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(below)
    }
}

fn outside(problem: String) -> Error {
    Error::Usage {
        problem,
        remedy: "if you trust the pipeline, pass --allow-outside (in Python: allow_outside=True)".to_owned(),
    }
}

/// The samples of a source, in the order that numbers them.
#[derive(Debug, Clone)]
pub struct Listing {
    root: Folder,
    source: Source,
    reach: Reach,
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
    /// The sample's key: the path of its file below the root, or what its shard calls it; bytes that are no text as `\xE9`.
    pub key: Arc<str>,
    /// How many bytes it takes, with those of the files beside it.
    pub bytes: u64,
    /// Which version of its file this is, and of those beside it.
    pub version: Version,
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
    /// Lists what `source` means in the folder `root`, and reads nothing that the source names outside it.
    pub fn scan(source: &Source, root: impl Into<Folder>) -> Result<Self> {
        Self::scan_with(source, root, OnError::Fail, Reach::Root)
    }

    /// The same, where `on_error` says what happens to shards and folders that are damaged, and `reach` what the source may name: with
    /// [`OnError::Skip`] samples are listed as far as they are whole, and the rest is [`lost`](Self::lost).
    pub fn scan_with(source: &Source, root: impl Into<Folder>, on_error: OnError, reach: Reach) -> Result<Self> {
        let root = root.into();
        let mut lost = Vec::new();
        let mut entries = walk(source, &root, on_error, &mut lost)?;
        if entries.is_empty() {
            return Err(Error::Usage {
                problem: format!("no file below `{}` matches `{}`", root.path().display(), source.pattern()),
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
                    let table = read_table(source, &root, reach)?;
                    label_by_table(&mut entries, |path| table_entry(&table, path))?
                }
            };
        } else {
            let found = list_shards(source.format, &root, &entries, on_error)?;
            (shards, entries) = (found.paths, found.entries);
            lost.extend(found.lost);
        }
        if source.order() == Order::Shuffled {
            Random::from_parts(&[source.seed]).shuffle(&mut entries);
        }
        let mut listing = Self { root, source: source.clone(), reach, entries, shards, classes, lost };
        listing.check_reach()?;
        check_beside(&listing)?;
        listing.add_beside();
        Ok(listing)
    }

    /// The same samples as they lie, by name or in the order of their shards, and the number that each had. A listing is in the
    /// order that a build writes samples in, which is random unless the source says otherwise; whoever loads the files
    /// themselves expects this one.
    #[must_use]
    pub fn as_they_lie(mut self) -> (Self, Vec<u64>) {
        let mut numbered: Vec<(u64, Entry)> = (0..).zip(self.entries).collect();
        numbered.sort_unstable_by(|(_, a), (_, b)| match (&a.place, &b.place) {
            (Place::Shard { shard, record, .. }, Place::Shard { shard: other, record: than, .. }) => {
                (shard, record).cmp(&(other, than))
            }
            _ => a.key.cmp(&b.key),
        });
        let (numbers, entries) = numbered.into_iter().unzip();
        self.entries = entries;
        (self, numbers)
    }

    /// The first `count` samples only.
    #[must_use]
    pub fn take(mut self, count: u64) -> Self {
        self.entries.truncate(count as usize);
        self
    }

    /// The folder.
    pub fn root(&self) -> &Folder {
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
        let beside = self.source.fields.iter().map(|field| {
            let below = beside(path, &field.from, self.root.path(), self.reach);
            self.root.file(below.expect("checked when the listing was made"))
        });
        std::iter::once(self.root.file(path)).chain(beside).collect()
    }

    /// Adds the sizes of the files beside samples to those of the samples, and notes their versions. One that is not there is an error
    /// when it is read.
    fn add_beside(&mut self) {
        if self.source.format != Format::Files || self.source.fields.is_empty() {
            return;
        }
        let look = |entry: &Entry| {
            let (mut bytes, mut hash) = (entry.bytes, Xxh3::new());
            hash.update(&entry.version.0.to_le_bytes());
            for path in self.files_of(entry).iter().skip(1) {
                let found = self.root.storage().status(path).ok().flatten().unwrap_or(NOTHING);
                bytes += found.bytes;
                hash.update(&found.bytes.to_le_bytes());
                hash.update(&found.version.0.to_le_bytes());
            }
            (bytes, Version(hash.digest()))
        };
        let found: Vec<(u64, Version)> = self.entries.iter().map(look).collect();
        for (entry, found) in self.entries.iter_mut().zip(found) {
            (entry.bytes, entry.version) = found;
        }
    }

    /// That no field would be read from outside the root, unless that is allowed.
    fn check_reach(&self) -> Result<()> {
        for entry in &self.entries {
            let Place::File(path) = &entry.place else { return Ok(()) };
            for field in &self.source.fields {
                if beside(path, &field.from, self.root.path(), self.reach).is_none() {
                    let problem = format!(
                        "field `{}` of sample `{}` would be read from outside the data folder: `from` is `{}`",
                        field.field, entry.key, field.from
                    );
                    return Err(outside(problem));
                }
            }
        }
        Ok(())
    }
}

/// What is known of a file that is not there.
const NOTHING: Status = Status { bytes: 0, version: Version(0) };

/// The path below the root of the file that `from` describes for the sample at `path`: `masks/{stem}.png`. `None` if it leads out of the
/// root and must not.
fn beside(path: &Path, from: &str, root: &Path, reach: Reach) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let values = [
        ("{stem}", path.file_stem().unwrap_or_default()),
        ("{name}", path.file_name().unwrap_or_default()),
        ("{folder}", folder.as_os_str()),
    ];
    // As bytes, since a name need not be text; and once, since a name may hold braces itself.
    let mut named = Vec::new();
    let mut rest = from;
    while let Some(letter) = rest.chars().next() {
        if let Some((place, value)) = values.iter().find(|(place, _)| rest.starts_with(place)) {
            named.extend_from_slice(value.as_bytes());
            rest = &rest[place.len()..];
        } else {
            named.extend_from_slice(&rest.as_bytes()[..letter.len_utf8()]);
            rest = &rest[letter.len_utf8()..];
        }
    }
    reach.below(root, Path::new(OsStr::from_bytes(&named)))
}

fn walk(source: &Source, root: &Folder, on_error: OnError, lost: &mut Vec<Skipped>) -> Result<Vec<Entry>> {
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
    let wanted = |below: &Path| matcher.is_match(below);
    let mut files = Vec::new();
    for found in root.storage().walk(root.path(), &wanted) {
        match found {
            Ok(found) => {
                // A link whose target is gone is a file that cannot be read: a damaged sample.
                let status = found.status.unwrap_or(NOTHING);
                files.push(Entry {
                    key: name_text(found.below.as_os_str().as_bytes()).into(),
                    place: Place::File(found.below),
                    bytes: status.bytes,
                    version: status.version,
                    label: None,
                });
            }
            Err(error) => {
                let path = error.context().path.unwrap_or(root.path());
                let key = path.strip_prefix(root.path()).unwrap_or(path).to_string_lossy().into_owned();
                // Without the root there is nothing to go on with.
                if on_error == OnError::Fail || key.is_empty() {
                    return Err(error.into());
                }
                lost.push(Skipped { key, reason: error.to_string(), samples: None });
            }
        }
    }
    Ok(files)
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
    folder.map(|name| name_text(name.as_bytes()).into_owned()).unwrap_or_default()
}

fn read_table(source: &Source, root: &Folder, reach: Reach) -> Result<HashMap<String, String>> {
    let name = source.table.as_deref().ok_or_else(|| Error::Usage {
        problem: "the source has `label = \"table\"` but no `table`".to_owned(),
        remedy: "add `table = \"labels.tsv\"`, a file below the data folder".to_owned(),
    })?;
    let below = reach.below(root.path(), Path::new(name));
    let below = below.ok_or_else(|| outside(format!("the label table `{name}` lies outside the data folder")))?;
    let path = root.file(below);
    let text = root.storage().read_text(&path, TABLE_BYTES_MAX)?;
    let mut table: HashMap<String, String> = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut columns = line.split('\t');
        let (Some(key), Some(label)) = (columns.next(), columns.next()) else {
            return Err(Error::Format {
                path,
                problem: format!("line {} has no tab: expected path, tab, label; found `{line}`", number + 1),
            });
        };
        let (key, label) = (key.trim(), label.trim());
        match table.insert(key.to_owned(), label.to_owned()) {
            Some(other) if other != label => {
                return Err(Error::Format {
                    path,
                    problem: format!("line {} gives `{key}` the label `{label}`, but it had `{other}`", number + 1),
                });
            }
            _ => {}
        }
    }
    Ok(table)
}

/// The label of a file by its path, its name, or its name without the extension.
fn table_entry(table: &HashMap<String, String>, path: &Path) -> Result<String> {
    let text = |part: &OsStr| name_text(part.as_bytes()).into_owned();
    let names = [Some(text(path.as_os_str())), path.file_name().map(text), path.file_stem().map(text)];
    names.into_iter().flatten().find_map(|name| table.get(&name)).cloned().ok_or_else(|| Error::Usage {
        problem: format!("the label table has no line for `{}`", text(path.as_os_str())),
        remedy: "add one (path or file name, tab, label), or narrow the source's `files`".to_owned(),
    })
}
