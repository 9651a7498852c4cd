//! `make bench`: Forebay's hot paths compared with the bare libraries that they use, in one run.
//!
//! The machine may be noisy, so no row is an absolute time: each compares two ways of doing the same work, measured in
//! turn, and reports the ratio of the medians.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program whose product is its table")]

mod bandwidth;
mod bare;
mod compression;
mod inflating;
mod large;
mod loader;
mod measure;
mod rows;
mod scale;

use std::path::Path;
use std::process::ExitCode;

use measure::Row;
use scale::Figure;

/// What every benchmark returns.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "usage: forebay-bench FOLDER_OF_JPEGS [--only PATTERN | --output FILE.md], or forebay-bench FOLDER --large [FILE.md]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [flag, number, folder] if flag == scale::CHILD => scale::child(number, Path::new(folder)),
        [photos] => run(Path::new(photos), &Selection::default(), None),
        [photos, flag, pattern] if flag == "--only" => run(Path::new(photos), &Selection::only(pattern), None),
        [pictures, flag] if flag == "--large" => large::run(Path::new(pictures), None),
        [pictures, flag, output] if flag == "--large" => large::run(Path::new(pictures), Some(Path::new(output))),
        [photos, flag, output] if flag == "--output" => {
            run(Path::new(photos), &Selection::default(), Some(Path::new(output)))
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Which rows are measured: all, or those whose work, as the table has it, contains a pattern.
#[derive(Default)]
struct Selection {
    pattern: Option<String>,
}

impl Selection {
    fn only(pattern: &str) -> Self {
        Self { pattern: Some(pattern.to_owned()) }
    }

    fn has(&self, work: &str) -> bool {
        self.pattern.as_deref().is_none_or(|pattern| work.contains(pattern))
    }
}

fn run(photos: &Path, selection: &Selection, output: Option<&Path>) -> Outcome<()> {
    let files = rows::photos(photos)?;
    let mut table: Vec<Row> = Vec::new();
    for (work, measure) in rows::ROWS {
        if selection.has(work) {
            table.push(measure(work, &files)?);
        }
    }
    table.extend(loader::rows(&files, selection)?);
    table.extend(compression::rows(&files, selection)?);
    let figures = scale::figures(selection)?;
    if table.is_empty() && figures.is_empty() {
        return Err("no row has that pattern in its work".into());
    }
    let text = report(&files, &table, &figures);
    println!("{text}");
    if let Some(output) = output {
        output.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(output, text)?;
        eprintln!("written to {}", output.display());
    }
    let missed =
        table.iter().filter(|row| row.is_missed()).count() + figures.iter().filter(|row| row.is_missed()).count();
    match missed {
        0 => Ok(()),
        missed => Err(format!("{missed} of the bars were missed; is the machine busy with something else?").into()),
    }
}

fn report(files: &[Vec<u8>], rows: &[Row], figures: &[Figure]) -> String {
    let bytes: usize = files.iter().map(Vec::len).sum();
    let mut text = format!(
        "# Forebay compared with the bare libraries\n\nRegenerate with `make bench`. Ratio = time of the bare library over ours for \
         the same work, medians of runs in turn; 1.00 is the library's own speed. Libraries \
         look at no checksums of records, as a reader of shards must. Beside LZ4, which is so fast that it shows, stands what it and the checksums \
         take together, too (`liblz4 and CRC-32C`); and what the libraries alone gain by a second thread is what this machine gives.\n\nMachine: {}; {} photos, {:.1} MB.\n\n\
         | work | ours | beside | theirs | ratio | bar | |\n|---|---:|---|---:|---:|---|---|\n",
        processor(),
        files.len(),
        bytes as f64 / 1e6
    );
    for row in rows {
        text.push_str(&row.to_string());
    }
    if figures.is_empty() {
        return text;
    }
    text.push_str(
        "\n## One million samples\n\nBefore the first batch is there; warm page cache, two threads. Memory is what the process holds \
         more afterwards, for each sample.\n\n| work | time | memory | bar | |\n|---|---:|---:|---|---|\n",
    );
    for figure in figures {
        text.push_str(&figure.to_string());
    }
    text
}

/// The processor, and the instructions that the kernels use on it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (jpeg, png) = (forebay_jpeg::Level::detect().name(), forebay_png::Level::detect().name());
    let l3 = forebay_l3::Level::detect().name();
    let name = name.map_or("unknown", |(_, name)| name.trim());
    format!("{name}, {cores} cores; kernels: JPEG `{jpeg}`, PNG `{png}`, L3 `{l3}`")
}
