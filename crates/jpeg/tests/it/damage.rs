//! Damaged files: no panic, and if the decoder accepts a file, so does libjpeg-turbo without a warning, with the same pixels.

use forebay_jpeg::{Color, Decoder, Options, Region, header};
use proptest::prelude::{ProptestConfig, any, proptest};
use turbojpeg_sys as sys;

use crate::data;
use crate::equality::decoders;
use crate::pictures::{Random, paint};
use crate::turbo::{self, Settings};

/// Returns whether the file was accepted.
fn check(decoders: &mut [Decoder], bytes: &[u8], name: &str) -> bool {
    let Ok(found) = header(bytes) else { return false };
    if found.width * found.height > 1 << 24 {
        return false;
    }
    let mut accepted = None;
    for decoder in decoders {
        let mut output = vec![0; found.width * found.height * 3];
        let ok = decoder.decode_into(bytes, &Options::new(Color::Rgb), &mut output).is_ok();
        if ok {
            let expected = turbo::decode(bytes, Color::Rgb);
            let expected =
                expected.unwrap_or_else(|message| panic!("{name}: accepted, but libjpeg-turbo says {message}"));
            assert_eq!((expected.width, expected.height), (found.width, found.height), "{name}");
            assert!(output == expected.pixels, "{name}: accepted with other pixels at {}", decoder.level().name());
        }
        assert!(accepted.is_none_or(|accepted| accepted == ok), "{name}: levels disagree");
        accepted = Some(ok);
        // A region of a damaged file may be valid; here it is only to be safe.
        let region = Region { x: found.width / 3, y: found.height / 2, width: 1, height: 1 };
        let options = Options { region: Some(region), ..Options::new(Color::Gray) };
        drop(decoder.decode_into(bytes, &options, &mut output[..1]));
    }
    accepted == Some(true)
}

/// Small files of all kinds.
fn seeds() -> Vec<Vec<u8>> {
    let mut random = Random(11);
    let mut seeds = Vec::new();
    for sampling in [
        sys::TJSAMP_TJSAMP_444,
        sys::TJSAMP_TJSAMP_422,
        sys::TJSAMP_TJSAMP_440,
        sys::TJSAMP_TJSAMP_420,
        sys::TJSAMP_TJSAMP_GRAY,
    ] {
        for (quality, restart, optimized) in [(90, 0, false), (97, 3, false), (60, 0, true), (100, 1, true)] {
            let (width, height) = (24 + random.below(60), 24 + random.below(40));
            let pixels = paint(width, height, 25, &mut random);
            let settings = Settings { quality, sampling, restart, optimized, ..Settings::default() };
            seeds.push(turbo::encode(&pixels, (width, height), settings));
        }
    }
    seeds
}

/// Changes a few bits or bytes, anywhere.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.next() as u8,
            3 => bytes[at] = 0xFF,
            4 => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.next() as u8),
        }
    }
}

#[test]
fn mutants_are_refused_or_equal() {
    let mut decoders = decoders();
    let mut random = Random(12);
    let mut accepted = 0;
    for (index, seed) in seeds().iter().enumerate() {
        for round in 0..400 {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut random);
            accepted += usize::from(check(&mut decoders, &bytes, &format!("seed {index} mutant {round}")));
        }
    }
    // Many changes give a different image rather than damage, so the comparison is not vacuous.
    assert!(accepted > 100, "only {accepted} mutants were accepted");
}

#[test]
fn truncations_are_refused() {
    let mut decoders = decoders();
    for (index, seed) in seeds().iter().enumerate() {
        for length in (0..seed.len() - 1).step_by(1 + seed.len() / 150) {
            assert!(!check(&mut decoders, &seed[..length], "truncated"), "seed {index} of {length} bytes was accepted");
        }
        let mut longer = seed.clone();
        longer.extend_from_slice(b"what follows the end of image belongs to somebody else");
        assert!(check(&mut decoders, &longer, "longer"));
        longer.splice(seed.len() - 2..seed.len() - 2, [1, 2, 3]);
        assert!(!check(&mut decoders, &longer, "extraneous"), "seed {index} with bytes before its end was accepted");
    }
}

#[test]
fn mutants_of_photos_are_refused_or_equal() {
    let Some(folder) = data::folder("images-jpeg") else { return };
    let mut decoders = decoders();
    let mut random = Random(13);
    for path in data::files(&folder)
        .iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .step_by(13)
    {
        let seed = std::fs::read(path).unwrap();
        for round in 0..12 {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut random);
            if round % 4 == 0 {
                bytes.truncate(random.below(bytes.len()));
            }
            check(&mut decoders, &bytes, &format!("{} mutant {round}", path.display()));
        }
    }
}

#[test]
fn malformed_files_are_refused_or_equal() {
    let Some(folder) = data::folder("malformed") else { return };
    let mut decoders = decoders();
    for path in data::files(&folder) {
        let bytes = std::fs::read(&path).unwrap();
        check(&mut decoders, &bytes, &path.display().to_string());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_safe(tail in any::<Vec<u8>>(), cut in 0usize..700) {
        let seed = &seeds()[0];
        let mut bytes = seed[..cut.min(seed.len())].to_vec();
        bytes.extend_from_slice(&tail);
        check(&mut decoders(), &bytes, "any bytes");
    }
}
