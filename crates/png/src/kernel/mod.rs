//! From filtered rows to pixels (PNG, 9). `scalar.rs` is the definition; the others give the same bytes.
//!
//! The pixels of a row depend on each other, one after the other, and so do rows; but a pixel needs only those to its left and
//! above it. So the vector kernels take several rows at once, each a pixel behind the one above it: a diagonal of pixels, one
//! of each row, is one vector. What is to the left of a diagonal is the diagonal before it, and what is above it is the same
//! shifted by a row.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod edge;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse41;

#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::Supported;

/// How a row was filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    None,
    Sub,
    Up,
    Average,
    Paeth,
}

impl Filter {
    pub(crate) const ALL: [Self; 5] = [Self::None, Self::Sub, Self::Up, Self::Average, Self::Paeth];

    pub(crate) fn new(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// Whether a pixel depends on the one to its left, so that a single row is slow.
    #[cfg(target_arch = "x86_64")]
    fn is_chain(self) -> bool {
        matches!(self, Self::Sub | Self::Average | Self::Paeth)
    }
}

/// The most rows that are worth passing at once.
pub(crate) const ROWS: usize = 8;

/// Rows to be unfiltered, each of them a byte that says how and the filtered bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filtered<'a> {
    pub(crate) bytes: &'a [u8],
    /// The bytes of a row without the first.
    pub(crate) row_bytes: usize,
    /// The bytes from a byte to the one left of it: of a pixel, at least 1.
    pub(crate) pixel_bytes: usize,
}

impl<'a> Filtered<'a> {
    /// How row `index` was filtered. An unknown filter, which the caller has refused, counts as none.
    fn filter(&self, index: usize) -> Filter {
        self.bytes.get(index * (self.row_bytes + 1)).copied().and_then(Filter::new).unwrap_or(Filter::None)
    }

    /// The bytes of row `index`, and all that follow.
    fn row(&self, index: usize) -> &'a [u8] {
        self.bytes.get(index * (self.row_bytes + 1) + 1..).unwrap_or_default()
    }

    fn skip(self, rows: usize) -> Self {
        Self { bytes: self.bytes.get(rows * (self.row_bytes + 1)..).unwrap_or_default(), ..self }
    }
}

/// What the kernels that take several rows at once need.
#[cfg(target_arch = "x86_64")]
impl<'a> Filtered<'a> {
    /// Whether the first `rows` are all Paeth's.
    fn are_paeth(&self, rows: usize) -> bool {
        (0..rows).all(|row| self.filter(row) == Filter::Paeth)
    }

    /// The bytes of the first rows, each with all that follow.
    fn rows<const ROWS: usize>(&self) -> [&'a [u8]; ROWS] {
        std::array::from_fn(|row| self.row(row))
    }

    /// The masks of a vector with that many rows.
    fn masks<const ROWS: usize>(&self) -> Masks {
        let filters: [Filter; ROWS] = std::array::from_fn(|row| self.filter(row));
        let mask = |wanted: &[Filter]| {
            std::array::from_fn(|at| if wanted.contains(&filters[at * ROWS / 16]) { 0xFF } else { 0 })
        };
        Masks {
            left: mask(&[Filter::Sub, Filter::Paeth]),
            above: mask(&[Filter::Up, Filter::Paeth]),
            left_above: mask(&[Filter::Paeth]),
            average: mask(&[Filter::Average]),
        }
    }
}

/// How the rows of a diagonal were filtered: bytes of 0 or 0xFF.
///
/// All filters but one are Paeth's with something left out: without the pixels above it gives the left one, without those to
/// the left the one above, and without any of them zero. The masks say what is kept.
#[cfg(target_arch = "x86_64")]
struct Masks {
    left: [u8; 16],
    above: [u8; 16],
    left_above: [u8; 16],
    average: [u8; 16],
}

/// The first rows of an output.
#[cfg(target_arch = "x86_64")]
fn rows_of<const ROWS: usize>(output: &mut [u8], row_bytes: usize) -> [&mut [u8]; ROWS] {
    let mut rows = output.chunks_exact_mut(row_bytes);
    std::array::from_fn(|_| rows.next().unwrap_or_default())
}

/// Unfilters as many rows as `output` holds; `above` is the row above them, which is zero above the first.
pub(crate) fn unfilter(level: Supported, filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    let row_bytes = filtered.row_bytes;
    let (mut filtered, mut done) = (filtered, 0);
    while done < output.len() {
        let (before, rest) = output.split_at_mut(done);
        let above = if done == 0 { above } else { &before[done - row_bytes..] };
        let rows = several(level, filtered, above, rest);
        if rows == 0 {
            scalar::unfilter(filtered.filter(0), filtered.pixel_bytes, filtered.row(0), above, &mut rest[..row_bytes]);
        }
        filtered = filtered.skip(rows.max(1));
        done += rows.max(1) * row_bytes;
    }
}

/// Unfilters the first rows at once, if that is faster than one after the other, and gives their number.
#[cfg(target_arch = "x86_64")]
fn several(level: Supported, filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) -> usize {
    let chains = |rows: usize| {
        let enough = output.len() >= rows * filtered.row_bytes;
        enough && (0..rows).filter(|&row| filtered.filter(row).is_chain()).count() * 2 >= rows
    };
    let wide = filtered.pixel_bytes > 4;
    match level.level() {
        Level::Avx2 if !wide && chains(8) => {
            // SAFETY: a `Supported` level is one that this machine was seen to have.
            unsafe { avx2::unfilter(filtered, above, output) };
            8
        }
        Level::Sse41 | Level::Avx2 if !wide && chains(4) => {
            // SAFETY: a `Supported` level is one that this machine was seen to have; AVX2 comes with SSE4.1.
            unsafe { sse41::unfilter(filtered, above, output) };
            4
        }
        Level::Sse41 | Level::Avx2 if wide && chains(2) => {
            // SAFETY: as above.
            unsafe { sse41::unfilter_wide(filtered, above, output) };
            2
        }
        _ => 0,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn several(_: Supported, _: Filtered<'_>, _: &[u8], _: &mut [u8]) -> usize {
    0
}
