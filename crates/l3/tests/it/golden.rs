//! Files that this and every later version must read, and, while version 2 is what is written, must write.

use std::path::PathBuf;

use forebay_l3::{Depth, EncodeOptions, Mode, Pixels, Shape, decode, encode, encode_released};

use crate::images::{Kind, make, shape};

fn cases() -> Vec<(String, Shape, Kind, Mode)> {
    let mut cases = Vec::new();
    for mode in Mode::ALL {
        for (width, height, channels, depth, kind) in [
            (37, 11, 1, Depth::Eight, Kind::Photo),
            (29, 13, 3, Depth::Eight, Kind::Photo),
            (19, 9, 4, Depth::Eight, Kind::Drawing),
            (17, 7, 2, Depth::Sixteen, Kind::Photo),
        ] {
            let shape = shape(width, height, channels, depth);
            let name = format!("{}-{channels}x{}.l3", mode.name(), depth.bits());
            cases.push((name, shape, kind, mode));
        }
    }
    cases
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn write(shape: Shape, data: &[u8], mode: Mode) -> Vec<u8> {
    let mut options = EncodeOptions::new(mode);
    if mode == Mode::Classic {
        options.patch = 8;
    } else {
        options.strip_rows = Some(5);
    }
    encode(&Pixels::new(shape, data).unwrap(), &options).unwrap()
}

fn released() -> (Shape, Vec<u8>) {
    let shape = shape(16, 8, 3, Depth::Eight);
    (shape, (0..shape.bytes()).map(|i| 90 + (i % 11) as u8 + (i / 50) as u8 % 3).collect())
}

#[test]
fn golden_files_are_read_and_written() {
    for (name, shape, kind, mode) in cases() {
        let bytes = std::fs::read(path(&name)).unwrap();
        let data = make(kind, shape, 42);
        let image = decode(&bytes).unwrap();
        assert_eq!((image.shape, &image.data), (shape, &data), "{name}");
        assert!(write(shape, &data, mode) == bytes, "{name}: the encoder writes something else");
    }
    let (shape, data) = released();
    let bytes = std::fs::read(path("released.l3")).unwrap();
    assert_eq!(decode(&bytes).unwrap().data, data);
    assert_eq!(encode_released(&Pixels::new(shape, &data).unwrap(), 8).unwrap(), bytes);
}

/// Makes the files of a new version: run it once, by name, and keep the old files under another name.
#[test]
#[ignore = "writes the golden files; run it only when the format gets a new version"]
fn write_golden_files() {
    for (name, shape, kind, mode) in cases() {
        std::fs::write(path(&name), write(shape, &make(kind, shape, 42), mode)).unwrap();
    }
    let (shape, data) = released();
    std::fs::write(path("released.l3"), encode_released(&Pixels::new(shape, &data).unwrap(), 8).unwrap()).unwrap();
}
