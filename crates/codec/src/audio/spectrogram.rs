//! The log-mel spectrogram.
//!
//! For each frame of samples: multiplied by a periodic Hann window, padded with zeros to the length of the Fourier
//! transform, transformed; the magnitudes summed up in mel bands ([`Mel`]); the logarithm of the sums taken, with a small
//! number added so that silence stays finite. No frame reaches beyond the end of the samples. (PRESTO's
//! code calls `tf.signal.stft` and `linear_to_mel_weight_matrix` with their defaults.)
//!
//! What makes it fast: the samples of a frame are real, so the even ones are taken for real parts and the odd ones for
//! imaginary parts of a transform of half the length, from which the spectrum is put together; that is done only for the
//! bins that some band counts (236 of 513 at 16 kHz, 79 at 48 kHz); and the filterbank is stored without its zeros.
//! (Two frames in one transform of full length would cost as much, but the rounding noise of a loud frame would then drown
//! a silent neighbor.)

use std::fmt;
use std::sync::Arc;

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

use super::mel::Mel;
use crate::{Error, Result};

/// The longest Fourier transform that can be asked for.
const FFT_LENGTH_MAX: usize = 1 << 16;

/// What kind of spectrogram; the default is PRESTO's for 16 kHz.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectrogramOptions {
    /// Samples per second.
    pub rate_hz: u32,
    /// How long a frame is; 20 ms unless set.
    pub window_milliseconds: u32,
    /// How far from one frame to the next; 10 ms unless set.
    pub hop_milliseconds: u32,
    /// The length of the Fourier transform; even, and no shorter than a frame; 1024 unless set.
    pub fft_length: usize,
    /// How many mel bands; 80 unless set.
    pub mel_bands: usize,
    /// Where the lowest band starts; 125 Hz unless set.
    pub lowest_hz: f64,
    /// Where the highest band ends; 3800 Hz unless set.
    pub highest_hz: f64,
    /// What is added before the logarithm is taken; 1e-8 unless set.
    pub log_offset: f32,
}

impl Default for SpectrogramOptions {
    fn default() -> Self {
        Self {
            rate_hz: 16_000,
            window_milliseconds: 20,
            hop_milliseconds: 10,
            fft_length: 1024,
            mel_bands: 80,
            lowest_hz: 125.0,
            highest_hz: 3800.0,
            log_offset: 1e-8,
        }
    }
}

impl SpectrogramOptions {
    /// Samples in a frame.
    pub fn frame_samples(&self) -> usize {
        (u64::from(self.rate_hz) * u64::from(self.window_milliseconds) / 1000) as usize
    }

    /// Samples from one frame to the next.
    pub fn step_samples(&self) -> usize {
        (u64::from(self.rate_hz) * u64::from(self.hop_milliseconds) / 1000) as usize
    }

    fn check(&self) -> Result<()> {
        let (frame, step) = (self.frame_samples(), self.step_samples());
        if step == 0 {
            return Err(Error::usage("the step is shorter than a sample", "at least 1 sample", "0"));
        }
        if !(2..=FFT_LENGTH_MAX).contains(&self.fft_length) || !self.fft_length.is_multiple_of(2) {
            let expected = format!("an even number of 2 to {FFT_LENGTH_MAX}");
            return Err(Error::usage("the length of the Fourier transform does not fit", expected, self.fft_length));
        }
        if frame == 0 || frame > self.fft_length {
            let expected = format!("1 to {} samples", self.fft_length);
            return Err(Error::usage("a frame does not fit the Fourier transform", expected, frame));
        }
        if !(1..=self.fft_length).contains(&self.mel_bands) {
            let expected = format!("1 to {}", self.fft_length);
            return Err(Error::usage("the number of mel bands does not fit", expected, self.mel_bands));
        }
        let nyquist_hz = f64::from(self.rate_hz) / 2.0;
        let valid = 0.0 <= self.lowest_hz && self.lowest_hz < self.highest_hz && self.highest_hz <= nyquist_hz;
        if !valid {
            let found = format!("{} to {} Hz", self.lowest_hz, self.highest_hz);
            let expected = format!("a range within 0 to {nyquist_hz} Hz");
            return Err(Error::usage("the mel bands do not fit the sample rate", expected, found));
        }
        if !self.log_offset.is_finite() || self.log_offset <= 0.0 {
            return Err(Error::usage("the logarithm of silence is not finite", "an offset above 0", self.log_offset));
        }
        Ok(())
    }
}

/// Makes spectrograms of one kind. Shared freely between threads; each brings its own [`SpectrogramBuffers`].
pub struct Spectrogram {
    options: SpectrogramOptions,
    frame: usize,
    step: usize,
    /// The window, over 32,768: so large is a sample of full scale.
    window: Vec<f32>,
    fft: Arc<dyn Fft<f32>>,
    /// For each used bin `k`, −i·e^(−2πik/length): what turns the odd half of the transform into its position.
    twiddles: Vec<Complex32>,
    mel: Mel,
}

impl fmt::Debug for Spectrogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spectrogram").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The working memory of a [`Spectrogram`], reused from one call to the next.
#[derive(Debug, Default)]
pub struct SpectrogramBuffers {
    spectrum: Vec<Complex32>,
    scratch: Vec<Complex32>,
    magnitudes: Vec<f32>,
}

impl Spectrogram {
    /// Plans spectrograms, or says which option does not fit.
    pub fn new(options: &SpectrogramOptions) -> Result<Self> {
        options.check()?;
        let (frame, length) = (options.frame_samples(), options.fft_length);
        let window = (0..frame).map(|index| {
            let turn = std::f64::consts::TAU * index as f64 / frame as f64;
            ((0.5 - 0.5 * turn.cos()) / 32768.0) as f32
        });
        // The halves are not halved when the spectrum is put together, so the weights are.
        let mel =
            Mel::new(options.mel_bands, options.lowest_hz, options.highest_hz, length / 2 + 1, options.rate_hz, 0.5);
        let twiddles = mel.used.clone().map(|bin| {
            let (sin, cos) = (-std::f64::consts::TAU * bin as f64 / length as f64).sin_cos();
            Complex32::new(sin as f32, -cos as f32)
        });
        Ok(Self {
            frame,
            step: options.step_samples(),
            window: window.collect(),
            fft: FftPlanner::new().plan_fft_forward(length / 2),
            twiddles: twiddles.collect(),
            mel,
            options: options.clone(),
        })
    }

    /// What kind it makes.
    pub fn options(&self) -> &SpectrogramOptions {
        &self.options
    }

    /// How many frames `samples` give: 1 + ⌊(samples − frame) / step⌋, none where they are fewer than a frame.
    pub fn frames(&self, samples: usize) -> usize {
        samples.checked_sub(self.frame).map_or(0, |rest| 1 + rest / self.step)
    }

    /// How many mel bands a frame has.
    pub fn bands(&self) -> usize {
        self.mel.bands()
    }

    /// Writes the spectrogram of one channel, frame after frame of [`Spectrogram::bands`] numbers.
    pub fn run(&self, samples: &[i16], output: &mut [f32], buffers: &mut SpectrogramBuffers) -> Result<()> {
        let (frames, bands) = (self.frames(samples.len()), self.bands());
        if output.len() != frames * bands {
            return Err(Error::usage("the spectrogram does not fit the output", frames * bands, output.len()));
        }
        let half = self.fft.len();
        // One more than the transform has, so that the bin `half` can be read as what it is, bin 0 again.
        buffers.spectrum.resize(half + 1, Complex32::ZERO);
        buffers.scratch.resize(self.fft.get_inplace_scratch_len(), Complex32::ZERO);
        buffers.magnitudes.resize(self.mel.used.len(), 0.0);
        for (index, row) in output.chunks_exact_mut(bands).enumerate() {
            let frame = &samples[index * self.step..][..self.frame];
            self.load(frame, &mut buffers.spectrum);
            self.fft.process_with_scratch(&mut buffers.spectrum[..half], &mut buffers.scratch);
            buffers.spectrum[half] = buffers.spectrum[0];
            self.measure(&buffers.spectrum, &mut buffers.magnitudes);
            self.mel.apply(&buffers.magnitudes, row);
            for sum in row {
                *sum = (*sum + self.options.log_offset).ln();
            }
        }
        Ok(())
    }

    /// Windows a frame, in pairs of samples.
    fn load(&self, frame: &[i16], spectrum: &mut [Complex32]) {
        let (filled, padding) = spectrum.split_at_mut(self.frame.div_ceil(2));
        let (samples, last_sample) = frame.as_chunks::<2>();
        let (window, last_window) = self.window.as_chunks::<2>();
        for (slot, (samples, window)) in filled.iter_mut().zip(samples.iter().zip(window)) {
            *slot = Complex32::new(f32::from(samples[0]) * window[0], f32::from(samples[1]) * window[1]);
        }
        if let ([sample], [window], [.., slot]) = (last_sample, last_window, filled) {
            *slot = Complex32::new(f32::from(*sample) * window, 0.0);
        }
        padding.fill(Complex32::ZERO);
    }

    /// Twice the magnitude of each used bin.
    ///
    /// Of the half-length transform Z of length h, with a = Z\[k\] and b the conjugate of Z\[h − k\], the spectrum is
    /// X\[k\] = (a + b)/2 − i·e^(−2πik/2h)·(a − b)/2.
    fn measure(&self, spectrum: &[Complex32], magnitudes: &mut [f32]) {
        let half = spectrum.len() - 1;
        let used = &self.mel.used;
        let mirrored = spectrum[half + 1 - used.end..=half - used.start].iter().rev();
        let bins = spectrum[used.clone()].iter().zip(mirrored).zip(&self.twiddles);
        for (magnitude, ((a, mirror), twiddle)) in magnitudes.iter_mut().zip(bins) {
            let (even_re, even_im) = (a.re + mirror.re, a.im - mirror.im);
            let (odd_re, odd_im) = (a.re - mirror.re, a.im + mirror.im);
            let re = even_re + (twiddle.re * odd_re - twiddle.im * odd_im);
            let im = even_im + (twiddle.re * odd_im + twiddle.im * odd_re);
            *magnitude = (re * re + im * im).sqrt();
        }
    }
}
