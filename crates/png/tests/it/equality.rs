//! Valid files have the library's pixels.

use crate::data;
use crate::library::compare;
use crate::made::{KINDS, Made};

#[test]
fn every_kind_filter_and_width() {
    let patterns: [&[u8]; 9] =
        [&[0], &[1], &[2], &[3], &[4], &[4, 4, 4, 4, 1, 4, 3, 2], &[0, 1, 2, 3, 4], &[3, 4], &[4, 4, 0, 4, 4, 2]];
    for kind in KINDS {
        for (index, filters) in patterns.into_iter().enumerate() {
            for width in 1..=40 {
                let height = [1, 2, 3, 4, 5, 8, 11, 17, 19][(width + index) % 9];
                let mut made = Made::new(width, height, kind);
                made.parts = 1 + width % 3;
                // Indices beyond the palette's colors are black, in the library as well.
                let file = made.file(&made.rows(filters, (width * 31 + index) as u32));
                assert!(compare(&file, &format!("{made:?} {filters:?}")), "{made:?} {filters:?} is refused");
            }
        }
    }
}

#[test]
fn wide_rows() {
    for kind in [(0, 8), (2, 8), (2, 16), (6, 8), (6, 16)] {
        for width in [63, 64, 65, 1000, 1023] {
            let made = Made::new(width, 21, kind);
            let file = made.file(&made.rows(&[4, 4, 4, 4, 4, 4, 4, 4, 2, 4, 1, 3], width as u32));
            assert!(compare(&file, &format!("{made:?}")));
        }
    }
}

#[test]
fn palettes_with_alpha_and_chunks_of_no_concern() {
    let mut made = Made::new(9, 5, (3, 8));
    made.chunks.push((*b"tRNS", vec![0, 128, 255]));
    made.chunks.insert(0, (*b"gAMA", vec![0, 0, 177, 143]));
    made.chunks.push((*b"tEXt", b"Title\0words".to_vec()));
    made.chunks.push((*b"quUx", vec![1; 3000]));
    assert!(compare(&made.file(&made.rows(&[0, 4], 5)), "palette with alpha"));
}

#[test]
fn real_files() {
    let mut accepted = 0;
    for folder in ["kodak", "images-png-512", "images-png-hd", "codec/pngsuite", "codec/png16", "malformed"] {
        let Some(folder) = data::folder(folder) else { return };
        for path in data::files(&folder) {
            let file = std::fs::read(&path).unwrap();
            accepted += usize::from(file.starts_with(b"\x89PNG") && compare(&file, &path.display().to_string()));
        }
    }
    assert!(accepted > 100, "only `{accepted}` files were accepted");
}
