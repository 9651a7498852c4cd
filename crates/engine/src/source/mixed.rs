//! A data set that was built in several formats.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::{Pipeline, Sample, Strategy};
use forebay_storage::{Folder, Storage};

use super::{Block, Failed, Fetched, Shards, Source};
use crate::data::{Content, Dataset, MIX_FILE, MixManifest, Skipped};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::StreamLimits;

/// The samples of several data sets, each in a format of its own: those of the first, then those of the second, and so on.
pub struct Mixed {
    manifest: MixManifest,
    formats: Vec<Shards>,
    /// `first[f]` is the number of the first sample of format `f`.
    first: Vec<u64>,
    /// The number that each sample has in the listing, which random steps are drawn by: so they do the same to it whatever its format is.
    numbers: Vec<u64>,
}

/// The data set in the folder `root`, in one format or in several.
pub fn open_dataset(root: &Path, storage: Arc<dyn Storage>, on_error: OnError) -> Result<Arc<dyn Source>> {
    let folder = Folder::new(Arc::clone(&storage), root);
    Ok(match MixManifest::read(&folder)? {
        Some(manifest) => Arc::new(Mixed::new(manifest, &folder, &storage, on_error)?),
        None => Arc::new(Shards::open(root, storage, on_error)?),
    })
}

impl Mixed {
    /// The data set in the folder `root`.
    pub fn open(root: &Path, storage: &Arc<dyn Storage>, on_error: OnError) -> Result<Self> {
        let folder = Folder::new(Arc::clone(storage), root);
        let manifest = MixManifest::read(&folder)?.ok_or_else(|| Error::Usage {
            problem: format!("`{}` is not a data set in several formats", root.display()),
            remedy: "build one with `forebay build --mix`".to_owned(),
        })?;
        Self::new(manifest, &folder, storage, on_error)
    }

    fn new(manifest: MixManifest, root: &Folder, storage: &Arc<dyn Storage>, on_error: OnError) -> Result<Self> {
        let mut formats = Vec::new();
        for entry in &manifest.formats {
            let folder = root.folder(&entry.folder);
            let found = MixManifest::checksum_of(&folder)?;
            if found != entry.manifest_xxh3 {
                let path = folder.file(crate::data::MANIFEST_FILE);
                let problem = format!(
                    "has checksum `{found}`, but the mix says `{}`: it was damaged or replaced",
                    entry.manifest_xxh3
                );
                return Err(Error::Format { path, problem });
            }
            let dataset = Dataset::open_on_error(folder, on_error)?;
            let kept = dataset.manifest();
            let is_described = (kept.samples, kept.bytes) == (entry.samples, entry.bytes)
                && kept.strategy.to_string() == entry.strategy
                && (&kept.pipeline, &kept.classes) == (&manifest.pipeline, &manifest.classes);
            if !is_described {
                let problem =
                    format!("does not describe the data set in `{}`, as a mix that was built does", entry.folder);
                return Err(Error::Format { path: root.file(MIX_FILE), problem });
            }
            formats.push(Shards::new(Arc::new(dataset), Arc::clone(storage)));
        }
        let mut first = Vec::new();
        let mut sum = 0;
        for entry in &manifest.formats {
            first.push(sum);
            sum += entry.samples;
        }
        let mut next = first.clone();
        let mut numbers = vec![0; manifest.samples as usize];
        for (number, format) in (0..).zip(manifest.assigned()) {
            // The manifest was checked to assign as many samples as it says.
            if let Some(place) = next.get(format).and_then(|&at| numbers.get_mut(at as usize)) {
                *place = number;
                next[format] += 1;
            }
        }
        Ok(Self { manifest, formats, first, numbers })
    }

    /// The same with other steps every epoch; see [`Shards::with_pipeline`].
    pub fn with_pipeline(self, pipeline: &Pipeline) -> Result<Self> {
        let change = |shards: Shards| shards.with_pipeline(pipeline.clone());
        Ok(Self { formats: self.formats.into_iter().map(change).collect::<Result<_>>()?, ..self })
    }

    /// The manifest.
    pub fn manifest(&self) -> &MixManifest {
        &self.manifest
    }

    /// The data sets, one of each format.
    pub fn formats(&self) -> &[Shards] {
        &self.formats
    }

    /// The data set that a sample is in, and its number there.
    fn within(&self, sample: u64) -> (&Shards, u64) {
        let format = self.format_of(sample);
        (&self.formats[format], sample - self.first[format])
    }

    fn named(&self, sample: u64, failed: Failed) -> Failed {
        Failed { key: format!("{}/{}", self.folder_of(sample), failed.key), ..failed }
    }

    fn folder_of(&self, sample: u64) -> &str {
        &self.manifest.formats[self.format_of(sample)].folder
    }
}

impl Source for Mixed {
    fn pipeline(&self) -> &Pipeline {
        self.formats[0].pipeline()
    }

    fn strategy(&self) -> &Strategy {
        self.formats[0].strategy()
    }

    fn strategies(&self) -> Vec<&Strategy> {
        self.formats.iter().map(Source::strategy).collect()
    }

    fn format_of(&self, sample: u64) -> usize {
        self.first.partition_point(|&first| first <= sample).saturating_sub(1)
    }

    fn samples(&self) -> u64 {
        self.manifest.samples
    }

    fn classes(&self) -> &[String] {
        &self.manifest.classes
    }

    fn identity(&self) -> String {
        self.manifest.identity.clone()
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.formats.iter().flat_map(Source::paths).collect()
    }

    fn blocks(&self) -> Result<Vec<Block>> {
        let mut all: Vec<Block> = Vec::new();
        let mut sequences = 0;
        for (shards, &first) in self.formats.iter().zip(&self.first) {
            let shifted = |block: Block| Block {
                samples: first + block.samples.start..first + block.samples.end,
                sequence: block.sequence.map(|sequence| sequences + sequence),
                ..block
            };
            all.extend(shards.blocks()?.into_iter().map(shifted));
            sequences += shards.dataset().manifest().shards.len();
        }
        Ok(all)
    }

    fn read(&self, samples: Range<u64>) -> Fetched {
        let (shards, first) = self.within(samples.start);
        let Fetched { contents, bytes_read } = shards.read(first..first + (samples.end - samples.start));
        let named = |content: Result<Content, Failed>| content.map_err(|failed| self.named(samples.start, failed));
        Fetched { contents: contents.into_iter().map(named).collect(), bytes_read }
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        let (shards, number) = self.within(sample);
        let unpacked = shards.unpack(number, content).map_err(|failed| self.named(sample, failed))?;
        Ok(Sample { index: self.numbers[sample as usize], ..unpacked })
    }

    fn unpacking_bytes(&self, sample: u64) -> u64 {
        let (shards, number) = self.within(sample);
        shards.unpacking_bytes(number)
    }

    fn reads_at_once(&self) -> usize {
        self.formats.iter().map(Shards::reads_at_once).max().unwrap_or(0)
    }

    fn inflates(&self) -> bool {
        self.formats.iter().any(Source::inflates)
    }

    fn limit_streams(&self, limits: StreamLimits) -> u64 {
        let each = limits.each_of(self.formats.len());
        self.formats.iter().map(|shards| shards.limit_streams(each)).sum()
    }

    fn streams_bytes(&self) -> (u64, u64) {
        let all = self.formats.iter().map(Source::streams_bytes);
        all.fold((0, 0), |(peak, now), (most, held)| (peak + most, now + held))
    }

    fn key(&self, sample: u64) -> String {
        let (shards, number) = self.within(sample);
        format!("{}/{}", self.folder_of(sample), shards.key(number))
    }

    fn lost(&self) -> Vec<Skipped> {
        self.formats.iter().flat_map(Source::lost).collect()
    }
}
