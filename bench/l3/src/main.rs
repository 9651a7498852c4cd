//! Measures L3 compared with other formats, in one process, one thread, turn by turn, and writes the table.
//!
//!     cargo run --release --manifest-path bench/l3/Cargo.toml -- [RESULTS.md] [--repetitions 9]
//!
//! The images are read from `FOREBAY_TEST_DATA`, or from `../shared/data` beside the workspace.

mod peers;
mod pictures;
mod report;
mod threads;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use crate::{
    peers::Codec,
    pictures::{Picture, SETS},
    report::Row,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut output, mut repetitions) = (None, 9);
    while let Some(argument) = arguments.next() {
        if argument == "--repetitions" {
            repetitions = arguments.next().and_then(|value| value.parse().ok()).expect("a number of repetitions");
        } else {
            output = Some(PathBuf::from(argument));
        }
    }
    let root = std::env::var_os("FOREBAY_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let sets: Vec<Vec<Picture>> = SETS.iter().map(|set| pictures::read(&root, set)).collect();
    for (name, pictures) in SETS.iter().zip(&sets) {
        eprintln!("{name}: {} images", pictures.len());
    }
    let rows = measure(peers::all(), &sets, repetitions);
    let level_rows = measure(peers::by_level(), &sets, repetitions.min(5));
    // Photos alone: the pixels of decoded JPEGs say little of 16 bits.
    let wide: Vec<Vec<Picture>> = sets[..2].iter().map(|set| set.iter().map(pictures::widened).collect()).collect();
    let wide_rows = measure(peers::wide_by_level(), &wide, repetitions.min(5));
    let threads = threads::measure(&sets[1], repetitions * 20);
    let report = report::write(&sets, &rows, &level_rows, (&wide, &wide_rows), &threads);
    match output {
        Some(path) => std::fs::write(&path, report).expect("the results can be written"),
        None => print!("{report}"),
    }
}

/// Encodes everything, then decodes everything turn by turn.
fn measure(mut codecs: Vec<Codec>, sets: &[Vec<Picture>], repetitions: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut files: Vec<Vec<Vec<Vec<u8>>>> = Vec::new();
    for codec in &mut codecs {
        eprintln!("encoding: {}", codec.name);
        let mut row = Row::new(codec.name.clone(), codec.encodes, sets.len());
        let mut encoded = Vec::new();
        for _ in 0..if codec.encodes_fast { 3 } else { 1 } {
            encoded.clear();
            for (set, pictures) in sets.iter().enumerate() {
                let start = Instant::now();
                encoded.push(pictures.iter().map(|picture| (codec.encode)(picture)).collect::<Vec<_>>());
                row.encode_seconds[set].push(start.elapsed().as_secs_f64());
            }
        }
        for (set, files) in encoded.iter().enumerate() {
            row.bytes[set] = files.iter().map(Vec::len).sum();
        }
        rows.push(row);
        files.push(encoded);
    }
    let largest = sets.iter().flatten().map(|picture| picture.pixels.len()).max().unwrap_or(0);
    let mut out = vec![0; largest];
    for repetition in 0..=repetitions {
        eprintln!("decoding: round {repetition} of {repetitions}");
        for (set, pictures) in sets.iter().enumerate() {
            for ((codec, row), files) in codecs.iter_mut().zip(&mut rows).zip(&files) {
                let mut seconds = 0.0;
                for (picture, file) in pictures.iter().zip(&files[set]) {
                    let out = &mut out[..picture.pixels.len()];
                    let start = Instant::now();
                    (codec.decode)(file, picture, out);
                    seconds += start.elapsed().as_secs_f64();
                    // The first round checks, and warms up.
                    if repetition == 0 {
                        if codec.big_endian {
                            out.as_chunks_mut::<2>().0.iter_mut().for_each(|sample| sample.reverse());
                        }
                        assert!(out == picture.pixels, "{}: pixels differ", codec.name);
                    }
                }
                if repetition > 0 {
                    row.decode_seconds[set].push(seconds);
                }
            }
        }
    }
    rows
}
