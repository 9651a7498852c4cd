//! Nanoseconds for each image of a folder, here and with libjpeg-turbo, in one run: `speed <folder> [rounds]`.
//!
//! Whole images, and regions such as a random resized crop takes: 8 to 100 % of the area, ratios of 3:4 to 4:3. The two
//! decoders take turns on each image, and the best of all rounds counts, since other work disturbs only for the worse.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::ffi::{c_int, c_void};
use std::path::PathBuf;
use std::time::Instant;

use forebay_jpeg::{Color, Decoder, Level, Options, Region, header};
use turbojpeg_sys as sys;

struct Turbo(*mut c_void);

impl Turbo {
    /// `None` and a region decode as the crate `forebay-codec` does: the crop widened to whole MCUs and 8 pixels more.
    fn decode(
        &mut self,
        bytes: &[u8],
        size: (usize, usize),
        region: Option<Region>,
        unit: usize,
        output: &mut Vec<u8>,
    ) {
        let (width, height) = size;
        let (rows, left, right) = match region {
            Some(region) => {
                let left = region.x.saturating_sub(8) / unit * unit;
                let right = (region.x + region.width + 8).next_multiple_of(unit).min(width);
                (region.height, left, right)
            }
            None => (height, 0, width),
        };
        let area = match region {
            Some(region) => sys::tjregion {
                x: left as c_int,
                y: region.y as c_int,
                w: (right - left) as c_int,
                h: region.height as c_int,
            },
            None => sys::tjregion { x: 0, y: 0, w: 0, h: 0 },
        };
        let pitch = (right - left) * 3;
        output.resize(pitch * rows, 0);
        // SAFETY: the handle is live, the slices are as long as said, and the output holds all rows.
        unsafe {
            sys::tj3Set(self.0, sys::TJPARAM_TJPARAM_STOPONWARNING as c_int, 1);
            assert_eq!(sys::tj3DecompressHeader(self.0, bytes.as_ptr(), bytes.len() as sys::size_t), 0);
            assert_eq!(sys::tj3SetCroppingRegion(self.0, area), 0);
            let (length, target) = (bytes.len() as sys::size_t, output.as_mut_ptr());
            let status =
                sys::tj3Decompress8(self.0, bytes.as_ptr(), length, target, pitch as c_int, sys::TJPF_TJPF_RGB);
            assert_eq!(status, 0);
        }
    }
}

struct Picture {
    bytes: Vec<u8>,
    size: (usize, usize),
    unit: usize,
    region: Region,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the folder of JPEGs"));
    let rounds: usize = arguments.next().map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut pictures = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let bytes = std::fs::read(entry.expect("a file").path()).unwrap_or_default();
        let Ok(found) = header(&bytes) else { continue };
        let (width, height) = (found.width, found.height);
        let area = (0.08 + 0.92 * random()) * (width * height) as f64;
        let ratio = (0.75f64.ln() * (1.0 - 2.0 * random())).exp();
        let crop_width = ((area * ratio).sqrt() as usize).clamp(1, width);
        let crop_height = ((area / ratio).sqrt() as usize).clamp(1, height);
        let x = (random() * (width - crop_width) as f64) as usize;
        let y = (random() * (height - crop_height) as f64) as usize;
        let unit = match found.sampling {
            forebay_jpeg::Sampling::Both | forebay_jpeg::Sampling::Horizontal => 16,
            _ => 8,
        };
        let region = Region { x, y, width: crop_width, height: crop_height };
        pictures.push(Picture { bytes, size: (width, height), unit, region });
    }
    // SAFETY: no preconditions.
    let mut turbo = Turbo(unsafe { sys::tj3Init(sys::TJINIT_TJINIT_DECOMPRESS as c_int) });
    println!("{} images", pictures.len());
    for whole in [true, false] {
        measure(&pictures, &mut turbo, rounds, whole);
    }
}

fn measure(pictures: &[Picture], turbo: &mut Turbo, rounds: usize, whole: bool) {
    let levels: Vec<_> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    let mut decoders: Vec<_> = levels.iter().map(|&level| Decoder::with_level(level).expect("available")).collect();
    let mut output = Vec::new();
    let mut best = vec![[f64::INFINITY; 4]; pictures.len()];
    for _ in 0..rounds {
        for (picture, best) in pictures.iter().zip(&mut best) {
            let region = (!whole).then_some(picture.region);
            let start = Instant::now();
            turbo.decode(&picture.bytes, picture.size, region, picture.unit, &mut output);
            best[3] = best[3].min(start.elapsed().as_secs_f64());
            let (width, height) = region.map_or(picture.size, |region| (region.width, region.height));
            output.resize(width * height * 3, 0);
            let options = Options { region, ..Options::new(Color::Rgb) };
            for (decoder, best) in decoders.iter_mut().zip(best.iter_mut()) {
                let start = Instant::now();
                decoder.decode_into(&picture.bytes, &options, &mut output).expect("a valid image");
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
    }
    let mean = |index: usize| best.iter().map(|best| best[index]).sum::<f64>() / best.len() as f64 * 1e9;
    println!("{}", if whole { "whole images" } else { "regions of a random resized crop" });
    println!("  libjpeg-turbo  {:9.0} ns/image", mean(3));
    for (index, level) in levels.iter().enumerate() {
        println!("  {:13}  {:9.0} ns/image, {:.2} times as fast", level.name(), mean(index), mean(3) / mean(index));
    }
}
