//! Images to test with: made ones, and the real ones beside the workspace.

use std::path::{Path, PathBuf};

use forebay_l3::{Depth, Shape};

/// A small generator of numbers that look random and are always the same.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u32
    }
}

/// What a made image shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Constant,
    Random,
    Ramp,
    /// Waves with noise: about as hard as a photograph.
    Photo,
    /// Flat areas with sharp edges.
    Drawing,
}

pub(crate) const KINDS: [Kind; 5] = [Kind::Constant, Kind::Random, Kind::Ramp, Kind::Photo, Kind::Drawing];

/// Makes an image.
pub(crate) fn make(kind: Kind, shape: Shape, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let (constant, phase) = (numbers.next(), f64::from(numbers.next() % 100));
    let bytes = shape.depth().bytes();
    let mut data = Vec::with_capacity(shape.bytes());
    for y in 0..shape.height() {
        for x in 0..shape.width() {
            for channel in 0..u32::from(shape.channels()) {
                let value = match kind {
                    Kind::Constant => constant.wrapping_add(channel * 7),
                    Kind::Random => numbers.next(),
                    Kind::Ramp => (x * 300 + y * 500).wrapping_add(channel * 2000) >> 8 << (8 * (bytes - 1)),
                    Kind::Photo => {
                        let wave = (f64::from(x) / 9.0 + phase).sin() + (f64::from(y) / 13.0).cos();
                        let wave = wave + 0.3 * (f64::from(x + y * channel) / 3.0).sin();
                        let scale = if bytes == 1 { 40.0 } else { 9000.0 };
                        ((wave + 2.6) * scale) as u32 + numbers.next() % (if bytes == 1 { 6 } else { 700 })
                    }
                    Kind::Drawing => ((x / 17 + y / 11) * 40 + channel * 90) << (8 * (bytes - 1)),
                };
                data.extend_from_slice(&value.to_le_bytes()[..bytes]);
            }
        }
    }
    data
}

pub(crate) fn shape(width: u32, height: u32, channels: u8, depth: Depth) -> Shape {
    Shape::new(width, height, channels, depth).unwrap()
}

/// A folder of real files, if there is one.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FOREBAY_TEST_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no folder `{}`", folder.display());
    None
}

/// The PNG files of a folder, decoded.
pub(crate) fn real(name: &str) -> Vec<(String, Shape, Vec<u8>)> {
    let Some(folder) = folder(name) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "png"));
    paths.sort();
    paths.iter().map(|path| read_png(path)).collect()
}

fn read_png(path: &Path) -> (String, Shape, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    data.truncate(info.buffer_size());
    assert_eq!(info.bit_depth, png::BitDepth::Eight, "{}", path.display());
    let shape = shape(info.width, info.height, info.color_type.samples() as u8, Depth::Eight);
    (path.file_name().unwrap().to_string_lossy().into_owned(), shape, data)
}
