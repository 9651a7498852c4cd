//! Makes the inputs that Python has no library for: `seeds FOLDER` writes FOLDER/TARGET/NAME. The demo's encoders make sound.

use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, Subsampling, encode};
use forebay_codec::signal::write_hdf5;
use forebay_l3::{Depth, EncodeOptions, Mode, Pixels, Predictor, Shape};
use forebay_pipeline::Random;

#[allow(dead_code, reason = "the demo uses more of it")]
#[path = "."]
mod demo {
    #[path = "../../../crates/demo/src/bits.rs"]
    mod bits;
    #[path = "../../../crates/demo/src/flac.rs"]
    mod flac;
    #[path = "../../../crates/demo/src/mp3.rs"]
    mod mp3;
    #[path = "../../../crates/demo/src/mp3_codes.rs"]
    mod mp3_codes;

    pub fn flac(samples: &[i16]) -> Vec<u8> {
        flac::encode(samples, 16_000)
    }

    pub fn mp3(seconds: f64) -> Vec<u8> {
        mp3::clip(&mut forebay_pipeline::Random::from_parts(&[7]), seconds)
    }
}

fn main() {
    let folder = std::env::args_os().nth(1).expect("usage: seeds FOLDER");
    let write = |target: &str, name: &str, content: &[u8]| {
        let folder = Path::new(&folder).join(target);
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        std::fs::write(folder.join(name), content).expect("the file can be written");
    };
    for (name, file) in [
        ("gzip", &include_bytes!("../../../crates/record/tests/golden/parquet/gzip.parquet")[..]),
        ("snappy", include_bytes!("../../../crates/record/tests/golden/parquet/snappy.parquet")),
        ("zstd", include_bytes!("../../../crates/record/tests/golden/parquet/zstd.parquet")),
        ("none", include_bytes!("../../../crates/record/tests/golden/parquet/none.parquet")),
    ] {
        write("parquet", name, file);
    }
    for (name, file) in [
        ("stream", &include_bytes!("../../../crates/record/tests/golden/arrow/stream.arrow")[..]),
        ("old", include_bytes!("../../../crates/record/tests/golden/arrow/old.arrow")),
        ("file", include_bytes!("../../../crates/record/tests/golden/arrow/file.arrow")),
        ("lz4", include_bytes!("../../../crates/record/tests/golden/arrow/lz4.arrow")),
        ("zstd", include_bytes!("../../../crates/record/tests/golden/arrow/zstd.arrow")),
        ("views", include_bytes!("../../../crates/record/tests/golden/arrow/views.arrow")),
        ("unread", include_bytes!("../../../crates/record/tests/golden/arrow/unread.arrow")),
        ("replaced", include_bytes!("../../../crates/record/tests/golden/arrow/replaced.arrow")),
        ("delta", include_bytes!("../../../crates/record/tests/golden/arrow/delta.arrow")),
    ] {
        write("arrow", name, file);
    }
    for seconds in [0.02, 0.1] {
        write("audio", &format!("{seconds}.mp3"), &demo::mp3(seconds));
    }
    for count in [1, 300, 4096, 4200] {
        let samples: Vec<i16> = (0..count).map(|at| (f64::from(at) / 9.0).sin() * 900.0).map(|value| value as i16).collect();
        write("audio", &format!("{count}.flac"), &demo::flac(&samples));
    }
    let wave: Vec<i16> = (0..64).map(|at| (f64::from(at) / 5.0).sin() * 900.0).map(|value| value as i16).collect();
    let hdf5 = write_hdf5(&[("voltage", &wave, 2.0), ("current1", &wave, 0.5)]).expect("two channels of numbers");
    write("signal", "two.hdf5", &hdf5);
    for subsampling in [Subsampling::Vertical, Subsampling::Horizontal] {
        let picture = Tensor::from_elements(&[19, 21, 3], &(0..19 * 21 * 3).map(|at| (at / 5) as u8).collect::<Vec<_>>());
        let encoding = Encoding::Jpeg { quality: 60, subsampling, progressive: false };
        let file = encode(picture.expect("as many as the shape says").view(), &encoding).expect("a small picture");
        ["jpeg", "image"].iter().for_each(|target| write(target, &format!("{subsampling:?}.jpg"), &file));
    }
    pictures(&write);
}

fn pictures(write: &dyn Fn(&str, &str, &[u8])) {
    let mut random = Random::from_parts(&[11]);
    for mode in Mode::ALL {
        for (channels, depth) in [(1, Depth::Eight), (3, Depth::Eight), (4, Depth::Eight), (1, Depth::Sixteen), (3, Depth::Sixteen)] {
            let shape = Shape::new(9, 7, channels, depth).expect("a small picture");
            let data: Vec<u8> = (0..shape.bytes()).map(|at| (at / 3) as u8 ^ random.between(0.0, 6.0) as u8).collect();
            let mut options = EncodeOptions::new(mode);
            if mode == Mode::Classic {
                options.patch = 4;
            } else {
                (options.strip_rows, options.predictor) = (Some(4), Some(Predictor::Sharp));
            }
            let file = forebay_l3::encode(&Pixels::new(shape, &data).expect("whole rows"), &options).expect("a small picture");
            let name = format!("{}-{channels}x{}.l3", mode.name(), depth.bits());
            write("l3_decode", &name, &file);
            write("image", &name, &file);
        }
    }
}
