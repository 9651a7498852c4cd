//! A row in four phases. Column `x` belongs to phase `x % 4` and has index `x / 4` there.
//!
//! The phases of a row are coded in [`ORDER`]: phase 0 is predicted from the row above alone; phase 2 from its neighbors two
//! columns to the left and right, which are phase 0, and from above; phases 1 and 3 from their direct neighbors and from
//! above. Within a phase no sample depends on another, so each is as many independent SIMD or GPU lanes as it has samples.

use crate::error::{Result, resize};
use crate::sample::Sample;

/// Samples of slack before and after a phase, so that kernels may work in whole vectors.
pub(crate) const PAD: usize = 64;

/// The order in which the phases of a row are coded.
pub(crate) const ORDER: [usize; 4] = [0, 2, 1, 3];

/// How many columns each phase has.
pub(crate) fn counts(width: usize) -> [usize; 4] {
    [0, 1, 2, 3].map(|phase| (width + 3 - phase) / 4)
}

/// A count rounded up to whole vectors of bytes.
pub(crate) fn padded(count: usize) -> usize {
    count.next_multiple_of(32)
}

/// The index of each phase in [`ORDER`].
const RANK: [usize; 4] = [0, 2, 1, 3];

/// One row of one channel, phase after phase in [`ORDER`], with space for whole vectors around each phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases<S> {
    samples: Vec<S>,
    /// Where in that the first phase's space begins: at a multiple of 64 bytes, and so does every phase, so that vectors do not
    /// lie across cache lines.
    base: usize,
    /// From the start of one phase to that of the next.
    pitch: usize,
}

impl<S: Sample> Phases<S> {
    /// Makes space for a width. Keeps what was allocated; contents are unspecified afterwards.
    pub(crate) fn resize(&mut self, width: usize) -> Result<()> {
        self.pitch = counts(width)[0].next_multiple_of(PAD) + 2 * PAD;
        resize(&mut self.samples, 4 * self.pitch + 2 * PAD)?;
        self.base = self.samples.as_ptr().align_offset(64).min(PAD);
        Ok(())
    }

    /// The phases, from the first one's space on.
    #[inline(always)]
    fn spaces(&self) -> &[S] {
        &self.samples[self.base..]
    }

    /// The same, to write.
    #[inline(always)]
    fn spaces_mut(&mut self) -> &mut [S] {
        &mut self.samples[self.base..]
    }

    /// `count` samples of a phase, beginning `shift` samples after (or before) its first.
    #[inline(always)]
    pub(crate) fn at(&self, phase: usize, shift: isize, count: usize) -> &[S] {
        let start = (RANK[phase] * self.pitch + PAD).wrapping_add_signed(shift);
        &self.spaces()[start..start + count]
    }

    /// The same, to write.
    #[inline(always)]
    pub(crate) fn at_mut(&mut self, phase: usize, count: usize) -> &mut [S] {
        let start = RANK[phase] * self.pitch + PAD;
        &mut self.spaces_mut()[start..start + count]
    }

    /// Where phase 0 begins, and how far it is from each phase to the next in [`ORDER`], for kernels that do without bounds
    /// checks. From 64 samples before the start of each phase to 64 after its count, rounded up to 64, everything may be read.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    pub(crate) fn start(&self) -> (*const S, usize) {
        (self.spaces()[PAD..].as_ptr(), self.pitch)
    }

    /// The same, to write.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    pub(crate) fn start_mut(&mut self) -> (*mut S, usize) {
        let pitch = self.pitch;
        (self.spaces_mut()[PAD..].as_mut_ptr(), pitch)
    }

    /// Whether there is space for a width, as [`Phases::resize`] makes it.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    pub(crate) fn has_space(&self, counts: &[usize; 4]) -> bool {
        self.pitch >= counts[0].next_multiple_of(PAD) + 2 * PAD && self.spaces().len() >= 4 * self.pitch + PAD
    }

    /// `count` samples of a phase to write, and their neighbors, which lie in phases of lower rank and in the row above.
    #[inline(always)]
    pub(crate) fn with_neighbors<'a>(
        &'a mut self,
        phase: usize,
        above: &'a Self,
        count: usize,
    ) -> (&'a mut [S], Neighbors<'a, S>) {
        let pitch = self.pitch;
        let (known, rest) = self.spaces_mut().split_at_mut(RANK[phase] * pitch);
        (&mut rest[PAD..PAD + count], Neighbors::of(phase, known, pitch, above, count))
    }

    /// The samples of a phase and their neighbors, to read.
    #[inline(always)]
    pub(crate) fn and_neighbors<'a>(
        &'a self,
        phase: usize,
        above: &'a Self,
        count: usize,
    ) -> (&'a [S], Neighbors<'a, S>) {
        (self.at(phase, 0, count), Neighbors::of(phase, self.spaces(), self.pitch, above, count))
    }

    /// Sets the neighbors that a finished phase lacks at the edges of the image: phase 0 repeats its last sample, phases 1
    /// and 2 are continued with phase 0's sample of that index, and before phase 3 stands phase 0's first sample.
    #[inline(always)]
    pub(crate) fn extend(&mut self, phase: usize, counts: &[usize; 4]) {
        let (from, to) = match phase {
            0 => (counts[0] - 1, counts[0]),
            1 | 2 => (counts[phase], RANK[phase] * self.pitch + counts[phase]),
            _ => (0, 3 * self.pitch - 1),
        };
        let spaces = self.spaces_mut();
        spaces[PAD + to] = spaces[PAD + from];
    }
}

/// The neighbors of the samples of one phase; `left` and `right` are empty for phase 0.
pub(crate) struct Neighbors<'a, S> {
    pub(crate) left: &'a [S],
    pub(crate) right: &'a [S],
    pub(crate) top: &'a [S],
    pub(crate) top_left: &'a [S],
    pub(crate) top_right: &'a [S],
}

impl<'a, S: Sample> Neighbors<'a, S> {
    /// The neighbors of `count` samples, given the phases of lower rank, `pitch` apart.
    #[inline(always)]
    fn of(phase: usize, known: &'a [S], pitch: usize, above: &'a Phases<S>, count: usize) -> Self {
        // Where the samples to the left and right of this phase are: which phase, and how far along it.
        let ((left, left_shift), (right, right_shift)) = match phase {
            0 => ((3, -1), (1, 0)),
            1 => ((0, 0), (2, 0)),
            2 => ((0, 0), (0, 1)),
            _ => ((2, 0), (0, 1)),
        };
        let known = |phase: usize, shift: isize| -> &'a [S] {
            let start = (RANK[phase] * pitch + PAD).wrapping_add_signed(shift);
            &known[start..start + count]
        };
        Self {
            left: if phase == 0 { &[] } else { known(left, left_shift) },
            right: if phase == 0 { &[] } else { known(right, right_shift) },
            top: above.at(phase, 0, count),
            top_left: above.at(left, left_shift, count),
            top_right: above.at(right, right_shift, count),
        }
    }
}
