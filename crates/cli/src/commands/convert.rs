//! `forebay convert`: pictures from one format to another.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::{Args, ValueEnum};
use forebay_codec::image::{Depth, Encoding, Format, L3Mode};
use forebay_engine::Error as EngineError;
use forebay_engine::convert::{Conversion, ConvertOptions, Converted};
use forebay_engine::data::Skipped;
use forebay_plan::units;
use serde::Serialize;

use super::profile::counted;
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
  forebay convert photos/ photos-l3/ --mode dense       the whole tree
  forebay convert photos/ photos-l3/ --to l3-fast --verify

The name of the output decides its format: .l3 .png .qoi .webp .jpg .bmp .pnm
(also .ppm and .pgm: colour or grey as the picture is). WebP is lossless unless
--quality is given. In a folder, files are taken for pictures by their names,
and every picture keeps its place.

Pixels stay as they are: channels, alpha, 16 bits where the format has them.
Pictures are turned upright as EXIF says, because EXIF, colour profiles and the
further frames of animations are not carried over.

In a folder, pictures that are there already are kept, so a conversion that was
stopped goes on when the same command is run again. Where they were written in
another encoding (mode, quality, effort), nothing is: pass --overwrite, or name
another folder.";

/// The quality of a JPEG where none is given.
const JPEG_QUALITY: u8 = 90;

/// Convert a picture, or a folder of pictures, to L3 or another format
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A picture, or a folder of pictures
    #[arg(value_name = "INPUT")]
    input: PathBuf,
    /// The picture to write, or the folder to write them to
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// Write L3 in this mode [default for .l3: fast]
    #[arg(long, value_name = "MODE", conflicts_with = "to")]
    mode: Option<ModeChoice>,
    /// Write this encoding: l3-fast, l3-dense, l3-classic, png, png-fast, qoi, webp-lossless, bmp, pnm, jpeg-90, webp-80
    #[arg(long, value_name = "ENCODING", value_parser = Encoding::from_str)]
    to: Option<Encoding>,
    /// The quality of a .jpg [default: 90] or of a .webp [default: lossless]
    #[arg(long, value_name = "N", conflicts_with_all = ["to", "mode"], value_parser = clap::value_parser!(u8).range(1..=100))]
    quality: Option<u8>,
    /// `8` keeps the high byte of 16-bit samples, `stored` all of them
    #[arg(long, value_name = "BITS", default_value = "stored")]
    depth: DepthChoice,
    /// Read every picture back and compare it, those that were there already too
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Replace pictures that are there already
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
    /// As published, for comparison
    Classic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DepthChoice {
    /// As deep as they are; an error where the format holds 8 bits only
    Stored,
    /// 8 bits
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
        Self::L3 { mode }
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
    /// Pictures found; each was converted, kept or skipped.
    files: u64,
    converted: u64,
    kept: u64,
    skipped: u64,
    /// Files of the folder that are no pictures by their names.
    ignored: u64,
    /// Animations, of which the first frame was kept.
    animated: u64,
    bytes_in: u64,
    bytes_out: u64,
    /// Bytes out over bytes in.
    ratio: Option<f64>,
    /// Of the pictures that were converted.
    pixel_bytes: u64,
    seconds: f64,
    pixel_bytes_per_second: f64,
    verified: bool,
    largest_difference: Option<u32>,
    skipped_pictures: Vec<Skipped>,
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

/// Among many pictures one that is broken can be left out.
fn explain(error: EngineError, many: bool) -> Error {
    match error {
        EngineError::Format { path, problem } if many && !problem.contains("\nhint: ") => {
            let hint = "pass --on-error skip to leave such pictures out and list them";
            Error::Format { path, problem: format!("{problem}\nhint: {hint}") }
        }
        other => Error::from(other).leaving(
            ": the pictures that are done are kept\nhint: run the same command again to go on; for a single picture nothing was written",
        ),
    }
}

/// What a folder of pictures is to become.
fn folder_encoding(arguments: &Arguments) -> Result<Encoding> {
    arguments.to.or(arguments.mode.map(Encoding::from)).ok_or_else(|| {
        Error::usage(
            format!("`{}` is a folder, and nothing says what its pictures are to become", arguments.input.display()),
            "pass `--mode fast` for L3, or `--to` with an encoding such as `png` or `jpeg-90`",
        )
    })
}

/// What a picture is to become: as the options say, if the name of the output agrees; else as that says.
fn file_encoding(arguments: &Arguments) -> Result<Encoding> {
    let output = &arguments.output;
    let name = output.display();
    let there = arguments::look_at(output)?;
    if there.as_ref().is_some_and(std::fs::Metadata::is_dir) {
        let file = arguments.input.with_extension("l3");
        let file = output.join(file.file_name().unwrap_or_default());
        return Err(Error::usage(format!("`{name}` is a folder"), format!("name the picture: `{}`", file.display())));
    }
    if there.is_some() && !arguments.overwrite {
        return Err(Error::usage(format!("`{name}` exists already"), "pass `--overwrite` to replace it"));
    }
    let format = format_of(output).ok_or_else(|| {
        Error::usage(
            format!("the name `{name}` says no format that Forebay writes"),
            "let it end with .l3, .png, .qoi, .webp, .jpg, .bmp, .pnm, .ppm or .pgm",
        )
    })?;
    if let Some(asked) = arguments.to.or(arguments.mode.map(Encoding::from)) {
        return match asked.format() {
            made if made == format => Ok(asked),
            made => Err(Error::usage(
                format!("the name `{name}` says {format}, but `{asked}` is {made}"),
                format!("let the name end with .{}, or leave the option out", made.extension()),
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
                "leave `--quality` out, or write .jpg or .webp",
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
    let skipped = done.skipped.len() as u64;
    Outcome {
        input: arguments.input.clone(),
        output: arguments.output.clone(),
        encoding: encoding.to_string(),
        lossless: encoding.is_lossless(),
        files: done.converted + done.kept + skipped,
        converted: done.converted,
        kept: done.kept,
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
        skipped_pictures: done.skipped,
    }
}

fn show(outcome: &Outcome, page: &mut Page) {
    let mut facts = vec![("output", format!("{} ({})", outcome.output.display(), outcome.encoding))];
    let others = [(outcome.kept, "kept as they were"), (outcome.skipped, "skipped")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = std::iter::once((outcome.converted, "converted"))
        .chain(others)
        .map(|(count, what)| format!("{} {what}", units::count(count)))
        .collect();
    facts.push(("pictures", counts.join(", ")));
    let ratio = outcome.ratio.map_or_else(String::new, |ratio| format!(", {} of it", units::percent(ratio)));
    let [before, after] = [outcome.bytes_in, outcome.bytes_out].map(|bytes| units::bytes(bytes as f64));
    facts.push(("size", format!("{before} became {after}{ratio}")));
    if outcome.converted > 0 {
        let rate = units::bytes_per_second(outcome.pixel_bytes_per_second);
        facts.push(("time", format!("{}, {rate} of pixels", units::seconds(outcome.seconds))));
    }
    if let Some(difference) = outcome.largest_difference {
        facts.push((
            "verified",
            match (outcome.lossless, difference) {
                (true, _) => "every pixel is the same".to_owned(),
                (false, levels) => format!("samples differ by up to {}", counted(u64::from(levels), "level")),
            },
        ));
    }
    if outcome.ignored > 0 {
        facts.push(("ignored", format!("{}: no pictures by their names", counted(outcome.ignored, "file"))));
    }
    if outcome.animated > 0 {
        facts.push(("note", format!("of {} the first frame was kept", counted(outcome.animated, "animation"))));
    }
    page.facts(&facts);
    show_skipped(page, outcome.skipped, &outcome.skipped_pictures);
}
