//! Nanoseconds for each image of some folders, here and with the `png` crate, in one run: `speed [rounds] <folder> …`.
//!
//! The decoders take turns on each image, and the best of all rounds counts, since other work disturbs only for the worse.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::io::Cursor;
use std::path::Path;
use std::time::Instant;

use forebay_png::{Decoder, Header, Level, header};

struct Picture {
    bytes: Vec<u8>,
    header: Header,
}

/// With the checksums that Forebay looks at.
fn bare(picture: &Picture, output: &mut [u8]) {
    let mut options = png::DecodeOptions::default();
    options.set_ignore_adler32(false);
    let mut decoder = png::Decoder::new_with_options(Cursor::new(&picture.bytes[..]), options);
    decoder.set_transformations(png::Transformations::EXPAND);
    decoder.read_info().expect("a valid image").next_frame(output).expect("a valid image");
}

fn main() {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    let rounds = arguments.first().and_then(|first| first.parse::<usize>().ok());
    if rounds.is_some() {
        arguments.remove(0);
    }
    let levels: Vec<_> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    let mut total = vec![0.0; levels.len() + 1];
    for folder in &arguments {
        let best = measure(Path::new(folder), rounds.unwrap_or(5), &levels);
        print_row(folder, &levels, &best);
        total.iter_mut().zip(best).for_each(|(total, best)| *total += best);
    }
    print_row("together", &levels, &total);
}

/// The times of the `png` crate and of each level, in seconds.
fn measure(folder: &Path, rounds: usize, levels: &[Level]) -> Vec<f64> {
    let mut total = vec![0.0; levels.len() + 1];
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let bytes = std::fs::read(entry.expect("a file").path()).unwrap_or_default();
        let Ok(header) = header(&bytes) else { continue };
        let picture = Picture { bytes, header };
        let mut decoders: Vec<_> = levels.iter().map(|&level| Decoder::with_level(level).expect("available")).collect();
        let mut output = vec![0; picture.header.bytes()];
        let mut best = vec![f64::INFINITY; levels.len() + 1];
        for _ in 0..rounds {
            let start = Instant::now();
            bare(&picture, &mut output);
            best[0] = best[0].min(start.elapsed().as_secs_f64());
            for (decoder, best) in decoders.iter_mut().zip(&mut best[1..]) {
                let start = Instant::now();
                decoder.decode_into(&picture.bytes, &mut output).expect("a valid image");
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
        total.iter_mut().zip(best).for_each(|(total, best)| *total += best);
    }
    total
}

fn print_row(name: &str, levels: &[Level], seconds: &[f64]) {
    println!("{name}\n  png crate  {:9.2} ms", seconds[0] * 1e3);
    for (level, &own) in levels.iter().zip(&seconds[1..]) {
        println!("  {:9}  {:9.2} ms, {:.2} times as fast", level.name(), own * 1e3, seconds[0] / own);
    }
}
