//! Audio: MP3, FLAC and WAV to 16-bit samples, and samples to a log-mel spectrogram.
//!
//! [`decode`] decodes; the content determines the format, never a file name. [`Resampler`] converts audio to another sample rate.
//! [`Spectrogram`] computes from the samples what speech models are trained on.
//!
//! ```
//! use forebay_codec::audio::{AudioOptions, Spectrogram, SpectrogramBuffers, SpectrogramOptions, decode};
//!
//! // Six silent frames of MP3: 44.1 kHz, one channel, 128 kbit/s.
//! let mut frame = vec![0; 417];
//! frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0xc4]);
//! let file = frame.repeat(6);
//!
//! let mut samples = Vec::new();
//! let info = decode(&file, &AudioOptions::default(), &mut samples)?;
//! assert_eq!((info.rate_hz, samples.len()), (44_100, 6 * 1152));
//!
//! let spectrogram = Spectrogram::new(&SpectrogramOptions { rate_hz: info.rate_hz, ..SpectrogramOptions::default() })?;
//! let mut output = vec![0.0; spectrogram.frames(samples.len()) * spectrogram.bands()];
//! spectrogram.run(&samples, &mut output, &mut SpectrogramBuffers::default())?;
//! assert_eq!(output[0], 1e-8_f32.ln());
//! # Ok::<(), forebay_codec::Error>(())
//! ```
//!
//! [`decode`] always returns `int16`, as PRESTO's audio pipelines do:
//!
//! | stored | becomes |
//! |---|---|
//! | FLAC of up to 16 bit | the same numbers, shifted to 16 bit if there are fewer |
//! | FLAC of 17 to 32 bit | the upper 16 bit (rounded down), as ffmpeg gives them |
//! | WAV of 8 to 32 bit | as FLAC; floats times 32,768, rounded to nearest (ties to even), clamped |
//! | MP3 | the decoder's float times 32,768, rounded to nearest (ties to even), clamped: as ffmpeg does it |
//! | several channels, [`Mix::Mono`] | the mean of the channels' 16-bit samples, rounded to nearest (ties to even) |
//!
//! The silence that an MP3 encoder adds before and after is removed if the file says how much it is (in a LAME or
//! Lavc header), as ffmpeg does.
//!
//! Data that is missing or damaged is an error, unless [`AudioOptions::allow_truncated`] is set: then what precedes it is returned.
//! Not an error are tags around the audio (`ID3v2` before it, `ID3v1` and `APEv2` after it) and, for
//! MP3, other bytes before the first frame and after the last one.

mod decode;
mod flac;
mod format;
mod mel;
mod mp3;
mod resample;
mod spectrogram;
mod wav;

pub use decode::{AudioHeader, AudioInfo, AudioOptions, Mix, decode, decode_within, inspect};
pub use format::AudioFormat;
pub use resample::{RATE_MAX, Resampler};
pub use spectrogram::{Spectrogram, SpectrogramBuffers, SpectrogramOptions};
