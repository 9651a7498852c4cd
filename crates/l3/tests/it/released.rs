//! The layout that the paper's authors released.

use forebay_l3::{Depth, EncodeOptions, ErrorClass, Header, Mode, Pixels, Shape, decode, encode, encode_released};

use crate::images::{Kind, make, shape};

/// Rows of residuals that spread over one to 31 or 64 to 127 values only: what the released encoder gets right.
fn gentle(shape: Shape) -> Vec<u8> {
    (0..shape.bytes()).map(|i| if i % 3 == 0 { 100 + (i / 3 % 5) as u8 } else { 90 + (i % 11) as u8 }).collect()
}

#[test]
fn layout_is_the_released_one() {
    let shape = shape(128, 64, 3, Depth::Eight);
    let data = gentle(shape);
    let bytes = encode_released(&Pixels::new(shape, &data).unwrap(), 64).unwrap();
    assert_eq!(&bytes[..4], b"LLL.");
    assert_eq!(bytes[4..8], 128u32.to_le_bytes());
    assert_eq!(bytes[8..12], 64u32.to_le_bytes());
    assert_eq!(bytes[12], 64);
    // Two patches in each of three tables; every row takes 8 n + 2 bytes.
    let sizes: Vec<usize> =
        (0..6).map(|i| usize::from(u16::from_le_bytes([bytes[13 + 2 * i], bytes[14 + 2 * i]]))).collect();
    assert_eq!(bytes.len(), 13 + 12 + sizes.iter().sum::<usize>());
    let mut position = 25;
    let (mut rows, mut end) = (0, 25);
    for size in sizes {
        end += size;
        while position < end {
            position += 8 * usize::from(bytes[position] & 15) + 2;
            rows += 1;
        }
        assert_eq!(position, end);
    }
    assert_eq!(rows, 6 * 64);
    let header = Header::parse(&bytes).unwrap();
    assert!(header.released && header.mode == Mode::Classic && header.strip_count() == 1);
    assert!(decode(&bytes).unwrap().data == data);
}

/// A row worked out by hand: samples 10, 11, 12, 13 repeated, width 2, base 10, deltas from bit 12.
#[test]
fn a_row_by_hand() {
    let shape = shape(4, 4, 3, Depth::Eight);
    let data: Vec<u8> = (0..48).map(|i| 10 + (i / 3 % 4) as u8 + (i / 12 % 2) as u8 * 2).collect();
    let bytes = encode_released(&Pixels::new(shape, &data).unwrap(), 4).unwrap();
    let first = &bytes[13 + 6..];
    // 2 | 10 << 4 | (0, 1, 2, 3) << 12, 14, 16, 18 = 0x000E_40A2, in three bytes.
    assert_eq!(first[..3], [0xA2, 0x40, 0x0E]);
    assert!(decode(&bytes).unwrap().data == data);
}

#[test]
fn what_it_cannot_carry_is_refused_and_classic_carries_it() {
    for (shape, kind) in [
        (shape(128, 64, 3, Depth::Eight), Kind::Constant),
        (shape(128, 64, 3, Depth::Eight), Kind::Random),
        (shape(130, 64, 3, Depth::Eight), Kind::Photo),
        (shape(128, 64, 4, Depth::Eight), Kind::Photo),
    ] {
        let data = make(kind, shape, 1);
        let pixels = Pixels::new(shape, &data).unwrap();
        assert_eq!(encode_released(&pixels, 64).unwrap_err().class(), ErrorClass::Unsupported);
        assert!(decode(&encode(&pixels, &EncodeOptions::new(Mode::Classic)).unwrap()).unwrap().data == data);
    }
}

#[test]
fn lossy_rows_and_dropped_edges_are_refused_when_read() {
    let shape = shape(64, 64, 3, Depth::Eight);
    let bytes = encode_released(&Pixels::new(shape, &gentle(shape)).unwrap(), 64).unwrap();
    let mut lossy = bytes.clone();
    lossy[19] = lossy[19] & 0xF0 | 6;
    assert_eq!(decode(&lossy).unwrap_err().class(), ErrorClass::Unsupported);
    let mut edges = bytes.clone();
    edges[8] = 70;
    assert_eq!(decode(&edges).unwrap_err().class(), ErrorClass::Unsupported);
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err());
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x5A;
        let _ = decode(&damaged);
    }
}
