//! Which samples an epoch has, where it is not each of them once.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use forebay_engine::StorageChoice;
use forebay_engine::data::{LabelValue, matching};
use forebay_engine::load::{Sampling, Shares};
use forebay_engine::source::Source;

use crate::error::{Error, Result};

/// Heading of the help.
const SAMPLING: &str = "Sampling options";

/// The maximum size of a list of numbers in bytes: a hundred million of them.
const NUMBERS_BYTES_MAX: u64 = 1 << 30;

/// What is drawn for an epoch. Samples are counted from 0, in the order of a load without `--shuffle`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SamplingArguments {
    /// Load only the samples whose numbers or keys (paths) are in FILE, one per line
    #[arg(long, value_name = "FILE", help_heading = SAMPLING)]
    subset: Option<PathBuf>,
    /// Load only the samples that meet a condition, e.g. `split == 'train' and width >= 224`: on columns of --table, of Parquet and Arrow files, and on `key`,
    /// `label` and `class`
    #[arg(long = "where", value_name = "CONDITION", help_heading = SAMPLING)]
    condition: Option<String>,
    /// Table for --where: a CSV, TSV or Parquet file whose first column has the keys (paths) of the samples
    #[arg(long, value_name = "FILE", help_heading = SAMPLING, requires = "condition")]
    table: Option<PathBuf>,
    /// Draw samples with the weights in FILE, one per line for each sample; or `balanced`: with replacement, so that all classes are equally
    /// probable, by the labels of the samples
    #[arg(long, value_name = "FILE|balanced", help_heading = SAMPLING)]
    weights: Option<Weights>,
    /// Draw with replacement: a sample may occur more than once in an epoch
    #[arg(long, help_heading = SAMPLING)]
    replacement: bool,
    /// Number of samples to draw per epoch, over all ranks [default: all]
    #[arg(long, value_name = "N", help_heading = SAMPLING, value_parser = clap::value_parser!(u64).range(1..))]
    num_samples: Option<u64>,
    /// Number of times each drawn sample occurs in an epoch, with different random choices each time [default: 1]
    #[arg(long, value_name = "N", help_heading = SAMPLING, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    repeats: Option<u64>,
    /// Mix in another data set: WEIGHT samples of it for each sample of the first (repeatable)
    #[arg(long, value_name = "DATASET=WEIGHT", help_heading = SAMPLING, conflicts_with_all = ["subset", "condition", "weights", "replacement", "repeats"])]
    interleave: Vec<Weighted>,
}

/// How probable each sample is.
#[derive(Debug, Clone)]
enum Weights {
    /// As much as makes all classes equally probable.
    Balanced,
    /// As a file says.
    File(PathBuf),
}

impl FromStr for Weights {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(if text == "balanced" { Self::Balanced } else { Self::File(text.into()) })
    }
}

/// A data set, and how much of it comes.
#[derive(Debug, Clone)]
pub(crate) struct Weighted {
    folder: PathBuf,
    weight: f64,
}

impl FromStr for Weighted {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (folder, weight) = text.rsplit_once('=').ok_or("write it as `DATASET=WEIGHT`, e.g. `other/=0.3`")?;
        let weight = weight.parse().ok().filter(|weight: &f64| *weight >= 0.0 && weight.is_finite());
        let weight = weight.ok_or("the weight must be a number from 0 on")?;
        Ok(Self { folder: folder.into(), weight })
    }
}

impl SamplingArguments {
    /// The data sets that are mixed in.
    pub(crate) fn interleaved(&self) -> impl Iterator<Item = &Path> {
        self.interleave.iter().map(|other| &*other.folder)
    }

    /// The shares of several data sets, given their numbers of samples.
    pub(crate) fn shares(&self, counts: &[u64]) -> Result<Option<Shares>> {
        if self.interleave.is_empty() {
            return Ok(None);
        }
        let weights: Vec<f64> = std::iter::once(1.0).chain(self.interleave.iter().map(|other| other.weight)).collect();
        Ok(Some(Shares::new(counts, &weights)?))
    }

    /// The files that it reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let files = [self.subset.as_deref(), self.table.as_deref(), self.weights_file()];
        files.into_iter().flatten().chain(self.interleaved())
    }

    fn weights_file(&self) -> Option<&Path> {
        match &self.weights {
            Some(Weights::File(path)) => Some(path),
            _ => None,
        }
    }

    /// What the loader is asked for.
    pub(crate) fn read(&self, source: &dyn Source) -> Result<Sampling> {
        for (option, is_given) in [("--subset", self.subset.is_some()), ("--where", self.condition.is_some())] {
            if is_given && self.weights_file().is_some() {
                let problem =
                    format!("`--weights FILE` cannot be used with `{option}`: it has a weight for each sample");
                return Err(Error::usage(problem, "give the samples to leave out the weight 0"));
            }
        }
        let mut subset = self.subset.as_deref().map(|path| chosen(path, source)).transpose()?;
        if let Some(condition) = &self.condition {
            subset = Some(self.matching(condition, subset, source)?);
        }
        let mut samples = self.num_samples;
        let mut weights = self.weights_file().map(numbers).transpose()?;
        let is_balanced = matches!(self.weights, Some(Weights::Balanced));
        if is_balanced {
            samples = samples.or_else(|| subset.as_ref().map(|subset| subset.len() as u64));
            weights = Some(balanced(subset.take().as_deref(), source)?);
        }
        Ok(Sampling {
            subset: subset.map(Into::into),
            weights: weights.map(Into::into),
            replacement: self.replacement || is_balanced,
            samples,
            repeats: self.repeats.unwrap_or(1),
            shares: None,
        })
    }
}

impl SamplingArguments {
    /// The samples that meet `condition`, of those of `subset` if there is one.
    fn matching(&self, condition: &str, subset: Option<Vec<u64>>, source: &dyn Source) -> Result<Vec<u64>> {
        let storage = StorageChoice::Local.open(0)?;
        let found = matching(source, condition, self.table.as_deref().map(|path| (&*storage, path)))?;
        let Some(subset) = subset else { return Ok(found) };
        let found: HashSet<u64> = found.into_iter().collect();
        let both: Vec<u64> = subset.into_iter().filter(|sample| found.contains(sample)).collect();
        if both.is_empty() {
            let problem = format!("no sample of `--subset` meets `--where`: `{condition}`");
            return Err(Error::usage(problem, "check both, or omit one"));
        }
        Ok(both)
    }
}

/// Weights by which all classes of `subset` (all samples, if there is none) are equally probable; of others 0.
fn balanced(subset: Option<&[u64]>, source: &dyn Source) -> Result<Vec<f64>> {
    let known = source.keys_and_labels()?;
    if let Some(outside) = subset.iter().flat_map(|subset| subset.iter()).find(|sample| **sample >= known.len() as u64)
    {
        let problem = format!("the subset has sample {outside} of {}", known.len());
        return Err(Error::usage(problem, "samples count from 0"));
    }
    let subset: Option<HashSet<u64>> = subset.map(|subset| subset.iter().copied().collect());
    let is_in = |sample: &u64| subset.as_ref().is_none_or(|subset| subset.contains(sample));
    let mut counts: HashMap<(bool, u64), u64> = HashMap::new();
    let mut labels = Vec::with_capacity(known.len());
    for (number, (key, label)) in (0..).zip(&known) {
        if !is_in(&number) {
            labels.push(None);
            continue;
        }
        let Some(label) = label else {
            let hint = "set the pipeline's `source.label` (a folder, a table), or pass `--weights FILE`";
            return Err(Error::usage(format!("`--weights balanced`, but `{key}` has no label"), hint));
        };
        let label = match *label {
            LabelValue::Int(number) => (true, number.cast_unsigned()),
            LabelValue::Float(number) => (false, u64::from(number.to_bits())),
        };
        *counts.entry(label).or_default() += 1;
        labels.push(Some(label));
    }
    let weight = |label| 1.0 / (counts.len() as f64 * counts[&label] as f64);
    Ok(labels.into_iter().map(|label| label.map_or(0.0, weight)).collect())
}

/// The numbers of the samples that a file names: by numbers, or by their keys.
fn chosen(path: &Path, source: &dyn Source) -> Result<Vec<u64>> {
    let text = forebay_storage::read_text(path, NUMBERS_BYTES_MAX).map_err(forebay_engine::Error::from)?;
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    if lines().all(|line| line.parse::<u64>().is_ok()) {
        return numbers(path);
    }
    let known = source.keys_and_labels()?;
    let known: HashMap<&str, u64> = known.iter().map(|(key, _)| key.as_str()).zip(0..).collect();
    let number = |line: &str| {
        known.get(line).copied().ok_or_else(|| {
            let shown: String = line.chars().take(80).collect();
            let problem =
                format!("`{}` has `{shown}`, which is neither a number nor the key of a sample", path.display());
            Error::usage(
                problem,
                "write keys as `forebay load` and `forebay inspect` show them: paths below the data folder",
            )
        })
    };
    lines().map(number).collect()
}

/// The numbers of a file, one per line; empty lines are skipped.
fn numbers<T: FromStr>(path: &Path) -> Result<Vec<T>> {
    let text = forebay_storage::read_text(path, NUMBERS_BYTES_MAX).map_err(forebay_engine::Error::from)?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| {
            line.parse().map_err(|_| {
                let shown: String = line.chars().take(40).collect();
                let problem = format!("line {number} of `{}` is `{shown}`, which is not a number", path.display());
                Error::usage(
                    problem,
                    "write one number per line: sample numbers are integers from 0 on, weights are 0 or more",
                )
            })
        })
        .collect()
}
