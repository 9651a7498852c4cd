//! The listing: the samples of a source, their order and their labels.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::{Format, Label, Order, Random, Source};
use forebay_plan::Skipped;
use forebay_record::{Compression, name_text};
use forebay_storage::{EntryKind, Folder, Status, Version};
use globset::GlobBuilder;
use xxhash_rust::xxh3::Xxh3;

use super::arrow::check_splits;
use super::braces;
use super::condition::{self, Condition};
use super::file_list::FileList;
use super::kept::ReadCache;
use super::labels::{LabelFunction, LabelValue, label};
use super::overlooked::{self, Overlooked};
use super::shards::list_shards;
use super::sidecar::{self, Sidecars};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::{Shares, default_memory_bytes};

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
    pub(super) fn below(self, root: &Path, named: &Path) -> Option<PathBuf> {
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

pub(super) fn outside(problem: String) -> Error {
    Error::Usage {
        problem,
        remedy: "if you trust the pipeline, pass --allow-outside (in Python: allow_outside=True)".to_owned(),
    }
}

/// How a source is listed.
#[derive(Clone, Copy, Default)]
pub struct ListingOptions<'a> {
    /// What happens to shards and folders that are damaged, and to files without a label: with [`OnError::Skip`] samples are listed as far as they
    /// are whole, and the rest is [`lost`](Listing::lost).
    pub on_error: OnError,
    /// What the source may name.
    pub reach: Reach,
    /// The files, for a source with `files = "-"`.
    pub files: Option<&'a FileList>,
    /// The function that gives labels, for a source with `label = "function"`. It is called once for each file.
    pub label_function: Option<&'a LabelFunction<'a>>,
}

/// The samples of a source, in the order that numbers them.
#[derive(Debug, Clone)]
pub struct Listing {
    root: Folder,
    /// What the root was called: a pattern, perhaps.
    named_root: PathBuf,
    source: Source,
    /// The files beside each sample's own.
    sidecars: Sidecars,
    entries: Vec<Entry>,
    /// The tar, TFRecord, Parquet or Arrow files that the samples lie in; none where each lies in files of its own.
    shards: Vec<PathBuf>,
    /// How each of them is compressed.
    compressions: Vec<Compression>,
    classes: Vec<String>,
    /// What could not be listed.
    lost: Vec<Skipped>,
    /// What was read of far shards for it, where it is a loader's.
    kept: Option<Arc<ReadCache>>,
    /// What whoever made the folder may not expect.
    notices: Vec<String>,
}

/// What a listing is made of; see its fields.
pub(super) struct Parts {
    pub(super) root: Folder,
    pub(super) named_root: PathBuf,
    pub(super) entries: Vec<Entry>,
    pub(super) shards: Vec<PathBuf>,
    pub(super) compressions: Vec<Compression>,
    pub(super) classes: Vec<String>,
    pub(super) lost: Vec<Skipped>,
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
    /// Its label; a class is a number into [`Listing::classes`].
    pub label: Option<LabelValue>,
    /// Where it lies.
    pub(super) location: SampleLocation,
}

/// Where a sample lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SampleLocation {
    /// In a file of its own, at this path below the root; further fields in files beside it.
    File(PathBuf),
    /// In a shard, as record number `record`.
    Shard { shard: usize, record: u64, offset: u64 },
}

impl Entry {
    /// Its class, if its label is one.
    pub(crate) fn class(&self) -> Option<i64> {
        match self.label {
            Some(LabelValue::Int(class)) => Some(class),
            _ => None,
        }
    }

    /// The path of its file below the root; empty where it lies in a shard.
    pub fn path(&self) -> &Path {
        match &self.location {
            SampleLocation::File(path) => path,
            SampleLocation::Shard { .. } => Path::new(""),
        }
    }
}

impl Listing {
    /// Lists what `source` means in the folder `root`, and reads nothing that the source names outside it.
    pub fn scan(source: &Source, root: impl Into<Folder>) -> Result<Self> {
        Self::scan_with(source, root, &ListingOptions::default())
    }

    /// The same, as `options` say.
    pub fn scan_with(source: &Source, root: impl Into<Folder>, options: &ListingOptions<'_>) -> Result<Self> {
        let mut listing = Self::unordered(source, root.into(), options, None)?;
        if source.order() == Order::Shuffled {
            if source.format.has_columns() {
                return Err(Error::Usage {
                    problem: "the samples of Parquet and Arrow files are read by row groups, in order".to_owned(),
                    remedy: "leave out `order = \"shuffled\"`: a loader shuffles row groups and their rows".to_owned(),
                });
            }
            let compressed = listing.compressions.iter().position(|compression| *compression != Compression::None);
            if let Some(shard) = compressed {
                return Err(Error::Usage {
                    problem: format!(
                        "`{}` is compressed, so that its samples can only be read in order",
                        listing.shards[shard].display()
                    ),
                    remedy: "leave out `order = \"shuffled\"`, or decompress the shards first".to_owned(),
                });
            }
            Random::from_parts(&[source.seed()]).shuffle(&mut listing.entries);
        }
        Ok(listing)
    }

    /// The same samples as they lie, by name, in the order of their list or in that of their shards, and the number that each has in
    /// [a listing](Self::scan_with). That is in the order that a build writes samples in, which is random unless the source says otherwise; whoever
    /// loads the files themselves expects this one.
    pub fn as_they_lie(
        source: &Source,
        root: impl Into<Folder>,
        options: &ListingOptions<'_>,
    ) -> Result<(Self, Vec<u64>)> {
        let root = root.into();
        let is_far = source.format != Format::Files && root.storage().reads_at_once(root.path()) > 0;
        let kept = is_far.then(|| ReadCache::new(Shares::kept_bytes_max(default_memory_bytes(), 0)));
        let listing = Self::unordered(source, root, options, kept)?;
        let mut indexes: Vec<u64> = (0..listing.len() as u64).collect();
        if source.order() == Order::Shuffled {
            Random::from_parts(&[source.seed()]).shuffle(&mut indexes);
        }
        let mut numbers = vec![0; indexes.len()];
        for (number, index) in (0..).zip(indexes) {
            numbers[index as usize] = number;
        }
        Ok((listing, numbers))
    }

    fn unordered(
        source: &Source,
        root: Folder,
        options: &ListingOptions<'_>,
        kept: Option<Arc<ReadCache>>,
    ) -> Result<Self> {
        let mut lost = Vec::new();
        let named_root = root.path().to_owned();
        let (root, names) = match braces::names(root.path())? {
            Some((folder, names)) => (Folder::new(Arc::clone(root.storage()), folder), Some(names)),
            None => (root, None),
        };
        if options.files.is_none() && names.is_none() {
            check_splits(source, &root)?;
        }
        let overlooked = Overlooked::default();
        let mut entries = match options.files {
            Some(given) if source.files_are_given() => given.entries(&root, options.on_error, &mut lost)?,
            None if source.files_are_given() => {
                return Err(Error::Usage {
                    problem: "the files of this source are given as a list, and there is none".to_owned(),
                    remedy: "give it with `--files-from LIST` (in Python: `data=[…]`)".to_owned(),
                });
            }
            Some(_) => return Err(Error::internal("a list of files was given for a source that looks for its own")),
            None => match &names {
                Some(names) => braces::look_up(&root, names, options.on_error, &mut lost)?,
                None => walk(source, &root, options.on_error, &mut lost, &overlooked)?,
            },
        };
        let mut notices = Vec::new();
        if source.format == Format::Files && !source.files_are_given() {
            notices.extend(overlooked.notice(source.pattern()).into_iter().chain(overlooked::hidden(&entries)));
        }
        if entries.is_empty() {
            return Err(nothing_matches(source, &root, &overlooked));
        }
        let (mut shards, mut compressions, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        if source.format == Format::Files {
            let condition = Condition::of(source, &root, options)?;
            if let Some(condition) = &condition {
                condition.keep_named(&mut entries, source)?;
            }
            if source.label == Label::None {
                for entry in &mut entries {
                    entry.label = None;
                }
            } else {
                classes = label(&mut entries, source, &root, options, &mut lost)?;
            }
            if let Some(condition) = &condition {
                condition.keep_matching(&mut entries)?;
            }
        } else {
            let found = list_shards(source, &root, &entries, options.on_error, kept.as_ref())?;
            (shards, compressions, entries, classes) = (found.paths, found.compressions, found.entries, found.classes);
            lost.extend(found.lost);
        }
        let sidecars = Sidecars::new(source, options.reach)?;
        sidecars.check(&mut entries, &root, options.on_error, &mut lost)?;
        let source = source.clone();
        let mut listing =
            Self { root, named_root, source, sidecars, entries, shards, compressions, classes, lost, kept, notices };
        sidecar::check_there(&listing)?;
        listing.add_sidecars();
        if listing.source.format.has_columns() {
            listing = condition::matching_rows(listing)?;
        }
        Ok(listing)
    }

    /// `count` samples that stand for all. Of files one of each `count`-th part by size, the one nearest to the mean of its part: what a
    /// sample costs goes by its bytes, and few that are drawn blindly are often larger or smaller than all. Of shards, whose samples are read
    /// together, the first.
    #[must_use]
    pub fn sample(mut self, count: u64) -> Self {
        let all = self.entries.len();
        let count = all.min(count as usize);
        if self.source.format != Format::Files {
            self.entries.truncate(count);
        }
        if self.entries.len() == count {
            return self;
        }
        let bytes = |&index: &usize| self.entries[index].bytes;
        let mut by_size: Vec<usize> = (0..all).collect();
        by_size.sort_by_key(|index| (bytes(index), *index));
        let mut taken = vec![false; all];
        for part in 0..count {
            let part = &by_size[part * all / count..(part + 1) * all / count];
            let mean = (part.iter().map(bytes).map(u128::from).sum::<u128>() / part.len() as u128) as u64;
            // Of equal ones the one in the middle: such files come from everywhere in the listing.
            let distance = |at: &usize| (bytes(&part[*at]).abs_diff(mean), at.abs_diff(part.len() / 2));
            let nearest = (0..part.len()).min_by_key(distance).unwrap_or(0);
            taken[part[nearest]] = true;
        }
        let mut taken = taken.into_iter();
        self.entries.retain(|_| taken.next().unwrap_or(false));
        self
    }

    /// The samples that `takes` says, which is asked once for each, in order; what is lost goes with them or not.
    #[must_use]
    pub(crate) fn part(mut self, mut takes: impl FnMut() -> bool, with_lost: bool) -> Self {
        self.entries.retain(|_| takes());
        if !with_lost {
            self.lost.clear();
        }
        self
    }

    /// A listing that was made before: of parts that went together then.
    pub(super) fn of_parts(parts: Parts, source: &Source, reach: Reach) -> Result<Self> {
        let Parts { root, named_root, entries, shards, compressions, classes, lost } = parts;
        let sidecars = Sidecars::new(source, reach)?;
        let (source, kept, notices) = (source.clone(), None, Vec::new());
        Ok(Self { root, named_root, source, sidecars, entries, shards, compressions, classes, lost, kept, notices })
    }

    /// How each shard is compressed.
    pub(super) fn compressions(&self) -> &[Compression] {
        &self.compressions
    }

    /// What was read of far shards, and is wanted once more.
    pub(super) fn kept(&self) -> Option<&ReadCache> {
        self.kept.as_deref()
    }

    /// What to know about the files that were listed, and those beside them that were not.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The folder.
    pub fn root(&self) -> &Folder {
        &self.root
    }

    /// What was listed, as it was named: the folder, or a pattern of names.
    pub fn named_root(&self) -> &Path {
        &self.named_root
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

    /// The names of the classes; a label is an index into this list.
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

    /// How shard number `shard` is compressed.
    pub(crate) fn compression(&self, shard: usize) -> Compression {
        self.compressions[shard]
    }

    /// The number of the compressed shard, or of the row group, that sample number `number` lies in, if it does in one.
    pub(crate) fn sequence_of(&self, number: usize) -> Option<usize> {
        match self.entries[number].location {
            // A batch of Arrow that is not compressed is read row by row.
            SampleLocation::Shard { shard, .. }
                if self.source.format == Format::Arrow && self.compressions[shard] == Compression::None =>
            {
                None
            }
            // A row group: its pages are inflated for many rows at once.
            SampleLocation::Shard { shard, offset, .. } if self.source.format.has_columns() => {
                Some((shard << SHARD_SHIFT) ^ offset as usize)
            }
            SampleLocation::Shard { shard, .. } if self.compressions[shard] != Compression::None => Some(shard),
            _ => None,
        }
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
        let SampleLocation::File(path) = &entry.location else { return Vec::new() };
        let beside = self.sidecars.below(path, self.root.path()).map(|below| self.root.file(below));
        std::iter::once(self.root.file(path)).chain(beside).collect()
    }

    /// Adds the sizes of the files beside samples to those of the samples, and notes their versions. One that is not there is an error
    /// when it is read.
    fn add_sidecars(&mut self) {
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
}

/// Offsets of row groups are below two to this.
const SHARD_SHIFT: u32 = 44;

/// What is known of a file that is not there.
const NOTHING: Status = Status { bytes: 0, version: Version(0) };

/// What to say where the source has no file.
fn nothing_matches(source: &Source, root: &Folder, overlooked: &Overlooked) -> Error {
    let path = root.path().display();
    if let Ok(Some(EntryKind::File)) = root.storage().kind(root.path()) {
        return Error::Usage {
            problem: format!("`{path}` is a file, and not a folder of files"),
            remedy: "name the folder that it lies in".to_owned(),
        };
    }
    let found = overlooked.found().map_or_else(String::new, |found| format!(", but there are {found}"));
    Error::Usage {
        problem: format!("no file below `{path}` matches `{}`{found}", source.pattern()),
        remedy: "check the folder, or set `files` in the pipeline's [source]".to_owned(),
    }
}

/// The files that the source's pattern finds, by name; what it does not find and looks like an image is overlooked.
fn walk(
    source: &Source,
    root: &Folder,
    on_error: OnError,
    lost: &mut Vec<Skipped>,
    overlooked: &Overlooked,
) -> Result<Vec<Entry>> {
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
    let wanted = |below: &Path| {
        let is_wanted = matcher.is_match(below);
        if !is_wanted {
            overlooked.note(below);
        }
        is_wanted
    };
    let mut files = Vec::new();
    for found in root.storage().walk(root.path(), &wanted) {
        match found {
            Ok(found) => {
                // A link whose target is gone is a file that cannot be read: a damaged sample.
                let status = found.status.unwrap_or(NOTHING);
                files.push(Entry {
                    key: name_text(found.below.as_os_str().as_bytes()).into(),
                    location: SampleLocation::File(found.below),
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
    files.sort_unstable_by(|one: &Entry, other| one.key.cmp(&other.key));
    Ok(files)
}
