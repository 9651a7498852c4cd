"""Speech: FLAC files to log-mel spectrograms, clips of different lengths in one padded batch."""

import forebay

forebay.demo_data("flac", ".", samples=6)

pipeline = (
    forebay.Pipeline.files("**/*.flac", label=None, field="audio")
    .decode_audio(sample_rate=16_000)
    .log_mel_spectrogram(sample_rate=16_000, n_fft=1024, n_mels=80, f_min=125, f_max=3800)
)
for batch in forebay.Loader(pipeline, data="clips/", batch_size=3, collate="pad"):
    frames = batch["audio_shape"][:, 0]
    assert batch["audio"].shape == (3, frames.max(), 80)
print("spectrograms of 80 mel bands")
