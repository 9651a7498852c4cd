//! What is refused, and how.

use forebay_png::{Decoder, Error, Level, header};

use crate::library::compare;
use crate::made::{Made, compress};

fn verdict(file: &[u8]) -> Error {
    let mut pixels = vec![0; header(file).map_or(0, |header| header.bytes())];
    Decoder::new().decode_into(file, &mut pixels).unwrap_err()
}

#[test]
fn kinds_that_are_left_to_the_library() {
    let mut interlaced = Made::new(8, 8, (2, 8));
    interlaced.interlace = 1;
    let mut transparent = Made::new(8, 8, (2, 8));
    transparent.chunks.push((*b"tRNS", vec![0; 6]));
    let mut animated = Made::new(8, 8, (2, 8));
    animated.chunks.push((*b"acTL", vec![0; 8]));
    let mut unknown = Made::new(8, 8, (2, 8));
    unknown.chunks.push((*b"QuUx", vec![]));
    let mut two_palettes = Made::new(8, 8, (3, 8));
    two_palettes.chunks.push(two_palettes.chunks[0].clone());
    for made in [interlaced, transparent, animated, unknown, two_palettes] {
        let file = made.file(&made.rows(&[0], 1));
        assert!(matches!(verdict(&file), Error::Unsupported { .. }), "{made:?}");
    }
}

#[test]
fn a_filter_that_does_not_exist_is_found_below_the_rows_that_are_wanted() {
    let made = Made::new(8, 20, (2, 8));
    let mut rows = made.rows(&[4], 1);
    rows[19 * (made.row_bytes() + 1)] = 5;
    let result = Decoder::new().decode_rows(&made.file(&rows), 0..2, |_, _| {});
    assert!(matches!(result, Err(Error::Format { .. })), "{result:?}");
}

#[test]
fn too_few_pixels_too_many_and_wrong_checksums() {
    let made = Made::new(30, 20, (2, 8));
    let rows = made.rows(&[4], 1);
    let mut more = rows.clone();
    more.push(0);
    assert!(verdict(&made.file(&rows[..rows.len() - 1])).is_refusal());
    assert!(verdict(&made.file(&more)).is_refusal());
    let mut compressed = compress(&rows);
    *compressed.last_mut().unwrap() ^= 1;
    assert!(verdict(&made.file_of(&compressed)).is_refusal());
    let mut file = made.file(&rows);
    let checksum_at = file.len() - 13;
    file[checksum_at] ^= 1;
    assert!(verdict(&file).is_refusal());
    let file = made.file(&rows);
    for end in 0..file.len() {
        assert!(!compare(&file[..end], "cut off"), "cut off at {end}");
    }
}

#[test]
fn no_memory_is_taken_that_the_file_does_not_warrant() {
    let made = Made::new(1 << 20, 1 << 20, (6, 16));
    let file = made.file_of(&compress(&[0; 1000]));
    let mut decoder = Decoder::new();
    let result = decoder.decode_rows(&file, 0..1, |_, _| {});
    assert!(matches!(result, Err(Error::Format { .. })), "{result:?}");
    assert!(decoder.capacity_bytes() < 1 << 20);
}

#[test]
fn callers_who_ask_for_the_impossible_are_told() {
    let made = Made::new(3, 2, (2, 8));
    let file = made.file(&made.rows(&[0], 1));
    let mut decoder = Decoder::new();
    assert!(matches!(decoder.decode_into(&file, &mut [0; 17]), Err(Error::Usage { expected: 18, found: 17, .. })));
    assert!(matches!(decoder.decode_rows(&file, 0..3, |_, _| {}), Err(Error::Usage { expected: 2, found: 3, .. })));
    for level in Level::ALL {
        assert_eq!(Decoder::with_level(level).is_ok(), level.is_available());
    }
}

#[test]
fn memory_is_kept_and_given_back() {
    let made = Made::new(300, 200, (2, 8));
    let file = made.file(&made.rows(&[4], 1));
    let mut decoder = Decoder::new();
    let mut pixels = vec![0; header(&file).unwrap().bytes()];
    decoder.decode_into(&file, &mut pixels).unwrap();
    let kept = decoder.capacity_bytes();
    decoder.decode_into(&file, &mut pixels).unwrap();
    assert_eq!(decoder.capacity_bytes(), kept);
    decoder.trim();
    assert_eq!(decoder.capacity_bytes(), 0);
}
