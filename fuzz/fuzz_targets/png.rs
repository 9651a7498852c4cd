//! PNG compared with the `png` crate. Our decoder, at every SIMD level, gives exactly that crate's pixels or refuses; separately decoded rows
//! are those of the full image.
#![no_main]

use forebay_fuzz::structure::{self, Random};
use forebay_png::{Decoder, Header, Level};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const BYTES_MAX: usize = 1 << 20;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if Random::new(!seed).below(2) == 0 {
        structure::mutate::<structure::Png>(data, size, max_size, seed)
    } else {
        structure::mutate::<structure::PngRows>(data, size, max_size, seed)
    }
});

fuzz_target!(|file: &[u8]| {
    let Ok(header) = forebay_png::header(file) else { return };
    if header.bytes().max(header.working_bytes()) > BYTES_MAX {
        return;
    }
    let levels = Level::ALL.into_iter().filter(|level| level.is_available());
    let all: Vec<_> = levels.map(|level| (level, own(file, &header, level))).collect();
    let (_, first) = all.first().expect("the scalar one is always available");
    assert!(all.iter().all(|(_, pixels)| pixels == first), "levels do not agree");
    // Compressed data that no encoder writes may be taken by libdeflate and not by the crate; its pixels are vouched for by their checksum.
    if let (Some(pixels), Some(expected)) = (first, library(file)) {
        assert!(*pixels == expected, "other pixels than the crate's");
    }
});

/// The pixels, or nothing where they are refused; rows by themselves are compared with them.
fn own(file: &[u8], header: &Header, level: Level) -> Option<Vec<u8>> {
    let mut decoder = Decoder::with_level(level).expect("it is available");
    let mut pixels = vec![0xA5; header.bytes()];
    decoder.decode_into(file, &mut pixels).ok()?;
    let rows = header.height / 3..header.height.div_ceil(2);
    let mut next = rows.start;
    let given = decoder.decode_rows(file, rows.clone(), |y, row| {
        assert_eq!((y, row), (next, &pixels[y * row.len()..(y + 1) * row.len()]));
        next += 1;
    });
    given.expect("rows of what was decoded");
    assert_eq!(next, rows.end);
    Some(pixels)
}

fn library(file: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().ok()?;
    let mut pixels = vec![0x5A; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut pixels).ok()?;
    reader.finish().ok()?;
    pixels.truncate(info.buffer_size());
    Some(pixels)
}
