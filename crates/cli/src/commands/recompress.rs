//! `forebay recompress`: a folder of images, or a data set, at other qualities.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use forebay_engine::data::Skipped;
use forebay_engine::recompress::{
    Outcome as Done, RecompressOptions, Recompressed, RecompressedImage, RecompressedVariant, lossy_encodings,
    recompress,
};
use forebay_plan::units;
use serde::Serialize;

use super::convert::explain;
use super::show_skipped;
use crate::arguments::{ErrorArguments, MemoryArguments, Threads};
use crate::error::{Error, Result};
use crate::output::{Align, Output, Page, Table, write_file};

const EXAMPLES: &str = "\
Examples:
  forebay recompress photos/ smaller/ --quality 85,75,50,25,10
  forebay recompress photos/ smaller/ --format webp --quality 50 --verify
  forebay recompress photos/ smaller/ --quality 75 --metrics --csv images.csv
  forebay recompress dataset/ smaller/ --quality 75

Each quality gets a folder of its own: smaller/jpeg-85, smaller/jpeg-75. The
folder structure is preserved, files that are not images are copied, and EXIF
data and color profiles stay with their image. Other metadata, alpha and 16-bit
channels are not preserved.

Quality is never raised: a JPEG that already has this quality or a lower one,
according to its quantization tables, is copied. So are lossy WebP files, whose
quality is unknown, animations, and images that would not become smaller.

For a data set built by Forebay, each quality becomes a data set:
smaller/jpeg-75. Labels, all other fields and the number of shards are the same.

Recompressing is resumable: existing files are reused unless --overwrite is
given.";

/// Recompress a folder of images or a data set at lower qualities
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of images, or data set built by `forebay build`
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Folder to write; each quality gets a subfolder
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// Format to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatChoice::Jpeg)]
    format: FormatChoice,
    /// Qualities from 1 to 100, comma-separated
    #[arg(long, value_name = "LIST", required = true, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: Vec<u8>,
    /// Read every output back: images must decode, copies must be identical
    #[arg(long)]
    verify: bool,
    /// Compare every output with its input: PSNR, SSIM, MS-SSIM
    #[arg(long)]
    metrics: bool,
    /// Write a table of all images at all qualities to FILE
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Replace existing files
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    on_error: ErrorArguments,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        vec![&self.input]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatChoice {
    /// Can be decoded everywhere
    Jpeg,
    /// Smaller at the same quality
    Webp,
}

/// What `recompress --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(serialize_with = "crate::output::as_text::path")]
    input: PathBuf,
    #[serde(serialize_with = "crate::output::as_text::path")]
    output: PathBuf,
    /// A row for each quality.
    variants: Vec<RecompressedVariant>,
    /// Files that are not images, copied to each folder.
    others: u64,
    skipped: u64,
    seconds: f64,
    verified: bool,
    skipped_samples: Vec<Skipped>,
    /// Every image at every quality, with `--metrics`.
    images: Vec<RecompressedImage>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    if !std::fs::metadata(&arguments.input).map_err(Error::io("look at", &arguments.input))?.is_dir() {
        let problem = format!("`{}` is a file, and a folder is needed", arguments.input.display());
        return Err(Error::usage(problem, "use `forebay convert` for a single image"));
    }
    let name = match arguments.format {
        FormatChoice::Jpeg => "jpeg",
        FormatChoice::Webp => "webp",
    };
    let options = RecompressOptions {
        encodings: lossy_encodings(name, &arguments.quality)?,
        verify: arguments.verify,
        metrics: arguments.metrics,
        overwrite: arguments.overwrite,
        threads: arguments.threads.count(),
        on_error: arguments.on_error.choice(),
        memory_bytes: arguments.memory.bytes(),
    };
    let begun = Instant::now();
    let progress = output.progress();
    let done = recompress(&arguments.input, &arguments.output, &options, &progress);
    let done = done.map_err(|error| explain(error, true))?;
    drop(progress);
    if let Some(path) = &arguments.csv {
        write_file(path, csv(&done.images).as_bytes())?;
    }
    output.present(&outcome(arguments, done, begun.elapsed().as_secs_f64()), show)
}

fn outcome(arguments: &Arguments, done: Recompressed, seconds: f64) -> Outcome {
    Outcome {
        input: arguments.input.clone(),
        output: arguments.output.clone(),
        variants: done.variants,
        others: done.others,
        skipped: done.skipped_samples.len() as u64,
        seconds,
        verified: arguments.verify,
        skipped_samples: done.skipped_samples,
        images: if arguments.metrics { done.images } else { Vec::new() },
    }
}

/// All images, a line each.
fn csv(images: &[RecompressedImage]) -> String {
    let mut text = "key,encoding,outcome,source_quality,source_quality_exact,width,height,bytes_in,bytes_out,\
                    bits_per_pixel,encode_seconds,psnr,ssim,ms_ssim\n"
        .to_owned();
    for image in images {
        let key = if image.key.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", image.key.replace('"', "\"\""))
        } else {
            image.key.clone()
        };
        let outcome = match image.outcome {
            Done::Encoded => "encoded",
            Done::Copied => "copied",
            Done::Reused => "reused",
        };
        let quality = image.source_quality.map_or_else(String::new, |quality| quality.to_string());
        let exact = image.source_quality_exact.map_or_else(String::new, |exact| exact.to_string());
        let [seconds, psnr, ssim, ms_ssim] = [image.encode_seconds, image.psnr, image.ssim, image.ms_ssim]
            .map(|value| value.map_or_else(String::new, |value| value.to_string()));
        let RecompressedImage { encoding, width, height, bytes_in, bytes_out, bits_per_pixel, .. } = image;
        let _ = writeln!(
            text,
            "{key},{encoding},{outcome},{quality},{exact},{width},{height},{bytes_in},{bytes_out},{bits_per_pixel},\
             {seconds},{psnr},{ssim},{ms_ssim}"
        );
    }
    text
}

fn show(outcome: &Outcome, page: &mut Page) {
    let columns =
        ["encoding", "encoded", "copied", "reused", "size", "ratio", "bits/pixel", "encode", "PSNR", "SSIM", "MS-SSIM"];
    let mut table =
        Table::new(&columns.map(|column| (column, if column == "encoding" { Align::Left } else { Align::Right })));
    let figure =
        |value: Option<f64>, digits: usize| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"));
    for variant in &outcome.variants {
        table.row(
            [
                variant.encoding.clone(),
                units::count(variant.encoded),
                units::count(variant.copied),
                units::count(variant.reused),
                units::bytes(variant.bytes_out as f64),
                format!("{:.2}", variant.ratio),
                figure(variant.bits_per_pixel, 2),
                variant.encode_seconds.map_or_else(|| "-".to_owned(), units::seconds),
                figure(variant.psnr, 2),
                figure(variant.ssim, 4),
                figure(variant.ms_ssim, 4),
            ],
            false,
        );
    }
    page.table(&table);
    if outcome.others > 0 {
        page.hanging("note: ", &format!("{} without images copied", units::counted(outcome.others, "file")));
    }
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}
