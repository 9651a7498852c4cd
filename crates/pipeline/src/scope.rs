//! The scope: what a step may use while it runs, kept from sample to sample so that nothing is allocated anew.

use std::any::Any;

use forebay_codec::image::Decoder;
use forebay_codec::tensor_encoding::TensorDecoder;

use crate::random::Random;
use crate::steps::Frame;

/// What one worker keeps for its steps. Not shared between threads.
pub struct Scope {
    /// The random numbers of this sample, epoch and step.
    pub random: Random,
    /// What a geometric step did to the picture that comes first in its `fields`; masks and boxes follow it.
    pub(crate) frame: Option<Frame>,
    /// The same of steps within a step, each with a number of its own.
    inner_frames: Vec<(u64, Frame)>,
    rng_key: RngKey,
    sample: u64,
    /// One of each type: so few that looking through them is faster than a map.
    scratch: Vec<Box<dyn Scratch>>,
}

/// What steps work in: buffers, and what is costly to make. Each kind of step brings a type of its own, or shares one; a
/// worker has one of each, which lasts from sample to sample.
pub trait Scratch: Any + Send {
    /// How many bytes its large buffers take.
    fn capacity_bytes(&self) -> usize;

    /// Gives them back.
    fn trim(&mut self);
}

impl<T: Send + 'static> Scratch for Vec<T> {
    fn capacity_bytes(&self) -> usize {
        self.capacity() * size_of::<T>()
    }

    fn trim(&mut self) {
        *self = Self::new();
    }
}

impl Scratch for Decoder {
    fn capacity_bytes(&self) -> usize {
        self.capacity_bytes()
    }

    fn trim(&mut self) {
        self.trim();
    }
}

impl Scratch for TensorDecoder {
    fn capacity_bytes(&self) -> usize {
        self.capacity_bytes()
    }

    fn trim(&mut self) {
        self.trim();
    }
}

impl Scope {
    /// A fresh scope.
    pub fn new() -> Self {
        let random = Random::from_parts(&[]);
        let rng_key = RngKey::default();
        Self { random, frame: None, inner_frames: Vec::new(), rng_key, sample: 0, scratch: Vec::new() }
    }

    /// This worker's scratch of type `T`, as the last step left it.
    ///
    /// # Panics
    /// Never: what was found by its type is of it.
    pub fn scratch<T: Scratch + Default>(&mut self) -> &mut T {
        let kept = self.scratch.iter().position(|scratch| (&**scratch as &dyn Any).is::<T>());
        let index = kept.unwrap_or_else(|| {
            self.scratch.push(Box::new(T::default()));
            self.scratch.len() - 1
        });
        (&mut *self.scratch[index] as &mut dyn Any).downcast_mut().expect("found by its type")
    }

    /// How many bytes the large buffers of its scratch take.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.scratch.iter().map(|scratch| scratch.capacity_bytes()).sum()
    }

    /// Gives them back.
    pub(crate) fn trim(&mut self) {
        self.scratch.iter_mut().for_each(|scratch| scratch.trim());
    }

    /// A new sample begins.
    pub(crate) fn begin_sample(&mut self, rng_key: RngKey, sample: u64) {
        self.rng_key = rng_key;
        self.sample = sample;
    }

    /// A step begins, with its first field. To be said by whoever runs a step by itself.
    pub fn begin_fields(&mut self) {
        self.frame = None;
        self.inner_frames.clear();
    }

    /// A step within a step begins, for one of its fields: its frame is the one that it had for the field before. Gives the frame of
    /// the step around it, for [`Self::leave`].
    pub(crate) fn enter(&mut self, step: u64) -> Option<Frame> {
        let inner = self.inner_frames.iter().find(|(other, _)| *other == step).map(|(_, frame)| *frame);
        std::mem::replace(&mut self.frame, inner)
    }

    /// The step within a step ends.
    pub(crate) fn leave(&mut self, step: u64, outer: Option<Frame>) {
        if let Some(inner) = std::mem::replace(&mut self.frame, outer)
            && self.inner_frames.iter().all(|(other, _)| *other != step)
        {
            self.inner_frames.push((step, inner));
        }
    }

    /// Step number `step` of the pipeline begins to draw. Doing so twice gives the same numbers again.
    pub(crate) fn begin_step(&mut self, step: usize) {
        self.random = Random::from_parts(&[self.rng_key.seed, self.rng_key.epoch, self.sample, step as u64]);
    }
}

impl Default for Scope {
    fn default() -> Self {
        Self::new()
    }
}

/// What the random numbers of samples follow from: the same seed and epoch give the same pictures again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RngKey {
    /// The seed of the run.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_one_scratch_of_each_type() {
        let mut scope = Scope::new();
        scope.scratch::<Vec<u8>>().extend([1; 100]);
        scope.scratch::<Vec<u16>>().extend([2; 100]);
        assert_eq!(*scope.scratch::<Vec<u8>>(), [1; 100]);
        assert_eq!((scope.capacity_bytes(), scope.scratch.len()), (300, 2));
        scope.trim();
        assert_eq!((scope.capacity_bytes(), scope.scratch.len()), (0, 2));
        assert!(scope.scratch::<Vec<u16>>().is_empty());
    }
}
