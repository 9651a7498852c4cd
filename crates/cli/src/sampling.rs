//! Which samples an epoch has, where it is not each of them once.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use forebay_engine::load::Sampling;

use crate::error::{Error, Result};

/// Heading of the help.
const SAMPLING: &str = "Sampling options";

/// A list of numbers has at most so many bytes: a hundred million of them.
const NUMBERS_BYTES_MAX: u64 = 1 << 30;

/// What is drawn for an epoch. Samples are counted from 0, in the order of a load without `--shuffle`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SamplingArguments {
    /// Load only the samples whose numbers are in FILE, one per line
    #[arg(long, value_name = "FILE", help_heading = SAMPLING, conflicts_with = "weights")]
    subset: Option<PathBuf>,
    /// Draw samples with the weights in FILE, one per line for each sample
    #[arg(long, value_name = "FILE", help_heading = SAMPLING)]
    weights: Option<PathBuf>,
    /// Draw with replacement: a sample may come more than once in an epoch
    #[arg(long, help_heading = SAMPLING)]
    replacement: bool,
    /// Number of samples to draw per epoch, over all ranks [default: all]
    #[arg(long, value_name = "N", help_heading = SAMPLING, value_parser = clap::value_parser!(u64).range(1..))]
    num_samples: Option<u64>,
    /// How often each drawn sample comes in an epoch, with other random choices each time [default: 1]
    #[arg(long, value_name = "N", help_heading = SAMPLING, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    repeats: Option<u64>,
}

impl SamplingArguments {
    /// The files that it reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.subset.as_deref().into_iter().chain(self.weights.as_deref())
    }

    /// What the loader is asked for.
    pub(crate) fn read(&self) -> Result<Sampling> {
        Ok(Sampling {
            subset: self.subset.as_deref().map(numbers).transpose()?.map(Into::into),
            weights: self.weights.as_deref().map(numbers).transpose()?.map(Into::into),
            replacement: self.replacement,
            samples: self.num_samples,
            repeats: self.repeats.unwrap_or(1),
        })
    }
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
                    "write one number per line: of samples whole ones from 0 on, of weights any from 0 on",
                )
            })
        })
        .collect()
}
