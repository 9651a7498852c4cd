//! Valid files: the pixels of libjpeg-turbo, at every level.

use forebay_jpeg::{Color, Decoder, Level, Options, Region, Sampling, Space, header};
use turbojpeg_sys as sys;

use crate::pictures::{Random, paint};
use crate::turbo::{self, Picture, Settings};
use crate::{data, pictures};

/// A decoder of each level of this machine.
pub(crate) fn decoders() -> Vec<Decoder> {
    Level::ALL.into_iter().filter_map(|level| Decoder::with_level(level).ok()).collect()
}

/// A region of an image.
fn crop(picture: &Picture, region: Region, channels: usize) -> Vec<u8> {
    let rows = picture.pixels.chunks_exact(picture.width * channels).skip(region.y).take(region.height);
    rows.flat_map(|row| &row[region.x * channels..(region.x + region.width) * channels]).copied().collect()
}

fn random_region(random: &mut Random, width: usize, height: usize) -> Region {
    let (x, y) = (random.below(width), random.below(height));
    Region { x, y, width: 1 + random.below(width - x), height: 1 + random.below(height - y) }
}

/// Compares full images and `regions` random regions, in RGB and grayscale.
fn check(decoders: &mut [Decoder], bytes: &[u8], regions: usize, random: &mut Random, name: &str) {
    let is_rgb = header(bytes).unwrap().space == Space::Rgb;
    for color in [Color::Rgb, Color::Gray].into_iter().take(if is_rgb { 1 } else { 2 }) {
        let expected = turbo::decode(bytes, color).unwrap();
        let whole = Region { x: 0, y: 0, width: expected.width, height: expected.height };
        let parts: Vec<_> = (0..regions).map(|_| random_region(random, whole.width, whole.height)).collect();
        for decoder in &mut *decoders {
            for (index, &region) in [whole].iter().chain(&parts).enumerate() {
                let mut output = vec![0xA5; region.width * region.height * color.channels()];
                let options = Options { region: (index > 0).then_some(region), ..Options::new(color) };
                decoder.decode_into(bytes, &options, &mut output).unwrap_or_else(|error| panic!("{name}: {error}"));
                let same = output == crop(&expected, region, color.channels());
                assert!(same, "{name}: {color:?} {region:?} at {} differs", decoder.level().name());
            }
        }
    }
}

fn check_folder(name: &str, regions: usize) -> usize {
    let Some(folder) = data::folder(name) else { return 0 };
    let mut decoders = decoders();
    let mut random = Random(1);
    let mut refused = 0;
    for path in data::files(&folder) {
        if path.extension().is_none_or(|extension| extension != "jpg") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let name = path.display().to_string();
        match header(&bytes) {
            Ok(_) => check(&mut decoders, &bytes, regions, &mut random, &name),
            Err(error) if error.is_refusal() => refused += 1,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    refused
}

#[test]
fn photos_are_equal() {
    assert_eq!(check_folder("images-jpeg", 1), 0, "an ordinary photo was refused");
}

#[test]
fn large_photos_are_equal_or_refused() {
    check_folder("images-jpeg-large", 1);
}

#[test]
fn variants_are_equal_or_refused() {
    check_folder("codec/jpeg-variants", 20);
    check_folder("codec/jpeg-8k", 1);
}

const SAMPLINGS: [(sys::TJSAMP, Sampling); 5] = [
    (sys::TJSAMP_TJSAMP_444, Sampling::Full),
    (sys::TJSAMP_TJSAMP_422, Sampling::Horizontal),
    (sys::TJSAMP_TJSAMP_440, Sampling::Vertical),
    (sys::TJSAMP_TJSAMP_420, Sampling::Both),
    (sys::TJSAMP_TJSAMP_GRAY, Sampling::Gray),
];

#[test]
fn every_small_size_is_equal() {
    let mut decoders = decoders();
    let mut random = Random(2);
    for (sampling, expected) in SAMPLINGS {
        for side in 1..=40 {
            for other in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40] {
                for (width, height) in [(side, other), (other, side)] {
                    let noise = 10 * (random.next() % 8);
                    let pixels = paint(width, height, noise, &mut random);
                    let quality = 1 + random.below(100);
                    let optimized = random.below(2) == 1;
                    let bytes = turbo::encode(
                        &pixels,
                        (width, height),
                        Settings { quality, sampling, optimized, ..Settings::default() },
                    );
                    let found = header(&bytes).unwrap();
                    assert_eq!((found.width, found.height, found.sampling), (width, height, expected));
                    check(&mut decoders, &bytes, 2, &mut random, &format!("{width}x{height} {expected:?} q{quality}"));
                }
            }
        }
    }
}

#[test]
fn every_quality_is_equal() {
    let mut decoders = decoders();
    let mut random = Random(3);
    for (sampling, name) in SAMPLINGS {
        for quality in 1..=100 {
            for noise in [0, 40, 255] {
                let (width, height) = (65 + random.below(90), 33 + random.below(70));
                let pixels = paint(width, height, noise, &mut random);
                let settings = Settings { quality, sampling, optimized: quality % 2 == 0, ..Settings::default() };
                let bytes = turbo::encode(&pixels, (width, height), settings);
                check(&mut decoders, &bytes, 2, &mut random, &format!("{width}x{height} {name:?} q{quality} n{noise}"));
            }
        }
    }
}

#[test]
fn restart_intervals_are_equal() {
    let mut decoders = decoders();
    let mut random = Random(4);
    for (sampling, name) in SAMPLINGS {
        for restart in [1, 2, 3, 5, 8, 13, 40, 1000] {
            let (width, height) = (20 + random.below(200), 20 + random.below(150));
            let pixels = paint(width, height, 30, &mut random);
            let bytes = turbo::encode(&pixels, (width, height), Settings { sampling, restart, ..Settings::default() });
            assert_eq!(header(&bytes).unwrap().restart_interval, restart);
            check(&mut decoders, &bytes, 8, &mut random, &format!("{width}x{height} {name:?} r{restart}"));
        }
    }
}

#[test]
fn random_noise_is_equal() {
    let mut decoders = decoders();
    let mut random = Random(5);
    for (sampling, name) in SAMPLINGS {
        for quality in [1, 50, 95, 100] {
            let pixels: Vec<u8> = (0..120 * 90 * 3).map(|_| [0, 255][random.below(2)]).collect();
            let bytes = turbo::encode(&pixels, (120, 90), Settings { quality, sampling, ..Settings::default() });
            check(&mut decoders, &bytes, 5, &mut random, &format!("noise {name:?} q{quality}"));
        }
    }
}

#[test]
fn rgb_pictures_are_equal() {
    let mut random = Random(6);
    let pixels = pictures::paint(77, 50, 20, &mut random);
    let sampling = sys::TJSAMP_TJSAMP_444;
    let bytes = turbo::encode(&pixels, (77, 50), Settings { sampling, rgb: true, ..Settings::default() });
    let expected = turbo::decode(&bytes, Color::Rgb).unwrap();
    for decoder in &mut decoders() {
        let mut output = vec![0; 77 * 50 * 3];
        decoder.decode_into(&bytes, &Options::new(Color::Rgb), &mut output).unwrap();
        assert_eq!(output, expected.pixels);
        let gray = decoder.decode_into(&bytes, &Options::new(Color::Gray), &mut output[..77 * 50]);
        assert!(gray.unwrap_err().is_refusal());
    }
}
