//! Files generated for tests. Any bytes are the filtered rows of some image, so no encoder is needed.

use libdeflater::{CompressionLvl, Compressor};

/// Color type and depth: all that the format has.
pub(crate) const KINDS: [(u8, u8); 15] = [
    (0, 1),
    (0, 2),
    (0, 4),
    (0, 8),
    (0, 16),
    (2, 8),
    (2, 16),
    (3, 1),
    (3, 2),
    (3, 4),
    (3, 8),
    (4, 8),
    (4, 16),
    (6, 8),
    (6, 16),
];

/// An image to write.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) kind: (u8, u8),
    pub(crate) interlace: u8,
    /// The number of chunks that the pixels are split over.
    pub(crate) parts: usize,
    /// Chunks before the pixels.
    pub(crate) chunks: Vec<([u8; 4], Vec<u8>)>,
}

impl Made {
    pub(crate) fn new(width: usize, height: usize, kind: (u8, u8)) -> Self {
        let palette = (kind.0 == 3).then(|| (*b"PLTE", random(7).take(3 * 11).collect()));
        Self { width, height, kind, interlace: 0, parts: 1, chunks: palette.into_iter().collect() }
    }

    pub(crate) fn row_bytes(&self) -> usize {
        let samples = match self.kind.0 {
            2 => 3,
            4 => 2,
            6 => 4,
            _ => 1,
        };
        (self.width * samples * usize::from(self.kind.1)).div_ceil(8)
    }

    /// Rows of random bytes, the filters given in turn.
    pub(crate) fn rows(&self, filters: &[u8], seed: u32) -> Vec<u8> {
        let mut bytes = random(seed);
        let filters = filters.iter().cycle().take(self.height);
        filters
            .flat_map(|&filter| {
                std::iter::once(filter).chain(bytes.by_ref().take(self.row_bytes())).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The file with these filtered rows.
    pub(crate) fn file(&self, rows: &[u8]) -> Vec<u8> {
        self.file_of(&compress(rows))
    }

    /// The file with these compressed rows.
    pub(crate) fn file_of(&self, compressed: &[u8]) -> Vec<u8> {
        let mut file = vec![137, 80, 78, 71, 13, 10, 26, 10];
        let mut header = [self.width as u32, self.height as u32].map(u32::to_be_bytes).concat();
        header.extend([self.kind.1, self.kind.0, 0, 0, self.interlace]);
        push(&mut file, *b"IHDR", &header);
        for (kind, payload) in &self.chunks {
            push(&mut file, *kind, payload);
        }
        for part in compressed.chunks(compressed.len().div_ceil(self.parts)) {
            push(&mut file, *b"IDAT", part);
        }
        push(&mut file, *b"IEND", &[]);
        file
    }
}

pub(crate) fn push(file: &mut Vec<u8>, kind: [u8; 4], payload: &[u8]) {
    file.extend((payload.len() as u32).to_be_bytes());
    let checked = [&kind, payload].concat();
    file.extend(&checked);
    file.extend(libdeflater::crc32(&checked).to_be_bytes());
}

pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::fastest());
    let mut compressed = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let length = compressor.zlib_compress(bytes, &mut compressed).unwrap();
    compressed.truncate(length);
    compressed
}

/// An endless sequence of bytes, every third of which is near 0 or 255, the edge cases of the filters.
pub(crate) fn random(seed: u32) -> impl Iterator<Item = u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (byte, how) = ((state >> 56) as u8, (state >> 40) % 3);
        if how == 0 { (byte & 3).wrapping_sub(2) } else { byte }
    })
}
