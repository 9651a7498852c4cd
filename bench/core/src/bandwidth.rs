//! What memory gives: the roof over work that moves much and computes little.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::measure::median;

/// What each thread copies from and to: more than any cache holds.
const BYTES: usize = 128 << 20;

/// Copies that are timed together; the first pages are faulted in before.
const COPIES: usize = 3;

/// Buffers of as many threads, faulted in.
pub(crate) struct Copying {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    rates: Vec<f64>,
}

impl Copying {
    pub(crate) fn new(threads: usize) -> Self {
        let pairs = (0..threads).map(|thread| (vec![thread as u8 + 1; BYTES], vec![255; BYTES])).collect();
        Self { pairs, rates: Vec::new() }
    }

    /// Copies once more, on all threads at the same time.
    pub(crate) fn measure(&mut self) {
        let barrier = Barrier::new(self.pairs.len() + 1);
        let moved = 2 * BYTES * COPIES * self.pairs.len();
        let seconds = thread::scope(|scope| {
            for (from, to) in &mut self.pairs {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    for _ in 0..COPIES {
                        std::hint::black_box(&mut *to).copy_from_slice(std::hint::black_box(from));
                    }
                    barrier.wait();
                });
            }
            barrier.wait();
            let begun = Instant::now();
            barrier.wait();
            begun.elapsed().as_secs_f64()
        });
        self.rates.push(moved as f64 / seconds);
    }

    /// Bytes that were read or written in a second, by all threads together.
    pub(crate) fn bytes_per_second(&self) -> f64 {
        median(self.rates.clone())
    }
}
