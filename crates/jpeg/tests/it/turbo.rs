//! libjpeg-turbo, to compare with and to make files.
#![expect(unsafe_code, reason = "the library is C; all calls are here, each with the reason why it is sound")]

use std::ffi::{CStr, c_int, c_void};

use forebay_jpeg::Color;
use turbojpeg_sys as sys;

/// An instance of the library.
struct Handle(*mut c_void);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from `tj3Init` and is destroyed once, here.
        unsafe { sys::tj3Destroy(self.0) }
    }
}

impl Handle {
    fn new(kind: sys::TJINIT) -> Self {
        // SAFETY: no preconditions.
        let handle = unsafe { sys::tj3Init(kind as c_int) };
        assert!(!handle.is_null());
        Self(handle)
    }

    fn set(&self, parameter: sys::TJPARAM, value: usize) {
        // SAFETY: the handle is live.
        assert_eq!(unsafe { sys::tj3Set(self.0, parameter as c_int, value as c_int) }, 0, "{}", self.message());
    }

    fn get(&self, parameter: sys::TJPARAM) -> usize {
        // SAFETY: the handle is live.
        unsafe { sys::tj3Get(self.0, parameter as c_int) as usize }
    }

    fn message(&self) -> String {
        // SAFETY: the handle is live; the string belongs to it and is copied at once.
        unsafe { CStr::from_ptr(sys::tj3GetErrorStr(self.0)) }.to_string_lossy().into_owned()
    }
}

/// A decoded image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<u8>,
}

/// Decodes with a fresh instance that stops at the first warning.
pub(crate) fn decode(bytes: &[u8], color: Color) -> Result<Picture, String> {
    let handle = Handle::new(sys::TJINIT_TJINIT_DECOMPRESS);
    handle.set(sys::TJPARAM_TJPARAM_STOPONWARNING, 1);
    let length = bytes.len() as sys::size_t;
    // SAFETY: pointer and length are those of a live slice.
    if unsafe { sys::tj3DecompressHeader(handle.0, bytes.as_ptr(), length) } != 0 {
        return Err(handle.message());
    }
    let (width, height) = (handle.get(sys::TJPARAM_TJPARAM_JPEGWIDTH), handle.get(sys::TJPARAM_TJPARAM_JPEGHEIGHT));
    if width * height > 1 << 26 {
        return Err("too large for a test".to_owned());
    }
    let code = match color {
        Color::Rgb => sys::TJPF_TJPF_RGB,
        Color::Gray => sys::TJPF_TJPF_GRAY,
    };
    let pitch = width * color.channels();
    let mut pixels = vec![0; pitch * height];
    // SAFETY: as before; the output holds all rows.
    let status =
        unsafe { sys::tj3Decompress8(handle.0, bytes.as_ptr(), length, pixels.as_mut_ptr(), pitch as c_int, code) };
    if status == 0 { Ok(Picture { width, height, pixels }) } else { Err(handle.message()) }
}

/// How to encode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) quality: usize,
    pub(crate) sampling: sys::TJSAMP,
    /// MCUs between restart markers.
    pub(crate) restart: usize,
    pub(crate) optimized: bool,
    pub(crate) progressive: bool,
    pub(crate) rgb: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let sampling = sys::TJSAMP_TJSAMP_420;
        Self { quality: 90, sampling, restart: 0, optimized: false, progressive: false, rgb: false }
    }
}

/// Encodes packed RGB pixels.
pub(crate) fn encode(pixels: &[u8], (width, height): (usize, usize), settings: Settings) -> Vec<u8> {
    assert_eq!(pixels.len(), width * height * 3);
    let handle = Handle::new(sys::TJINIT_TJINIT_COMPRESS);
    handle.set(sys::TJPARAM_TJPARAM_QUALITY, settings.quality);
    handle.set(sys::TJPARAM_TJPARAM_SUBSAMP, settings.sampling as usize);
    handle.set(sys::TJPARAM_TJPARAM_OPTIMIZE, usize::from(settings.optimized));
    handle.set(sys::TJPARAM_TJPARAM_PROGRESSIVE, usize::from(settings.progressive));
    handle.set(sys::TJPARAM_TJPARAM_RESTARTBLOCKS, settings.restart);
    if settings.rgb {
        handle.set(sys::TJPARAM_TJPARAM_COLORSPACE, sys::TJCS_TJCS_RGB as usize);
    }
    let mut buffer = std::ptr::null_mut();
    let mut length = 0;
    // SAFETY: the library reads `height` rows of `3 * width` bytes, which is all of `pixels`; it allocates the output.
    let status = unsafe {
        let (columns, rows) = (width as c_int, height as c_int);
        let (from, format) = (pixels.as_ptr(), sys::TJPF_TJPF_RGB);
        sys::tj3Compress8(handle.0, from, columns, 3 * columns, rows, format, &raw mut buffer, &raw mut length)
    };
    assert_eq!(status, 0, "{}", handle.message());
    // SAFETY: the buffer holds as many initialized bytes; it is the library's to free, once.
    unsafe {
        let bytes = std::slice::from_raw_parts(buffer, length as usize).to_vec();
        sys::tj3Free(buffer.cast());
        bytes
    }
}
