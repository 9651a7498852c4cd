//! The scope: what a step may use while it runs, kept from sample to sample so that nothing is allocated anew.

use forebay_codec::audio::{Resampler, SpectrogramBuffers};
use forebay_codec::image::Decoder;
use forebay_codec::text::TokeniserRoom;
use forebay_resize::Resizer;

use crate::random::Random;
use crate::steps::Frame;

/// What one worker keeps for its steps. Not shared between threads.
pub struct Scope {
    /// The random numbers of this sample, epoch and step.
    pub random: Random,
    /// The image decoder with its buffers.
    pub decoder: Decoder,
    /// The resizer with its buffers.
    pub resizer: Resizer,
    /// Room for single-precision intermediates.
    pub floats: Vec<f32>,
    /// Room for a picture between two halves of one step.
    pub pixels: Vec<u8>,
    /// Room for the samples of sound.
    pub samples: Vec<i16>,
    /// The resampler of the last sound that needed one.
    pub resampler: Option<Resampler>,
    /// What a spectrogram is made on.
    pub spectrogram: SpectrogramBuffers,
    /// Room for double-precision intermediates.
    pub doubles: Vec<f64>,
    /// What a tokeniser works in, with the words it has seen.
    pub tokeniser: TokeniserRoom,
    /// Room for token ids.
    pub ids: Vec<u32>,
    /// What a geometric step did to the picture that comes first in its `fields`; masks and boxes follow it.
    pub(crate) frame: Option<Frame>,
    draw: Draw,
    sample: u64,
}

impl Scope {
    /// A fresh scope.
    pub fn new() -> Self {
        Self {
            random: Random::from_parts(&[]),
            decoder: Decoder::new(),
            resizer: Resizer::default(),
            floats: Vec::new(),
            pixels: Vec::new(),
            samples: Vec::new(),
            resampler: None,
            spectrogram: SpectrogramBuffers::default(),
            doubles: Vec::new(),
            tokeniser: TokeniserRoom::default(),
            ids: Vec::new(),
            frame: None,
            draw: Draw::default(),
            sample: 0,
        }
    }

    /// How many bytes its large buffers take.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.decoder.capacity_bytes()
            + self.resizer.capacity_bytes()
            + self.pixels.capacity()
            + (self.floats.capacity() + self.ids.capacity()) * size_of::<f32>()
            + self.samples.capacity() * size_of::<i16>()
            + self.doubles.capacity() * size_of::<f64>()
    }

    /// Gives them back.
    pub(crate) fn trim(&mut self) {
        self.decoder.trim();
        self.resizer.trim();
        self.pixels = Vec::new();
        self.floats = Vec::new();
        self.ids = Vec::new();
        self.samples = Vec::new();
        self.doubles = Vec::new();
    }

    /// A new sample begins.
    pub(crate) fn begin_sample(&mut self, draw: Draw, sample: u64) {
        self.draw = draw;
        self.sample = sample;
    }

    /// A step begins, with its first field.
    pub(crate) fn begin_fields(&mut self) {
        self.frame = None;
    }

    /// Step number `step` of the pipeline begins to draw. Doing so twice gives the same numbers again.
    pub(crate) fn begin_step(&mut self, step: usize) {
        self.random = Random::from_parts(&[self.draw.seed, self.draw.epoch, self.sample, step as u64]);
    }
}

impl Default for Scope {
    fn default() -> Self {
        Self::new()
    }
}

/// Which draw of random numbers a sample gets: the same seed and epoch give the same pictures again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Draw {
    /// The seed of the run.
    pub seed: u64,
    /// The epoch.
    pub epoch: u64,
}
