//! Bits into bytes, the first bit highest, as FLAC and MPEG audio have them.

/// Bytes that are written bit by bit.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    held: u64,
    pending: u32,
}

impl Bits {
    /// The lowest `bits` of `value`, at most 32.
    pub(super) fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits <= 32, "more than fit into the buffer");
        self.held = (self.held << bits) | (value & ((1 << bits) - 1));
        self.pending += bits;
        while self.pending >= 8 {
            self.pending -= 8;
            self.bytes.push((self.held >> self.pending) as u8);
        }
    }

    /// So many zeros.
    pub(super) fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let now = count.min(32);
            self.put(0, now as u32);
            count -= now;
        }
    }

    /// How many bits there are.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() * 8 + self.pending as usize
    }

    /// The bytes, the last one filled up with zeros.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if self.pending > 0 {
            self.put(0, 8 - self.pending);
        }
        self.bytes
    }
}
