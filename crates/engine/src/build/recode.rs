//! A data set that was built, with its images encoded again: the same samples in the same shards, labels and all other fields as they are.
//!
//! Like any build it goes on where it was stopped, and what comes out is a data set like any other. What was kept as files (`concatenated`) is still
//! called so, since content decides what an image is; what was kept encoded (`resized+png`), or as pixels, is called by the new encoding (`resized+jpeg-75`).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_codec::image::{Decoder, EncodedImage, Encoding, Format};
use forebay_pipeline::{FieldType, SampleView, Sink as _, Strategy, Value, ValueView};
use forebay_storage::{Folder, Storage};

use super::dictionary::Trained;
use super::identity::Identity;
use super::journal::{Journal, Opened, ShardDone};
use super::shard::{Origin, Records, ShardWriter, failed};
use super::{BuildOptions, BuildReport, complete, missing_of, resume, write_shards};
use crate::data::{Content, Dataset, Manifest, Skipped};
use crate::error::{Error, Result};
use crate::memory::Gate;
use crate::progress::Progress;
use crate::recompress::{Original, as_stored};
use crate::source::{Block, Failed, Shards, Source};

/// What to make of a data set.
pub(crate) struct Recode {
    dataset: Arc<Dataset>,
    source: Shards,
    strategy: Strategy,
    encoding: Encoding,
    /// How many images were encoded, and how many were copied.
    pub(crate) encoded: AtomicU64,
    /// See `encoded`.
    pub(crate) copied: AtomicU64,
}

impl Recode {
    /// The images of `dataset` as `encoding`; an error where it has none.
    pub(crate) fn new(dataset: Arc<Dataset>, storage: Arc<dyn Storage>, encoding: Encoding) -> Result<Self> {
        let strategy = strategy(&dataset, encoding)?;
        let source = Shards::new(Arc::clone(&dataset), storage);
        Ok(Self { dataset, source, strategy, encoding, encoded: AtomicU64::new(0), copied: AtomicU64::new(0) })
    }

    /// Writes it into the folder `output`, or resumes what was interrupted there. The number of shards is the same.
    pub(crate) fn run(&self, output: Folder, options: &BuildOptions, progress: &dyn Progress) -> Result<BuildReport> {
        let shards = self.dataset.manifest().shards.len();
        let identity = Identity::recoded(self.dataset.manifest(), &self.strategy, &self.encoding.to_string());
        let journal = match Journal::open(output, identity, options.on_error, options.overwrite)? {
            Opened::Finished(manifest) => return Ok(BuildReport { shards_reused: shards, manifest: *manifest }),
            Opened::Unfinished(journal) => journal,
        };
        let trained = self.trained(options, &journal, progress)?;
        let dictionary_xxh3 = trained.as_ref().map(|trained| trained.xxh3.as_str());
        let kept = resume::whole_shards(&journal, (shards, dictionary_xxh3), options.threads, progress)?;
        let shards_reused = kept.iter().flatten().count();
        progress.begin("recompress", self.dataset.manifest().samples);
        progress.advance(kept.iter().flatten().map(|done| done.entry.samples).sum());
        let missing = missing_of(&kept);
        let workers = options.threads.min(missing.len()).max(1);
        let (stop, gate) = (AtomicBool::new(false), Gate::new(options.memory_bytes, workers));
        let dictionary = trained.as_ref().map(|trained| &trained.dictionary);
        let writer = || self.writer(options, (&stop, progress, &gate)).with_dictionary(dictionary);
        let built = write_shards(&journal, &missing, (workers, &stop), writer, |shard| self.range(shard))?;
        let mut manifest = self.manifest(&journal, complete(kept, built)?)?;
        manifest.dictionary_xxh3 = dictionary_xxh3.map(str::to_owned);
        journal.finish(&manifest)?;
        progress.end();
        Ok(BuildReport { manifest, shards_reused })
    }

    /// The samples of shard number `shard`: those that it has.
    fn range(&self, shard: usize) -> Range<usize> {
        let first = self.dataset.first_sample(shard);
        first as usize..(first + self.dataset.manifest().shards[shard].samples) as usize
    }

    fn writer<'a>(
        &'a self,
        options: &BuildOptions,
        around: (&'a AtomicBool, &'a dyn Progress, &'a Gate),
    ) -> ShardWriter<'a> {
        let origin = Recoded { recode: self, decoder: Decoder::new(), blocks: Vec::new(), shard: None, read: None };
        ShardWriter::of(Box::new(origin), self.strategy.format, options.on_error, around)
    }

    fn trained(&self, options: &BuildOptions, journal: &Journal, progress: &dyn Progress) -> Result<Option<Trained>> {
        if !self.strategy.format.compression.is_some_and(|compression| compression.has_dictionary()) {
            return Ok(None);
        }
        let (gate, stop) = (Gate::new(options.memory_bytes, 1), AtomicBool::new(false));
        let trained = Trained::by(self.writer(options, (&stop, progress, &gate)), journal);
        // Those are encoded again when their shard is written.
        self.encoded.store(0, Ordering::Relaxed);
        self.copied.store(0, Ordering::Relaxed);
        trained.map(Some)
    }

    fn manifest(&self, journal: &Journal, done: Vec<ShardDone>) -> Result<Manifest> {
        let before = self.dataset.manifest();
        let skipped = before.skipped_samples.iter().cloned().chain(done.iter().flat_map(|shard| shard.skipped.clone()));
        let skipped: Vec<Skipped> = skipped.collect();
        let samples = done.iter().map(|shard| shard.entry.samples).sum();
        if samples == 0 {
            return Err(Error::Usage {
                problem: "not one sample could be recompressed".to_owned(),
                remedy: "run again without skipping samples to see the first error".to_owned(),
            });
        }
        Ok(Manifest {
            forebay: env!("CARGO_PKG_VERSION").to_owned(),
            encodings: self.strategy.field_encodings(self.dataset.pipeline()),
            strategy: self.strategy.clone(),
            identity: journal.identity().to_owned(),
            samples,
            bytes: done.iter().map(|shard| shard.entry.bytes).sum(),
            skipped_samples: skipped,
            dictionary_xxh3: None,
            shards: done.into_iter().map(|shard| shard.entry).collect(),
            ..before.clone()
        })
    }
}

/// The strategy of the data set with its images as `encoding`.
fn strategy(dataset: &Dataset, encoding: Encoding) -> Result<Strategy> {
    let (pipeline, kept) = (dataset.pipeline(), &dataset.manifest().strategy);
    let mut format = kept.format;
    format.encoding = Some(encoding);
    if !format.progressive
        && let Ok(strategy) = Strategy::new(pipeline, kept.split.clone(), format)
    {
        return Ok(strategy);
    }
    // Files as they are: what their bytes are is nobody's business but theirs.
    let field = &pipeline.source().field;
    if kept.format.encoding.is_none() && dataset.stored_schema().field(field) == Some(&FieldType::Bytes) {
        return Ok(kept.clone());
    }
    Err(Error::Usage {
        problem: format!("`{}` stores {}, which cannot be stored as {encoding}", kept, dataset.stored_schema()),
        remedy: "recompress a data set that contains images: files, or 8-bit pixels".to_owned(),
    })
}

/// The samples of a data set, with their images encoded again.
struct Recoded<'a> {
    recode: &'a Recode,
    decoder: Decoder,
    /// What is read together of the shard at work.
    blocks: Vec<Block>,
    shard: Option<usize>,
    /// What was read last.
    read: Option<ReadBlock>,
}

/// A block, and of each of its samples what was read, until it is taken.
struct ReadBlock {
    block: Block,
    contents: Vec<Option<Result<Content, Failed>>>,
}

impl Recoded<'_> {
    /// The block that contains sample number `number`.
    fn block(&mut self, number: u64) -> Result<Block> {
        let (shard, _) = self.recode.dataset.locate(number);
        if self.shard != Some(shard) {
            self.blocks = self.recode.source.blocks_of(shard)?;
            self.shard = Some(shard);
        }
        let found = self.blocks.iter().find(|block| block.samples.contains(&number));
        found.cloned().ok_or_else(|| Error::internal("a sample that no block has"))
    }

    /// What was read of sample number `number`; its neighbors are read along.
    fn content(&mut self, block: &Block, number: u64) -> Result<Content> {
        let at = (number - block.samples.start) as usize;
        if self.read.as_ref().is_none_or(|read| read.block != *block) {
            self.read = None;
            let contents = self.recode.source.read(block.samples.clone()).contents.into_iter().map(Some).collect();
            self.read = Some(ReadBlock { block: block.clone(), contents });
        }
        let taken = self.read.as_mut().and_then(|read| read.contents.get_mut(at)?.take());
        let content = match taken {
            Some(content) => content,
            // It was read before, as when a dictionary is trained.
            None => {
                self.recode.source.read(number..number + 1).contents.pop().unwrap_or_else(|| Ok(Content::default()))
            }
        };
        content.map_err(|failed| *failed.error)
    }

    /// The image in `bytes` as it will be stored; `None` if it is copied.
    fn encoded(&mut self, key: &str, bytes: &[u8], records: &mut Records<'_>) -> Result<Option<Vec<u8>>> {
        let wrong = |error: forebay_codec::Error| forebay_pipeline::Error::Step {
            key: key.to_owned(),
            step: "recompress".to_owned(),
            source: Box::new(error.into()),
        };
        let picture = EncodedImage::open(bytes).map_err(wrong)?;
        let plan = picture.plan(&as_stored(picture.header())).map_err(wrong)?;
        // The pixels, and what is made of them.
        let reserved = records.reserve(2 * plan.spec().bytes() + plan.working_bytes() + bytes.len());
        reserved.map_err(|source| failed(key, "recompress", source))?;
        let original = Original::decode(bytes, &picture, &mut self.decoder).map_err(wrong)?;
        Ok(original.encoded(self.recode.encoding).map_err(wrong)?)
    }
}

impl Origin for Recoded<'_> {
    fn len(&self) -> usize {
        self.recode.dataset.manifest().samples as usize
    }

    fn key(&self, number: usize) -> String {
        self.recode.source.key(number as u64)
    }

    fn bytes(&self, number: usize) -> u64 {
        let (shard, _) = self.recode.dataset.locate(number as u64);
        let entry = &self.recode.dataset.manifest().shards[shard];
        entry.bytes / entry.samples.max(1)
    }

    fn make(&mut self, number: usize, records: &mut Records<'_>) -> Result<()> {
        let number = number as u64;
        let block = self.block(number)?;
        records.begin(&self.recode.source.key(number), block.bytes + self.recode.source.unpacking_bytes(number))?;
        let content = self.content(&block, number)?;
        let mut sample = self.recode.source.unpack(number, content).map_err(|failed| *failed.error)?;
        let main = self.recode.dataset.pipeline().source().field.clone();
        for field in sample.fields.iter_mut().filter(|field| *field.name == *main) {
            let Value::Bytes(bytes) = &field.value else {
                self.recode.encoded.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            if Format::detect(bytes).is_none() {
                continue;
            }
            match self.encoded(&sample.key, bytes, records)? {
                Some(encoded) => {
                    self.recode.encoded.fetch_add(1, Ordering::Relaxed);
                    field.value = Value::Bytes(encoded.into());
                }
                None => _ = self.recode.copied.fetch_add(1, Ordering::Relaxed),
            }
        }
        let fields: Vec<(&str, ValueView<'_>)> =
            sample.fields.iter().map(|field| (&*field.name, field.value.view())).collect();
        records.accept(SampleView { key: &sample.key, index: number, fields: &fields });
        Ok(())
    }
}
