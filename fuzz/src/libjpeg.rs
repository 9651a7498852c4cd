//! The bare libjpeg-turbo, as a judge: `foreign/libjpeg.c` behind one function.

use std::ffi::{CStr, c_char, c_int};

// Where the library is that the C file calls.
use turbojpeg_sys as _;

/// What the library found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Its pixels, if it came to the end, whatever it warned of.
    pub pixels: Option<Vec<u8>>,
    /// Width and height.
    pub size: (usize, usize),
    /// Warnings about a header that is odd but means one thing.
    pub harmless: u32,
    /// All other warnings.
    pub harmful: u32,
    /// The first harmful warning, or the error.
    pub message: String,
    /// Whether the image was not looked at: larger than asked for, or of four components.
    pub unjudged: bool,
}

impl Verdict {
    /// Whether there is nothing against the image.
    pub fn is_sound(&self) -> bool {
        self.pixels.is_some() && self.harmful == 0
    }
}

#[repr(C)]
struct Raw {
    width: u32,
    height: u32,
    harmless: u32,
    harmful: u32,
    message: [c_char; 200],
}

unsafe extern "C" {
    fn fuzz_libjpeg_decode(
        bytes: *const u8,
        length: usize,
        channels: c_int,
        pixels: *mut u8,
        max_pixels: usize,
        verdict: *mut Raw,
    ) -> c_int;
}

/// Decodes to RGB (3 channels) or brightness (1).
pub fn decode(file: &[u8], channels: usize, max_pixels: usize) -> Verdict {
    let mut pixels = vec![0; max_pixels * channels];
    let mut raw = Raw { width: 0, height: 0, harmless: 0, harmful: 0, message: [0; 200] };
    // SAFETY: the file is only read; `pixels` holds `max_pixels` pixels, and larger images are refused there; the verdict has
    // the layout of the C file's (four numbers and `JMSG_LENGTH_MAX`, 200, characters).
    let status = unsafe {
        fuzz_libjpeg_decode(file.as_ptr(), file.len(), channels as c_int, pixels.as_mut_ptr(), max_pixels, &raw mut raw)
    };
    // SAFETY: the C file ends the message with a zero.
    let message = unsafe { CStr::from_ptr(raw.message.as_ptr()) }.to_string_lossy().into_owned();
    let size = (raw.width as usize, raw.height as usize);
    pixels.truncate(size.0 * size.1 * channels);
    Verdict {
        pixels: (status == 0).then_some(pixels),
        size,
        harmless: raw.harmless,
        harmful: raw.harmful,
        message,
        unjudged: status == 2,
    }
}
