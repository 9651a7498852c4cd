//! `forebay convert`: images from one format to another.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::{Args, ValueEnum};
use forebay_codec::image::{Depth, Encoding, Format, L3Mode};
use forebay_engine::Error as EngineError;
use forebay_engine::convert::{Conversion, ConvertOptions, Converted};
use forebay_engine::data::Skipped;
use forebay_plan::units;
use forebay_storage::EntryKind;
use serde::Serialize;

use super::show_skipped;
use crate::arguments::{self, ErrorArguments, MemoryArguments, Threads};
use crate::error::{Error, Result};
use crate::output::{Output, Page};

const EXAMPLES: &str = "\
Examples:
  forebay convert photo.png photo.l3                    L3, fast to decode
  forebay convert photo.png photo.l3 --mode dense       L3, small
  forebay convert photo.l3 photo.png
  forebay convert photo.png photo.jpg --quality 85
  forebay convert photos/ photos-l3/ --mode dense       a folder, recursively
  forebay convert photos/ photos-l3/ --to l3-fast --verify
  forebay convert photos/ photos-l3/ --strip-rows 16    small strips, for a GPU

The format of a single image follows from the extension of OUTPUT: .l3, .png,
.qoi, .webp, .jpg, .bmp, .pnm, .ppm or .pgm. A folder needs --mode or --to; its
structure is preserved, and files without an image extension are ignored.

Pixels, alpha and 16-bit channels are preserved where the format allows. Images
are rotated upright according to EXIF. EXIF data, color profiles and all but the
first frame of an animation are not preserved.

Converting a folder is resumable: existing images are reused. If they have
another encoding (mode, quality, effort), the command fails unless --overwrite
is given.";

/// The quality of a JPEG where none is given.
const JPEG_QUALITY: u8 = 90;

/// Convert images to L3 or another format
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Image, or folder of images
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// Image or folder to write
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// Write L3 in this mode [default: fast]
    #[arg(long, value_name = "MODE", conflicts_with = "to")]
    mode: Option<ModeChoice>,
    /// Rows per strip of an L3: 16 or 32 if a GPU will decode it [default: strips of about 131,072 pixels]
    #[arg(long, value_name = "N", conflicts_with_all = ["to", "quality"], value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    strip_rows: Option<u32>,
    /// Encoding to write: l3-fast, l3-dense, l3-classic, l3-fast-rows-16, png, png-fast, qoi, webp-lossless, bmp, pnm, jpeg-90, webp-80
    #[arg(long, value_name = "ENCODING", value_parser = Encoding::from_str)]
    to: Option<Encoding>,
    /// Quality of a .jpg [default: 90] or .webp [default: lossless], from 1 to 100
    #[arg(long, value_name = "N", conflicts_with_all = ["to", "mode"], value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: Option<u8>,
    /// Bits per channel
    #[arg(long, value_name = "BITS", default_value = "stored")]
    depth: DepthChoice,
    /// Decode every output and compare it with its input, including existing outputs
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Replace existing images
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
enum ModeChoice {
    /// Fastest to decode
    Fast,
    /// Smallest
    Dense,
    /// As published, for comparisons
    Classic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DepthChoice {
    /// Keep the depth of the input; an error if the format holds 8 bits only
    Stored,
    /// Keep the high byte of 16-bit channels
    #[value(name = "8")]
    Eight,
}

impl From<ModeChoice> for Encoding {
    fn from(choice: ModeChoice) -> Self {
        let mode = match choice {
            ModeChoice::Fast => L3Mode::Fast,
            ModeChoice::Dense => L3Mode::Dense,
            ModeChoice::Classic => L3Mode::Classic,
        };
        Self::L3 { mode, strip_rows: None }
    }
}

/// What `convert --json` prints.
#[derive(Debug, Serialize)]
struct Outcome {
    #[serde(serialize_with = "crate::output::as_text::path")]
    input: PathBuf,
    #[serde(serialize_with = "crate::output::as_text::path")]
    output: PathBuf,
    encoding: String,
    lossless: bool,
    /// Images found; each was converted, reused or skipped.
    files: u64,
    converted: u64,
    reused: u64,
    skipped: u64,
    /// Files of the folder that are no images by their names.
    ignored: u64,
    /// Animations, of which only the first frame was converted.
    animated: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// Bytes out over bytes in.
    ratio: Option<f64>,
    /// Of the images that were converted.
    pixel_bytes: u64,
    seconds: f64,
    pixel_bytes_per_second: f64,
    verified: bool,
    largest_difference: Option<u32>,
    skipped_samples: Vec<Skipped>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let (input, target) = (&arguments.input, &arguments.output);
    let many = std::fs::metadata(input).map_err(Error::io("look at", input))?.is_dir();
    let encoding = if many { folder_encoding(arguments)? } else { file_encoding(arguments)? };
    let conversion = if many {
        Conversion::of_folder(input, target, encoding.format())?
    } else {
        Conversion::of_file(input, target)
    };
    let options = ConvertOptions {
        encoding,
        depth: match arguments.depth {
            DepthChoice::Stored => Depth::AsStored,
            DepthChoice::Eight => Depth::Eight,
        },
        verify: arguments.verify,
        overwrite: arguments.overwrite,
        threads: arguments.threads.count(),
        memory_bytes: arguments.memory.bytes(),
        on_error: arguments.on_error.choice(),
    };
    let begun = Instant::now();
    let progress = output.progress();
    let done = conversion.run(&options, &progress).map_err(|error| explain(error, many))?;
    drop(progress);
    output.present(&outcome(arguments, encoding, done, begun.elapsed().as_secs_f64()), show)
}

/// Among many images one that is broken can be left out.
pub(super) fn explain(error: EngineError, many: bool) -> Error {
    match error {
        EngineError::Format { path, problem } if many && !problem.contains("\nhint: ") => {
            let hint = "pass --on-error skip to skip and list such images";
            Error::Format { path, problem: format!("{problem}\nhint: {hint}") }
        }
        other => Error::from(other).leaving(
            ": finished images are kept\nhint: run the same command again to resume; for a single image nothing was written",
        ),
    }
}

/// The encoding that the options ask for.
fn asked(arguments: &Arguments) -> Result<Option<Encoding>> {
    let Some(rows) = arguments.strip_rows else { return Ok(arguments.to.or(arguments.mode.map(Encoding::from))) };
    match Encoding::from(arguments.mode.unwrap_or(ModeChoice::Fast)) {
        Encoding::L3 { mode, .. } if mode != L3Mode::Classic => Ok(Some(Encoding::L3 { mode, strip_rows: Some(rows) })),
        _ => Err(Error::usage("the strips of L3 classic are as high as its patches", "omit `--strip-rows`")),
    }
}

/// What a folder of images is to become.
fn folder_encoding(arguments: &Arguments) -> Result<Encoding> {
    asked(arguments)?.ok_or_else(|| {
        Error::usage(
            format!("`{}` is a folder, and no output format is given", arguments.input.display()),
            "pass `--mode fast` for L3, or `--to` with an encoding such as `png` or `jpeg-90`",
        )
    })
}

/// What an image is to become: as the options say, if the name of the output agrees; else as that says.
fn file_encoding(arguments: &Arguments) -> Result<Encoding> {
    let output = &arguments.output;
    let name = output.display();
    let there = arguments::look_at(output)?;
    if there == Some(EntryKind::Folder) {
        let file = arguments.input.with_extension("l3");
        let file = output.join(file.file_name().unwrap_or_default());
        return Err(Error::usage(format!("`{name}` is a folder"), format!("name the image: `{}`", file.display())));
    }
    if there.is_some() && !arguments.overwrite {
        return Err(Error::usage(format!("`{name}` exists already"), "pass `--overwrite` to replace it"));
    }
    let format = format_of(output).ok_or_else(|| {
        Error::usage(
            format!("`{name}` has no extension of a format that Forebay writes"),
            "use .l3, .png, .qoi, .webp, .jpg, .bmp, .pnm, .ppm or .pgm",
        )
    })?;
    if let Some(asked) = asked(arguments)? {
        return match asked.format() {
            made if made == format => Ok(asked),
            made => Err(Error::usage(
                format!("the extension of `{name}` is for {format}, but `{asked}` is {made}"),
                format!("use the extension .{}, or omit the option", made.extension()),
            )),
        };
    }
    let named = |text: &str| Encoding::from_str(text).map_err(forebay_pipeline::Error::Encoding);
    Ok(match (format, arguments.quality) {
        (Format::Jpeg, quality) => named(&format!("jpeg-{}", quality.unwrap_or(JPEG_QUALITY)))?,
        (Format::WebP, Some(quality)) => named(&format!("webp-{quality}"))?,
        (_, Some(_)) => {
            return Err(Error::usage(
                format!("{format} is lossless and has no quality"),
                "omit `--quality`, or write .jpg or .webp",
            ));
        }
        (Format::WebP, None) => named("webp-lossless")?,
        (Format::L3, None) => ModeChoice::Fast.into(),
        (other, None) => named(other.name())?,
    })
}

/// The format that the name of an output says.
fn format_of(path: &Path) -> Option<Format> {
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    // A bitmap of one bit is not written, though it is read.
    if extension == "pbm" { None } else { Format::from_name(&extension) }
}

fn outcome(arguments: &Arguments, encoding: Encoding, done: Converted, seconds: f64) -> Outcome {
    let skipped = done.skipped_samples.len() as u64;
    Outcome {
        input: arguments.input.clone(),
        output: arguments.output.clone(),
        encoding: encoding.to_string(),
        lossless: encoding.is_lossless(),
        files: done.converted + done.reused + skipped,
        converted: done.converted,
        reused: done.reused,
        skipped,
        ignored: done.ignored,
        animated: done.animated,
        bytes_in: done.bytes_in,
        bytes_out: done.bytes_out,
        ratio: (done.bytes_in > 0).then(|| done.bytes_out as f64 / done.bytes_in as f64),
        pixel_bytes: done.pixel_bytes,
        seconds,
        pixel_bytes_per_second: done.pixel_bytes as f64 / seconds.max(f64::MIN_POSITIVE),
        verified: arguments.verify,
        largest_difference: done.largest_difference,
        skipped_samples: done.skipped_samples,
    }
}

fn show(outcome: &Outcome, page: &mut Page) {
    let mut facts = vec![("output", format!("{} ({})", outcome.output.display(), outcome.encoding))];
    let others = [(outcome.reused, "reused"), (outcome.skipped, "skipped")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = std::iter::once((outcome.converted, "converted"))
        .chain(others)
        .map(|(count, what)| format!("{} {what}", units::count(count)))
        .collect();
    facts.push(("images", counts.join(", ")));
    let ratio = outcome.ratio.map_or_else(String::new, |ratio| format!(" ({})", units::percent(ratio)));
    let [before, after] = [outcome.bytes_in, outcome.bytes_out].map(|bytes| units::bytes(bytes as f64));
    facts.push(("size", format!("{before} to {after}{ratio}")));
    if outcome.converted > 0 {
        let rate = units::bytes_per_second(outcome.pixel_bytes_per_second);
        facts.push(("time", format!("{}, {rate} of pixels", units::seconds(outcome.seconds))));
    }
    if let Some(difference) = outcome.largest_difference {
        facts.push((
            "verified",
            match (outcome.lossless, difference) {
                (true, _) => "all pixels are identical".to_owned(),
                (false, levels) => format!("samples differ by up to {}", units::counted(u64::from(levels), "level")),
            },
        ));
    }
    if outcome.ignored > 0 {
        facts.push(("ignored", format!("{} without an image extension", units::counted(outcome.ignored, "file"))));
    }
    if outcome.animated > 0 {
        facts.push((
            "note",
            format!("only the first frame of {} was kept", units::counted(outcome.animated, "animation")),
        ));
    }
    page.facts(&facts);
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}
