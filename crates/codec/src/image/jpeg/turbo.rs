//! libjpeg-turbo's TurboJPEG 3 interface behind two safe types.
#![expect(unsafe_code, reason = "the library is C; every call stands here with the reason why it is sound")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{self, NonNull};

use turbojpeg_sys as sys;

use super::Subsampling;
use crate::image::options::Region;

/// What the library said, and whether it went on regardless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("libjpeg-turbo: {message}")]
pub(crate) struct TurboError {
    pub(crate) message: String,
    /// A warning, after which the library can go on, though pixels may be wrong.
    warning: bool,
}

impl TurboError {
    fn fatal(message: &str) -> Self {
        Self { message: message.to_owned(), warning: false }
    }
}

/// The samples that the library writes or reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pixels {
    Rgb,
    Gray,
    Cmyk,
}

impl Pixels {
    pub(crate) const fn channels(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Gray => 1,
            Self::Cmyk => 4,
        }
    }

    const fn code(self) -> c_int {
        match self {
            Self::Rgb => sys::TJPF_TJPF_RGB,
            Self::Gray => sys::TJPF_TJPF_GRAY,
            Self::Cmyk => sys::TJPF_TJPF_CMYK,
        }
    }
}

/// One decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) pixels: Pixels,
    /// 1, 2, 4 or 8.
    pub(crate) divisor: usize,
    /// Only this part of the scaled image; its left edge must lie on an iMCU.
    pub(crate) crop: Option<Region>,
    /// Go on after warnings.
    pub(crate) accept_warnings: bool,
    pub(crate) fast_dct: bool,
    pub(crate) memory_megabytes_max: usize,
    pub(crate) scans_max: usize,
}

/// An instance of the library, either to compress or to decompress.
struct Handle(NonNull<c_void>);

// SAFETY: a TurboJPEG instance has no thread affinity; it may be used from any one thread at a time, which `&mut` grants.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle came from `tj3Init` and is destroyed once, here.
        unsafe { sys::tj3Destroy(self.0.as_ptr()) }
    }
}

impl Handle {
    fn new(kind: sys::TJINIT) -> Result<Self, TurboError> {
        // SAFETY: no preconditions; null reports failure.
        let handle = unsafe { sys::tj3Init(kind as c_int) };
        NonNull::new(handle).map(Self).ok_or_else(|| TurboError::fatal("no memory for an instance"))
    }

    fn set(&mut self, parameter: sys::TJPARAM, value: usize) -> Result<(), TurboError> {
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the handle is live; unknown parameters and values are reported, not undefined.
        let status = unsafe { sys::tj3Set(self.0.as_ptr(), parameter as c_int, value) };
        self.check(status)
    }

    fn get(&mut self, parameter: sys::TJPARAM) -> c_int {
        // SAFETY: as in `set`.
        unsafe { sys::tj3Get(self.0.as_ptr(), parameter as c_int) }
    }

    fn check(&mut self, status: c_int) -> Result<(), TurboError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the handle is live; the returned string belongs to it, is null-terminated, and is copied before the next
        // call could change it.
        let message = unsafe { CStr::from_ptr(sys::tj3GetErrorStr(self.0.as_ptr())) }.to_string_lossy().into_owned();
        // SAFETY: the handle is live.
        let warning = unsafe { sys::tj3GetErrorCode(self.0.as_ptr()) } == sys::TJERR_TJERR_WARNING as c_int;
        Err(TurboError { message, warning })
    }
}

/// Decompresses `bytes` as `job` says into `output`: rows of `job.pixels`, packed, of the whole scaled image or of the crop.
/// Returns whether the library was silent: `false` if it warned of damage and `job.accept_warnings` let it pass.
///
/// `size` is what the caller read from the header itself. An image that the library reads otherwise is refused.
pub(crate) fn decompress(bytes: &[u8], job: &Job, size: (usize, usize), output: &mut [u8]) -> Result<bool, TurboError> {
    match attempt(bytes, job, size, output, None) {
        Err(first) if first.warning && job.accept_warnings => {
            attempt(bytes, job, size, output, Some(&first)).map(|()| false)
        }
        result => result.map(|()| true),
    }
}

/// Decompresses; stops at the first warning, or continues if that is `expected`.
///
/// If it continues, information is lost: the library reports only the first warning, and reports a fatal error after it as a warning
/// as well. But it stores one message, which a fatal error replaces. So if the final message is that of the first
/// warning, nothing fatal has happened.
fn attempt(
    bytes: &[u8],
    job: &Job,
    size: (usize, usize),
    output: &mut [u8],
    expected: Option<&TurboError>,
) -> Result<(), TurboError> {
    let pass = |result: Result<(), TurboError>| match result {
        Err(error) if expected == Some(&error) => Ok(()),
        Err(error) if expected.is_some() => Err(TurboError { warning: false, ..error }),
        other => other,
    };
    // An instance retains the tables of the previous image, and would use them for one that lacks its own; after an error it
    // even continues with the previous header. So each image has its own instance.
    let mut handle = Handle::new(sys::TJINIT_TJINIT_DECOMPRESS)?;
    handle.set(sys::TJPARAM_TJPARAM_STOPONWARNING, usize::from(expected.is_none()))?;
    handle.set(sys::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
    handle.set(sys::TJPARAM_TJPARAM_FASTDCT, usize::from(job.fast_dct))?;
    handle.set(sys::TJPARAM_TJPARAM_SCANLIMIT, job.scans_max)?;
    handle.set(sys::TJPARAM_TJPARAM_MAXMEMORY, job.memory_megabytes_max.max(1))?;
    // SAFETY: pointer and length are those of a live slice, which the library only reads.
    let status = unsafe { sys::tj3DecompressHeader(handle.0.as_ptr(), bytes.as_ptr(), bytes.len() as sys::size_t) };
    pass(handle.check(status))?;
    let found = (handle.get(sys::TJPARAM_TJPARAM_JPEGWIDTH), handle.get(sys::TJPARAM_TJPARAM_JPEGHEIGHT));
    if (usize::try_from(found.0), usize::try_from(found.1)) != (Ok(size.0), Ok(size.1)) {
        return Err(TurboError::fatal("the header has two readings"));
    }
    let factor = sys::tjscalingfactor { num: 1, denom: job.divisor as c_int };
    // SAFETY: the handle is live; factors that the library lacks are reported.
    let status = unsafe { sys::tj3SetScalingFactor(handle.0.as_ptr(), factor) };
    handle.check(status)?;
    let region = job.crop.map_or(sys::tjregion { x: 0, y: 0, w: 0, h: 0 }, |crop| sys::tjregion {
        x: crop.x as c_int,
        y: crop.y as c_int,
        w: crop.width as c_int,
        h: crop.height as c_int,
    });
    // SAFETY: the handle is live and has read a header; regions outside the image are reported.
    let status = unsafe { sys::tj3SetCroppingRegion(handle.0.as_ptr(), region) };
    handle.check(status)?;
    let (width, height) = match job.crop {
        Some(crop) => (crop.width, crop.height),
        None => (size.0.div_ceil(job.divisor), size.1.div_ceil(job.divisor)),
    };
    let pitch = width * job.pixels.channels();
    if output.len() < pitch * height {
        return Err(TurboError::fatal("the output is too small"));
    }
    // SAFETY: the library writes `height` rows of `pitch` bytes: the size is what it read a moment ago from the same
    // bytes (checked above against `size`), divided by the scaling factor or cut to the region just set; `output` holds
    // that many, as checked.
    let status = unsafe {
        sys::tj3Decompress8(
            handle.0.as_ptr(),
            bytes.as_ptr(),
            bytes.len() as sys::size_t,
            output.as_mut_ptr(),
            pitch as c_int,
            job.pixels.code(),
        )
    };
    pass(handle.check(status))
}

/// How to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) quality: u8,
    pub(crate) subsampling: Subsampling,
    pub(crate) progressive: bool,
}

/// Compresses `pixels`, packed rows of `kind`.
pub(crate) fn compress(
    pixels: &[u8],
    (width, height): (usize, usize),
    kind: Pixels,
    settings: Settings,
) -> Result<Vec<u8>, TurboError> {
    let mut handle = Handle::new(sys::TJINIT_TJINIT_COMPRESS)?;
    handle.set(sys::TJPARAM_TJPARAM_QUALITY, usize::from(settings.quality))?;
    let subsampling = match (kind, settings.subsampling) {
        (Pixels::Gray, _) => sys::TJSAMP_TJSAMP_GRAY,
        (_, Subsampling::None) => sys::TJSAMP_TJSAMP_444,
        (_, Subsampling::Horizontal) => sys::TJSAMP_TJSAMP_422,
        (_, Subsampling::Both) => sys::TJSAMP_TJSAMP_420,
        (_, Subsampling::Vertical) => sys::TJSAMP_TJSAMP_440,
    };
    handle.set(sys::TJPARAM_TJPARAM_SUBSAMP, subsampling as usize)?;
    handle.set(sys::TJPARAM_TJPARAM_PROGRESSIVE, usize::from(settings.progressive))?;
    let pitch = width * kind.channels();
    let sides = (c_int::try_from(width), c_int::try_from(height), c_int::try_from(pitch));
    let (Ok(columns), Ok(rows), Ok(pitch_int)) = sides else {
        return Err(TurboError::fatal("the image is too large"));
    };
    if pixels.len() != pitch * height {
        return Err(TurboError::fatal("the pixels do not fill the image"));
    }
    let mut buffer = ptr::null_mut();
    let mut buffer_bytes = 0;
    // SAFETY: the library reads `height` rows of `pitch` bytes, which is all of `pixels`, as checked; it allocates the
    // output itself, because the pointer it is given is null.
    let status = unsafe {
        sys::tj3Compress8(
            handle.0.as_ptr(),
            pixels.as_ptr(),
            columns,
            pitch_int,
            rows,
            kind.code(),
            &raw mut buffer,
            &raw mut buffer_bytes,
        )
    };
    let result = handle.check(status).map(|()| {
        // SAFETY: on success the buffer holds `buffer_bytes` initialized bytes.
        unsafe { std::slice::from_raw_parts(buffer, buffer_bytes as usize) }.to_vec()
    });
    // SAFETY: the buffer is the library's or null, and is not used again.
    unsafe { sys::tj3Free(buffer.cast()) };
    result
}

/// Transcodes a JPEG to progressive scans: the same coefficients, without the segments that hold neither these nor their colors. An image that the
/// library warns of is refused, or its damage would be written as if it were meant.
pub(crate) fn to_progressive(bytes: &[u8], scans_max: usize) -> Result<Vec<u8>, TurboError> {
    let mut handle = Handle::new(sys::TJINIT_TJINIT_TRANSFORM)?;
    handle.set(sys::TJPARAM_TJPARAM_STOPONWARNING, 1)?;
    handle.set(sys::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
    handle.set(sys::TJPARAM_TJPARAM_SCANLIMIT, scans_max)?;
    let transform = sys::tjtransform {
        r: sys::tjregion { x: 0, y: 0, w: 0, h: 0 },
        op: sys::TJXOP_TJXOP_NONE as c_int,
        options: (sys::TJXOPT_PROGRESSIVE | sys::TJXOPT_COPYNONE) as c_int,
        data: ptr::null_mut(),
        customFilter: None,
    };
    let mut buffer = ptr::null_mut();
    let mut buffer_bytes = 0;
    // SAFETY: the library reads `bytes`, a live slice, and one transform; it allocates the output itself, because the pointer it is given is null.
    let status = unsafe {
        sys::tj3Transform(
            handle.0.as_ptr(),
            bytes.as_ptr(),
            bytes.len() as sys::size_t,
            1,
            &raw mut buffer,
            &raw mut buffer_bytes,
            &raw const transform,
        )
    };
    let result = handle.check(status).map(|()| {
        // SAFETY: on success the buffer holds `buffer_bytes` initialized bytes.
        unsafe { std::slice::from_raw_parts(buffer, buffer_bytes as usize) }.to_vec()
    });
    // SAFETY: the buffer is the library's or null, and is not used again.
    unsafe { sys::tj3Free(buffer.cast()) };
    result
}
