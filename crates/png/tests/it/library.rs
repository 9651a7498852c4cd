//! The `png` crate, configured as the reference.

use std::io::Cursor;

use forebay_png::{Decoder, Level, header};

/// What the `png` crate makes of a file; `None` if it refuses it.
pub(crate) fn decode(file: &[u8]) -> Option<Vec<u8>> {
    let mut options = png::DecodeOptions::default();
    options.set_ignore_adler32(false);
    let mut decoder = png::Decoder::new_with_options(Cursor::new(file), options);
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size().filter(|&bytes| bytes < 1 << 28)?];
    reader.next_frame(&mut pixels).ok()?;
    Some(pixels)
}

pub(crate) fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Decodes at each level, the full image and row by row; what is accepted must match the library. Returns whether it was accepted.
pub(crate) fn compare(file: &[u8], name: &str) -> bool {
    let Ok(header) = header(file) else { return false };
    if header.bytes() > 1 << 28 {
        return false;
    }
    let mut verdicts = Vec::new();
    for level in levels() {
        let mut decoder = Decoder::with_level(level).unwrap();
        let mut pixels = vec![0xA5; header.bytes()];
        let result = decoder.decode_into(file, &mut pixels);
        verdicts.push(result.clone());
        if let Err(error) = result {
            assert!(error.is_refusal(), "{name}: {error}");
            continue;
        }
        let expected = decode(file).unwrap_or_else(|| panic!("{name}: {level:?} takes what the library refuses"));
        assert!(expected == pixels, "{name}: {level:?} gives other pixels");
        let rows = header.height / 3..header.height - header.height / 4;
        let mut next = rows.start;
        decoder
            .decode_rows(file, rows.clone(), |y, row| {
                assert_eq!(y, next);
                assert!(row == &expected[y * header.row_bytes()..][..header.row_bytes()], "{name}: {level:?}, row {y}");
                next += 1;
            })
            .unwrap();
        assert_eq!(next, rows.end);
    }
    assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{name}: the levels judge differently: {verdicts:?}");
    verdicts[0].is_ok()
}
