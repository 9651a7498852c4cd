//! EXIF orientation: the eight ways a camera may have been held.

/// How the stored image must be rotated to be upright; the discriminants are EXIF's (tag 0x0112).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Orientation {
    /// As stored.
    #[default]
    Normal = 1,
    /// Mirror left to right.
    FlipHorizontal = 2,
    /// Turn by half.
    Rotate180 = 3,
    /// Mirror top to bottom.
    FlipVertical = 4,
    /// Swap rows and columns.
    Transpose = 5,
    /// Turn a quarter clockwise.
    Rotate90 = 6,
    /// Swap rows and columns, then turn by half.
    Transverse = 7,
    /// Turn a quarter counter-clockwise.
    Rotate270 = 8,
}

impl Orientation {
    /// All eight, in EXIF's order.
    pub const ALL: [Self; 8] = [
        Self::Normal,
        Self::FlipHorizontal,
        Self::Rotate180,
        Self::FlipVertical,
        Self::Transpose,
        Self::Rotate90,
        Self::Transverse,
        Self::Rotate270,
    ];

    /// The orientation of an EXIF value, or `None` for values that EXIF does not define.
    pub fn from_exif(value: u16) -> Option<Self> {
        Self::ALL.get(usize::from(value).checked_sub(1)?).copied()
    }

    /// Whether width and height are swapped.
    pub const fn swaps_axes(self) -> bool {
        matches!(self, Self::Transpose | Self::Rotate90 | Self::Transverse | Self::Rotate270)
    }

    /// The orientation that undoes this one.
    #[must_use]
    pub const fn inverse(self) -> Self {
        match self {
            Self::Rotate90 => Self::Rotate270,
            Self::Rotate270 => Self::Rotate90,
            other => other,
        }
    }

    /// Where the pixel (`x`, `y`) of a stored image of `width` × `height` goes.
    pub const fn map(self, x: usize, y: usize, width: usize, height: usize) -> (usize, usize) {
        let (right, below) = (width - 1 - x, height - 1 - y);
        match self {
            Self::Normal => (x, y),
            Self::FlipHorizontal => (right, y),
            Self::Rotate180 => (right, below),
            Self::FlipVertical => (x, below),
            Self::Transpose => (y, x),
            Self::Rotate90 => (below, x),
            Self::Transverse => (below, right),
            Self::Rotate270 => (y, right),
        }
    }

    /// The size of a stored image of `width` × `height` once turned.
    pub const fn size(self, width: usize, height: usize) -> (usize, usize) {
        if self.swaps_axes() { (height, width) } else { (width, height) }
    }
}

/// The most directory entries looked at: real files have a few dozen.
const ENTRIES_MAX: usize = 512;
const TAG_ORIENTATION: u16 = 0x0112;
const TYPE_SHORT: u16 = 3;

/// The orientation in a TIFF structure (what EXIF is, behind its own marker); normal where it is absent or unreadable,
/// because a damaged tag must not cost the picture.
pub(crate) fn from_tiff(tiff: &[u8]) -> Orientation {
    read_tag(tiff).and_then(Orientation::from_exif).unwrap_or_default()
}

/// The orientation in an EXIF block, with or without the `Exif\0\0` that JPEG puts before it.
pub(crate) fn from_exif_block(block: &[u8]) -> Orientation {
    from_tiff(block.strip_prefix(b"Exif\0\0").unwrap_or(block))
}

fn read_tag(tiff: &[u8]) -> Option<u16> {
    let little = match tiff.get(..4)? {
        [b'I', b'I', 42, 0] => true,
        [b'M', b'M', 0, 42] => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes: [u8; 4] = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = long(4)? as usize;
    let entries = usize::from(short(directory)?).min(ENTRIES_MAX);
    for entry in 0..entries {
        let at = directory.checked_add(2 + entry * 12)?;
        if short(at)? == TAG_ORIENTATION {
            return (short(at + 2)? == TYPE_SHORT && long(at + 4)? == 1).then(|| short(at + 8)).flatten();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TIFF with one entry, in either byte order.
    fn tiff(little: bool, value: u16) -> Vec<u8> {
        let short = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let long = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let mut out = if little { b"II".to_vec() } else { b"MM".to_vec() };
        out.extend(short(42));
        out.extend(long(8));
        out.extend(short(1));
        out.extend(short(TAG_ORIENTATION));
        out.extend(short(TYPE_SHORT));
        out.extend(long(1));
        out.extend(short(value));
        out.extend([0; 6]);
        out
    }

    #[test]
    fn all_eight_values_are_read_in_both_byte_orders() {
        for little in [true, false] {
            for (index, expected) in Orientation::ALL.into_iter().enumerate() {
                assert_eq!(from_tiff(&tiff(little, index as u16 + 1)), expected);
            }
            assert_eq!(from_tiff(&tiff(little, 0)), Orientation::Normal);
            assert_eq!(from_tiff(&tiff(little, 9)), Orientation::Normal);
        }
    }

    #[test]
    fn damaged_blocks_are_normal_and_never_panic() {
        let whole = tiff(true, 6);
        for end in 0..whole.len() {
            let _ = from_tiff(&whole[..end]);
        }
        let mut far = whole.clone();
        far[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(from_tiff(&far), Orientation::Normal);
    }

    #[test]
    fn the_inverse_undoes_and_the_size_fits() {
        let (width, height) = (5, 3);
        for orientation in Orientation::ALL {
            let (new_width, new_height) = orientation.size(width, height);
            for y in 0..height {
                for x in 0..width {
                    let (to_x, to_y) = orientation.map(x, y, width, height);
                    assert!(to_x < new_width && to_y < new_height);
                    assert_eq!(orientation.inverse().map(to_x, to_y, new_width, new_height), (x, y));
                }
            }
        }
    }
}
