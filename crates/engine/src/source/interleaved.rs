//! Several data sets as one, for epochs that mix them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::{Action, Pipeline, Random, Sample, Step, Strategy};
use xxhash_rust::xxh3::xxh3_64;

use super::{Block, Failed, Fetched, Source};
use crate::data::{Content, LabelValue, Skipped};
use crate::error::{Error, Result};
use crate::memory::StreamLimits;

/// The samples of several sources: those of the first, then those of the second, and so on. Each has its own pipeline, but all give the same fields.
/// Each is a format of its own to whoever orders an epoch, so that every batch of a shuffled one has its share of each.
pub struct Interleaved {
    of: Vec<Arc<dyn Source>>,
    /// `first[n]` is the number of the first sample of source `n`.
    first: Vec<u64>,
    /// `formats[n]` is how many formats the sources before source `n` have.
    formats: Vec<usize>,
    samples: u64,
}

impl Interleaved {
    /// These sources as one. They must give the same fields, have the same classes, and do the same to whole batches.
    pub fn new(of: Vec<Arc<dyn Source>>) -> Result<Self> {
        let Some(one) = of.first() else {
            return Err(Error::Usage {
                problem: "no data sets to interleave".to_owned(),
                remedy: "name at least one".to_owned(),
            });
        };
        for (number, other) in of.iter().enumerate().skip(1) {
            check_alike(&**one, &**other, number)?;
        }
        let (mut first, mut formats) = (vec![0], vec![0]);
        for source in &of {
            first.push(first[first.len() - 1] + source.samples());
            formats.push(formats[formats.len() - 1] + source.strategies().len());
        }
        let samples = first.pop().unwrap_or(0);
        Ok(Self { of, first, formats, samples })
    }

    /// How many samples each source has.
    pub fn counts(&self) -> Vec<u64> {
        self.of.iter().map(|source| source.samples()).collect()
    }

    /// Which source a sample is of.
    fn source_of(&self, sample: u64) -> usize {
        self.first.partition_point(|&first| first <= sample).saturating_sub(1)
    }

    /// The source that a sample is of, and its number there.
    fn within(&self, sample: u64) -> (&dyn Source, u64) {
        let source_index = self.source_of(sample);
        (&*self.of[source_index], sample - self.first[source_index])
    }
}

/// Refuses what cannot come in one batch.
fn check_alike(one: &dyn Source, other: &dyn Source, number: usize) -> Result<()> {
    let differ = |what: &str, here: String, there: String, remedy: &str| {
        let problem = format!("data set {number} has other {what} than data set 0: {there} instead of {here}");
        Err(Error::Usage { problem, remedy: remedy.to_owned() })
    };
    let (here, there) = (one.pipeline().output(), other.pipeline().output());
    let same = here.fields.len() == there.fields.len()
        && here.fields.iter().all(|(name, kind)| there.field(name) == Some(kind));
    if !same {
        let remedy = "batches have one shape: let the pipelines end in the same fields and types";
        return differ("fields", here.to_string(), there.to_string(), remedy);
    }
    if one.classes() != other.classes() {
        let listed = |source: &dyn Source| format!("{} classes", source.classes().len());
        let remedy = "a label is one class in all of them: build them with the same `classes`";
        return differ("classes", listed(one), listed(other), remedy);
    }
    let batches = |source: &dyn Source| -> Vec<String> {
        let of_batches = |step: &&Step| matches!(step.action, Action::BatchTransform(_));
        source.pipeline().steps().iter().filter(of_batches).map(|step| format!("{:?}", step.action)).collect()
    };
    if batches(one) != batches(other) {
        let remedy = "what is done to a batch is done to all of its samples: let the pipelines end alike";
        return differ("steps of whole batches", batches(one).join(", "), batches(other).join(", "), remedy);
    }
    Ok(())
}

impl Source for Interleaved {
    fn pipeline(&self) -> &Pipeline {
        self.of[0].pipeline()
    }

    fn strategy(&self) -> &Strategy {
        self.of[0].strategy()
    }

    fn strategies(&self) -> Vec<&Strategy> {
        self.of.iter().flat_map(|source| source.strategies()).collect()
    }

    fn pipelines(&self) -> Vec<&Pipeline> {
        self.of.iter().flat_map(|source| source.pipelines()).collect()
    }

    fn format_of(&self, sample: u64) -> usize {
        let source_index = self.source_of(sample);
        self.formats[source_index] + self.of[source_index].format_of(sample - self.first[source_index])
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn classes(&self) -> &[String] {
        self.of[0].classes()
    }

    fn identity(&self) -> String {
        let all: Vec<String> = self.of.iter().map(|source| source.identity()).collect();
        format!("{:016x}", xxh3_64(all.join("\n").as_bytes()))
    }

    fn folder(&self) -> Option<&Path> {
        self.of[0].folder()
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.of.iter().flat_map(|source| source.paths()).collect()
    }

    fn blocks(&self) -> Result<Vec<Block>> {
        let mut all: Vec<Block> = Vec::new();
        let mut sequences = 0;
        for (source, &first) in self.of.iter().zip(&self.first) {
            let before = sequences;
            for block in source.blocks()? {
                let sequence = block.sequence.map(|sequence| before + sequence);
                sequences = sequences.max(sequence.map_or(0, |sequence| sequence + 1));
                let samples = first + block.samples.start..first + block.samples.end;
                all.push(Block { samples, sequence, ..block });
            }
        }
        Ok(all)
    }

    fn read(&self, samples: Range<u64>) -> Fetched {
        if samples.is_empty() {
            return Fetched { contents: Vec::new(), bytes_read: 0 };
        }
        let (source, first) = self.within(samples.start);
        source.read(first..first + (samples.end - samples.start))
    }

    fn reads_at_once(&self) -> usize {
        self.of.iter().map(|source| source.reads_at_once()).max().unwrap_or(0)
    }

    fn inflates(&self) -> bool {
        self.of.iter().any(|source| source.inflates())
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        let (source, number) = self.within(sample);
        let mut unpacked = source.unpack(number, content)?;
        if let source_index @ 1.. = self.source_of(sample) {
            // Random steps draw from the number: sample 7 of one data set is another one than sample 7 of the next.
            unpacked.index = Random::from_parts(&[unpacked.index, source_index as u64, INTERLEAVED]).bits();
        }
        Ok(unpacked)
    }

    fn unpacking_bytes(&self, sample: u64) -> u64 {
        let (source, number) = self.within(sample);
        source.unpacking_bytes(number)
    }

    fn limit_streams(&self, limits: StreamLimits) -> u64 {
        let each = limits.each_of(self.of.len());
        self.of.iter().map(|source| source.limit_streams(each)).sum()
    }

    fn streams_bytes(&self) -> (u64, u64) {
        let all = self.of.iter().map(|source| source.streams_bytes());
        all.fold((0, 0), |(peak, now), (most, held)| (peak + most, now + held))
    }

    fn key(&self, sample: u64) -> String {
        let (source, number) = self.within(sample);
        source.key(number)
    }

    fn keys_and_labels(&self) -> Result<Vec<(String, Option<LabelValue>)>> {
        let each = self.of.iter().map(|source| source.keys_and_labels()).collect::<Result<Vec<_>>>()?;
        Ok(each.into_iter().flatten().collect())
    }

    fn lost(&self) -> Vec<Skipped> {
        self.of.iter().flat_map(|source| source.lost()).collect()
    }
}

/// What tells the numbers of interleaved samples from others.
const INTERLEAVED: u64 = 0x171E_A7ED;
