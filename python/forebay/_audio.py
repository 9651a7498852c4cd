"""Steps that work on audio, with the names of torchaudio and audiomentations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

__all__ = ["AudioSteps"]


class AudioSteps:
    """The steps of a pipeline that work on waveforms and spectrograms."""

    __slots__ = ()

    def step(self, op: str, **parameters: Any) -> Self:
        """Add a step by its `op`."""
        raise NotImplementedError

    def decode_audio(
        self,
        *,
        mix: Literal["mono", "as-stored"] = "mono",
        sample_rate: int | None = None,
        allow_truncated: bool = False,
        max_samples: int | None = None,
        **options: Any,
    ) -> Self:
        """Decode MP3, FLAC or WAV to `int16[samples]`, or `[samples, channels]` with `mix="as-stored"`.

        Files of another rate than `sample_rate` are resampled, as torchaudio does it.
        """
        return self.step(
            "decode_audio", mix=mix, sample_rate=sample_rate, allow_truncated=allow_truncated, max_samples=max_samples, **options
        )

    def log_mel_spectrogram(
        self,
        *,
        sample_rate: int = 16_000,
        window_milliseconds: int = 20,
        hop_milliseconds: int = 10,
        n_fft: int = 1024,
        n_mels: int = 80,
        f_min: float = 125.0,
        f_max: float = 3800.0,
        log_offset: float = 1e-8,
        **options: Any,
    ) -> Self:
        """Compute the log-mel spectrogram of one channel: `float32[frames, n_mels]`, with bands from `f_min` to `f_max` hertz."""
        return self.step(
            "log_mel_spectrogram",
            sample_rate=sample_rate,
            window_milliseconds=window_milliseconds,
            hop_milliseconds=hop_milliseconds,
            n_fft=n_fft,
            n_mels=n_mels,
            f_min=f_min,
            f_max=f_max,
            log_offset=log_offset,
            **options,
        )

    def mfcc(self, n_mfcc: int = 40, **options: Any) -> Self:
        """Compute cepstral coefficients of a log-mel spectrogram: `float32[frames, n_mfcc]`."""
        return self.step("mfcc", n_mfcc=n_mfcc, **options)

    def random_time_crop(self, length: int, *, pad_value: float = 0.0, **options: Any) -> Self:
        """Crop a random part of `length` samples or frames. What is shorter is padded at its end with `pad_value`."""
        return self.step("random_time_crop", length=length, pad_value=pad_value, **options)

    def random_gain(self, min_gain_db: float = -12.0, max_gain_db: float = 12.0, p: float = 0.5, **options: Any) -> Self:
        """Make a waveform louder or softer by a random number of decibels, with probability `p`."""
        return self.step("random_gain", min_gain_db=min_gain_db, max_gain_db=max_gain_db, p=p, **options)

    def add_gaussian_snr(self, min_snr_db: float = 5.0, max_snr_db: float = 40.0, p: float = 0.5, **options: Any) -> Self:
        """Add white noise at a random ratio of signal to noise, with probability `p`."""
        return self.step("add_gaussian_snr", min_snr_db=min_snr_db, max_snr_db=max_snr_db, p=p, **options)

    def add_background_noise(
        self,
        sounds_path: str | os.PathLike[str],
        min_snr_db: float = 3.0,
        max_snr_db: float = 30.0,
        p: float = 0.5,
        *,
        sample_rate: int | None = None,
        **options: Any,
    ) -> Self:
        """Add a random part of a random recording of the folder `sounds_path`, with probability `p`.

        `sample_rate` is that of the audio: recordings with a different one are resampled.
        """
        return self.step(
            "add_background_noise",
            sounds_path=os.fspath(sounds_path),
            min_snr_db=min_snr_db,
            max_snr_db=max_snr_db,
            p=p,
            sample_rate=sample_rate,
            **options,
        )

    def speed_perturbation(self, factors: Sequence[float] = (0.9, 1.0, 1.1), **options: Any) -> Self:
        """Play a waveform faster or slower by one of `factors`: 1.1 is faster, shorter and higher."""
        return self.step("speed_perturbation", factors=list(factors), **options)

    def spec_augment(
        self,
        n_time_masks: int,
        time_mask_param: int,
        n_freq_masks: int,
        freq_mask_param: int,
        p: float = 1.0,
        zero_masking: bool = False,
        **options: Any,
    ) -> Self:
        """Mask ranges of time and frequency of a spectrogram.

        Parameters
        ----------
        n_time_masks, n_freq_masks
            Number of ranges.
        time_mask_param, freq_mask_param
            Maximum number of frames, or bands, of one.
        p
            Maximum share of all frames, or bands, of one.
        zero_masking
            Mask with 0 instead of the mean.
        """
        return self.step(
            "spec_augment",
            n_time_masks=n_time_masks,
            time_mask_param=time_mask_param,
            n_freq_masks=n_freq_masks,
            freq_mask_param=freq_mask_param,
            p=p,
            zero_masking=zero_masking,
            **options,
        )
