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

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [flag, number, folder] if flag == scale::CHILD => scale::child(number, Path::new(folder)),
        [photos] => run(Path::new(photos), None),
        [photos, flag] if flag == "--compression" => compressed(Path::new(photos)),
        [pictures, flag] if flag == "--large" => large::run(Path::new(pictures), None),
        [pictures, flag, output] if flag == "--large" => large::run(Path::new(pictures), Some(Path::new(output))),
        [photos, flag, output] if flag == "--output" => run(Path::new(photos), Some(Path::new(output))),
        _ => {
            eprintln!(
                "usage: forebay-bench FOLDER_OF_JPEGS [--compression | --output FILE.md], or forebay-bench FOLDER --large [FILE.md]"
            );
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

/// Only what is about compressed shards.
fn compressed(photos: &Path) -> Outcome<()> {
    let rows = compression::rows(&rows::pixels(&rows::photos(photos)?)?)?;
    for row in &rows {
        print!("{row}");
    }
    Ok(())
}

fn run(photos: &Path, output: Option<&Path>) -> Outcome<()> {
    let files = rows::photos(photos)?;
    let mut table: Vec<Row> = vec![
        rows::jpeg(&files)?,
        rows::jpeg_half(&files)?,
        rows::png(&files)?,
        rows::resize(&files)?,
        rows::records(&files)?,
    ];
    table.extend(loader::rows(&files)?);
    table.extend(compression::rows(&rows::pixels(&files)?)?);
    let figures = scale::figures()?;
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
         the same work, medians of runs in turn; 1.00 is the library's own speed.\n\nMachine: {}; {} photos, {:.1} MB.\n\n\
         | work | ours | beside | theirs | ratio | bar | |\n|---|---:|---|---:|---:|---|---|\n",
        processor(),
        files.len(),
        bytes as f64 / 1e6
    );
    for row in rows {
        text.push_str(&row.to_string());
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
