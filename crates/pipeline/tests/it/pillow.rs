//! Resizing equals Pillow's to a level or two, also where a filter overshoots: at hard edges.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use forebay_codec::Tensor;

use crate::support::{picture, run};

/// Reads pictures from standard input and writes them resized: `filter width height channels new-width new-height` in a line,
/// then the pixels.
const SCRIPT: &str = r#"
import sys
import numpy as np
from PIL import Image
out = sys.stdout.buffer
out.write(b"%d\n" % int(Image.__version__.split(".")[0]))
while line := sys.stdin.buffer.readline():
    name, *numbers = line.split()
    width, height, channels, new_width, new_height = map(int, numbers)
    pixels = np.frombuffer(sys.stdin.buffer.read(width * height * channels), np.uint8)
    pixels = pixels.reshape(height, width) if channels == 1 else pixels.reshape(height, width, channels)
    filter = getattr(Image.Resampling, name.decode().upper())
    out.write(np.asarray(Image.fromarray(pixels).resize((new_width, new_height), filter)).tobytes())
"#;

/// Since this version it may begin with the columns.
const PILLOW: u32 = 13;

/// The pictures resized by Pillow, or `None` with a printed reason.
fn pillow(requests: Vec<u8>, bytes: usize) -> Option<Vec<u8>> {
    let python = std::env::var_os("FOREBAY_PYTHON")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"), PathBuf::from);
    let works = Command::new(&python).args(["-c", "import numpy, PIL"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        eprintln!("skipped: `{}` cannot import numpy and PIL; set FOREBAY_PYTHON to one that can", python.display());
        return None;
    }
    let mut child =
        Command::new(python).args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&requests).unwrap());
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    let line = output.iter().position(|&byte| byte == b'\n').unwrap();
    let version: u32 = String::from_utf8_lossy(&output[..line]).parse().unwrap();
    if version < PILLOW {
        eprintln!("skipped: Pillow {version} resizes in another order than {PILLOW}");
        return None;
    }
    let pixels = output.split_off(line + 1);
    assert_eq!(pixels.len(), bytes);
    Some(pixels)
}

/// Pictures full of hard edges: a checkerboard, letters of sorts, noise of black and white, noise of every level.
fn pictures() -> Vec<(&'static str, Tensor)> {
    let noise = |row: usize, column: usize, channel: usize| {
        let mixed = (row * 7919 + column * 104_729 + channel * 15_485_863) as u32;
        (mixed.wrapping_mul(2_654_435_761) ^ mixed.wrapping_mul(40_503) >> 7) >> 11
    };
    let dark = |set: bool| if set { 0 } else { 255 };
    vec![
        ("checkerboard", picture(61, 83, 3, |row, column, _| dark((row + column) % 2 == 0))),
        ("squares", picture(61, 83, 1, |row, column, _| dark((row / 5 + column / 7) % 2 == 0))),
        ("letters", picture(83, 61, 3, |row, column, channel| dark(noise(row / 3, column / 2, channel / 2) % 3 == 0))),
        ("black and white", picture(83, 61, 1, |row, column, channel| dark(noise(row, column, channel) % 2 == 0))),
        ("noise", picture(61, 83, 3, |row, column, channel| noise(row, column, channel) as u8)),
    ]
}

const SIZES: [(usize, usize); 12] = [
    (83, 40),
    (40, 61),
    (31, 29),
    (29, 31),
    (166, 122),
    (100, 20),
    (20, 100),
    (60, 58),
    (82, 30),
    (120, 130),
    (7, 9),
    (200, 60),
];

/// The library's weights have 16 bits, Pillow's 22: each pass may round otherwise by one level, and a filter that overshoots
/// makes more of what the first pass did.
const LEVELS_MAX: [(&str, u8); 3] = [("bilinear", 1), ("bicubic", 2), ("lanczos", 2)];

#[test]
fn resizing_equals_pillow_at_hard_edges() {
    let mut requests = Vec::new();
    let mut cases = Vec::new();
    for (name, input) in pictures() {
        let (height, width, channels) = input.spec().as_picture().unwrap();
        for (filter, levels_max) in LEVELS_MAX {
            for (new_width, new_height) in SIZES {
                writeln!(requests, "{filter} {width} {height} {channels} {new_width} {new_height}").unwrap();
                requests.extend(&input.data()[..]);
                let step = format!("op = \"resize\"\nsize = [{new_height}, {new_width}]\ninterpolation = \"{filter}\"");
                let name = format!("{name}, {filter}, {new_width} × {new_height}");
                cases.push((name, levels_max, run(&step, input.clone())));
            }
        }
    }
    let bytes = cases.iter().map(|(_, _, ours)| ours.data().len()).sum();
    let Some(pixels) = pillow(requests, bytes) else { return };
    let (mut at, mut counts, mut failures) = (0, [0_usize; 256], Vec::new());
    for (name, levels_max, ours) in cases {
        let theirs = &pixels[at..at + ours.data().len()];
        at += theirs.len();
        let differences = ours.data().iter().zip(theirs).map(|(ours, theirs)| ours.abs_diff(*theirs));
        let furthest = differences.clone().max().unwrap();
        if furthest > levels_max {
            failures.push(format!("{name}: off by {furthest}"));
        }
        for difference in differences {
            counts[usize::from(difference)] += 1;
        }
    }
    eprintln!("resized samples that differ from Pillow's by 0, 1, 2, … levels: {:?}", &counts[..6]);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
