//! libwebp behind safe functions.
#![expect(unsafe_code, reason = "the library is C; all calls are here, each with the reason why it is sound")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;

use libwebp_sys as sys;
use sys::VP8StatusCode as Status;

/// What the library says an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) alpha: bool,
    pub(crate) animated: bool,
    /// Whether it is stored losslessly, according to the first frame.
    pub(crate) lossless: bool,
}

/// Why the library refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebPError {
    #[error("libwebp: not enough data")]
    NotEnoughData,
    #[error("libwebp: out of memory")]
    OutOfMemory,
    #[error("libwebp: unsupported feature")]
    UnsupportedFeature,
    #[error("libwebp: the bitstream is damaged")]
    Bitstream,
    #[error("libwebp: the encoder reported `{0}`")]
    Encoding(u32),
}

fn check(status: Status) -> Result<(), WebPError> {
    match status {
        Status::VP8_STATUS_OK => Ok(()),
        Status::VP8_STATUS_SUSPENDED | Status::VP8_STATUS_NOT_ENOUGH_DATA => Err(WebPError::NotEnoughData),
        Status::VP8_STATUS_OUT_OF_MEMORY => Err(WebPError::OutOfMemory),
        Status::VP8_STATUS_UNSUPPORTED_FEATURE => Err(WebPError::UnsupportedFeature),
        _ => Err(WebPError::Bitstream),
    }
}

/// Reads the header.
pub(crate) fn features(bytes: &[u8]) -> Result<Features, WebPError> {
    let mut features = MaybeUninit::<sys::WebPBitstreamFeatures>::zeroed();
    // SAFETY: pointer and length are a live slice's, which is only read; the structure is plain integers, so all-zero is a
    // valid value of it whatever the call writes.
    let (status, features) = unsafe {
        let status = sys::WebPGetFeatures(bytes.as_ptr(), bytes.len(), features.as_mut_ptr());
        (status, features.assume_init())
    };
    check(status)?;
    Ok(Features {
        width: features.width as usize,
        height: features.height as usize,
        alpha: features.has_alpha != 0,
        animated: features.has_animation != 0,
        lossless: features.format == 2,
    })
}

/// The layout of an output of packed rows: color mode, stride and size in bytes, if the library can address it.
fn packed(
    width: usize,
    height: usize,
    channels: usize,
    output: &[u8],
) -> Result<(sys::WEBP_CSP_MODE, c_int), WebPError> {
    let mode = if channels == 4 { sys::WEBP_CSP_MODE::MODE_RGBA } else { sys::WEBP_CSP_MODE::MODE_RGB };
    let stride = c_int::try_from(width * channels).map_err(|_| WebPError::OutOfMemory)?;
    if output.len() < width * channels * height {
        return Err(WebPError::OutOfMemory);
    }
    Ok((mode, stride))
}

/// Decodes a still image into `output`: packed rows of `channels`, 3 or 4.
pub(crate) fn decode(bytes: &[u8], features: Features, channels: usize, output: &mut [u8]) -> Result<(), WebPError> {
    let (mode, stride) = packed(features.width, features.height, channels, output)?;
    let mut config = sys::WebPDecoderConfig::new().map_err(|()| WebPError::UnsupportedFeature)?;
    config.output.colorspace = mode;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = sys::WebPRGBABuffer { rgba: output.as_mut_ptr(), stride, size: output.len() };
    // SAFETY: the input is a live slice, only read. The output is external memory of the stated stride and size, which the
    // library checks against the image before it writes; it outlives the call.
    let status = unsafe { sys::WebPDecode(bytes.as_ptr(), bytes.len(), &raw mut config) };
    // SAFETY: the configuration is initialized; external memory is left alone.
    unsafe { sys::WebPFreeDecBuffer(&raw mut config.output) };
    check(status)
}

/// Decodes as many rows as there are data for, and says how many.
pub(crate) fn decode_partial(
    bytes: &[u8],
    features: Features,
    channels: usize,
    output: &mut [u8],
) -> Result<usize, WebPError> {
    let (mode, stride) = packed(features.width, features.height, channels, output)?;
    // SAFETY: the output is external memory of the stated size and stride, which the library checks against the image
    // before it writes; it outlives the decoder, which is deleted below.
    let decoder = unsafe { sys::WebPINewRGB(mode, output.as_mut_ptr(), output.len(), stride) };
    if decoder.is_null() {
        return Err(WebPError::OutOfMemory);
    }
    let (mut rows, mut width, mut height, mut row_bytes) = (0, 0, 0, 0);
    // SAFETY: the decoder is live and `bytes` outlives it; the four integers are live; the decoder is deleted once.
    let (status, known) = unsafe {
        let status = sys::WebPIUpdate(decoder, bytes.as_ptr(), bytes.len());
        let pixels = sys::WebPIDecGetRGB(decoder, &raw mut rows, &raw mut width, &raw mut height, &raw mut row_bytes);
        sys::WebPIDelete(decoder);
        (status, !pixels.is_null())
    };
    match check(status) {
        Ok(()) => Ok(features.height),
        Err(_) if known => Ok(usize::try_from(rows).unwrap_or(0).min(features.height)),
        Err(error) => Err(error),
    }
}

/// Decodes the first frame of an animation, laid on its canvas, into `output`: packed RGBA rows.
pub(crate) fn decode_first_frame(bytes: &[u8], features: Features, output: &mut [u8]) -> Result<(), WebPError> {
    let size = features.width * features.height * 4;
    let output = output.get_mut(..size).ok_or(WebPError::OutOfMemory)?;
    let data = sys::WebPData { bytes: bytes.as_ptr(), size: bytes.len() };
    // SAFETY: all-zero is a valid value of the options (a color mode of 0 exists); the call then sets the defaults.
    let mut options = unsafe { MaybeUninit::<sys::WebPAnimDecoderOptions>::zeroed().assume_init() };
    // SAFETY: the options are live and writable.
    if unsafe { sys::WebPAnimDecoderOptionsInit(&raw mut options) } == 0 {
        return Err(WebPError::UnsupportedFeature);
    }
    options.color_mode = sys::WEBP_CSP_MODE::MODE_RGBA;
    options.use_threads = 0;
    // SAFETY: data and options are live; `bytes` outlives the decoder, which is deleted below.
    let decoder = unsafe { sys::WebPAnimDecoderNew(&raw const data, &raw const options) };
    if decoder.is_null() {
        return Err(WebPError::Bitstream);
    }
    let mut info = sys::WebPAnimInfo::default();
    let (mut canvas, mut timestamp) = (ptr::null_mut(), 0);
    // SAFETY: the decoder is live. On success the canvas is the decoder's own, of the size in `info`, and is copied from
    // only if that is the size of `output`, before the decoder is deleted.
    unsafe {
        let known = sys::WebPAnimDecoderGetInfo(decoder, &raw mut info) != 0;
        let same = (info.canvas_width as usize, info.canvas_height as usize) == (features.width, features.height);
        let copied = known && same && sys::WebPAnimDecoderGetNext(decoder, &raw mut canvas, &raw mut timestamp) != 0;
        if copied {
            output.copy_from_slice(std::slice::from_raw_parts(canvas, size));
        }
        sys::WebPAnimDecoderDelete(decoder);
        if copied { Ok(()) } else { Err(WebPError::Bitstream) }
    }
}

/// How to encode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Settings {
    /// Quality 0 to 100.
    Lossy(f32),
    /// Effort 0 to 9.
    Lossless(u8),
}

/// Encodes packed rows of `channels`, 3 or 4.
pub(crate) fn encode(
    pixels: &[u8],
    (width, height): (usize, usize),
    channels: usize,
    settings: Settings,
) -> Result<Vec<u8>, WebPError> {
    const UNUSABLE: WebPError = WebPError::UnsupportedFeature;
    let mut config = sys::WebPConfig::new().map_err(|()| UNUSABLE)?;
    match settings {
        Settings::Lossy(quality) => config.quality = quality,
        Settings::Lossless(effort) => {
            // SAFETY: the configuration is live and initialized.
            if unsafe { sys::WebPConfigLosslessPreset(&raw mut config, c_int::from(effort)) } == 0 {
                return Err(UNUSABLE);
            }
            // Keep the color of transparent pixels: lossless means every sample.
            config.exact = 1;
        }
    }
    let mut picture = sys::WebPPicture::new().map_err(|()| UNUSABLE)?;
    picture.use_argb = c_int::from(matches!(settings, Settings::Lossless(_)));
    picture.width = c_int::try_from(width).map_err(|_| UNUSABLE)?;
    picture.height = c_int::try_from(height).map_err(|_| UNUSABLE)?;
    let stride = c_int::try_from(width * channels).map_err(|_| UNUSABLE)?;
    if pixels.len() != width * channels * height {
        return Err(UNUSABLE);
    }
    let mut writer = MaybeUninit::<sys::WebPMemoryWriter>::zeroed();
    // SAFETY: the writer is live and this initializes it. The import reads `height` rows of `stride` bytes, which is all of
    // `pixels`, as checked. The image and writer outlive the encoding; both are freed once, after the output is copied.
    unsafe {
        sys::WebPMemoryWriterInit(writer.as_mut_ptr());
        picture.writer = Some(sys::WebPMemoryWrite);
        picture.custom_ptr = writer.as_mut_ptr().cast();
        let import = if channels == 4 { sys::WebPPictureImportRGBA } else { sys::WebPPictureImportRGB };
        let encoded = import(&raw mut picture, pixels.as_ptr(), stride) != 0
            && sys::WebPEncode(&raw const config, &raw mut picture) != 0;
        let written = writer.assume_init();
        let result = if encoded && !written.mem.is_null() {
            Ok(std::slice::from_raw_parts(written.mem, written.size).to_vec())
        } else {
            Err(WebPError::Encoding(picture.error_code as u32))
        };
        sys::WebPPictureFree(&raw mut picture);
        sys::WebPMemoryWriterClear(writer.as_mut_ptr());
        result
    }
}
