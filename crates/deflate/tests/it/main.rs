//! What zlib makes is DEFLATE to others, and its strategies differ.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which may panic")]

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};
use forebay_deflate::{Deflate, Error, Flush, Parameters, Strategy, Wrapper};

const STRATEGIES: [Strategy; 5] =
    [Strategy::Default, Strategy::Filtered, Strategy::HuffmanOnly, Strategy::Rle, Strategy::Fixed];

/// Rows of an image as filtered by PNG: small differences, and runs.
fn residues() -> Vec<u8> {
    let mut state = 1_u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 24
    };
    (0..200_000)
        .map(|at: u32| if (at / 700).is_multiple_of(3) { 0 } else { (draw() % 9 * (draw() % 3)) as u8 })
        .collect()
}

/// Compresses `content` through a small buffer.
fn compress(content: &[u8], parameters: Parameters, wrapper: Wrapper) -> Vec<u8> {
    let mut stream = Deflate::new(parameters, wrapper).unwrap();
    let (mut input, mut all, mut buffer) = (content, Vec::new(), [0; 1000]);
    loop {
        let progress = stream.run(input, &mut buffer, Flush::Finish);
        input = &input[progress.read..];
        all.extend_from_slice(&buffer[..progress.written]);
        if progress.ended {
            return all;
        }
    }
}

#[test]
fn others_inflate_what_each_strategy_makes() {
    let content = residues();
    let mut sizes = Vec::new();
    for strategy in STRATEGIES {
        for (level, window_bits, memory_level) in [(1, 15, 8), (6, 9, 1), (6, 15, 8), (9, 12, 9)] {
            let parameters = Parameters { level, strategy, window_bits, memory_level };
            let (mut raw, mut wrapped) = (Vec::new(), Vec::new());
            DeflateDecoder::new(&compress(&content, parameters, Wrapper::Raw)[..]).read_to_end(&mut raw).unwrap();
            ZlibDecoder::new(&compress(&content, parameters, Wrapper::Zlib)[..]).read_to_end(&mut wrapped).unwrap();
            assert!(raw == content && wrapped == content, "{parameters:?}");
        }
        sizes.push(compress(&content, Parameters { strategy, ..Parameters::default() }, Wrapper::Raw).len());
    }
    let mut distinct = sizes.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), STRATEGIES.len(), "the strategies differ: {sizes:?}");
}

#[test]
fn what_lies_between_full_flushes_stands_alone() {
    let mut stream = Deflate::new(Parameters::default(), Wrapper::Raw).unwrap();
    let mut buffer = [0; 4096];
    let first = stream.run(&[1; 1000], &mut buffer, Flush::Full).written;
    let second = stream.run(&[1; 1000], &mut buffer, Flush::Full).written;
    assert!(first > 0 && second > 0);
    let mut alone = vec![0; 1000];
    DeflateDecoder::new(&buffer[..second]).read_exact(&mut alone).unwrap();
    assert_eq!(alone, [1; 1000]);
}

#[test]
fn a_stream_can_begin_anew() {
    let mut stream = Deflate::new(Parameters::default(), Wrapper::Zlib).unwrap();
    let mut buffers = [[0; 100]; 2];
    let written = buffers.each_mut().map(|buffer| {
        stream.reset();
        stream.run(b"the same", buffer, Flush::Finish).written
    });
    assert!(written[0] == written[1] && buffers[0] == buffers[1]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let usual = Parameters::default();
    for parameters in [
        Parameters { level: 0, ..usual },
        Parameters { level: 10, ..usual },
        Parameters { window_bits: 8, ..usual },
        Parameters { window_bits: 16, ..usual },
        Parameters { memory_level: 0, ..usual },
        Parameters { memory_level: 10, ..usual },
    ] {
        assert_eq!(Deflate::new(parameters, Wrapper::Raw).err(), Some(Error::Parameters), "{parameters:?}");
    }
}
