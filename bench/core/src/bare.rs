//! The bare libraries, used as directly as can be.

use std::ptr::NonNull;

use turbojpeg_sys as sys;

use crate::Outcome;

/// libjpeg-turbo, one instance reused.
pub(crate) struct Turbo(NonNull<std::ffi::c_void>);

impl Turbo {
    pub(crate) fn new() -> Outcome<Self> {
        // SAFETY: takes no pointers; returns null on failure.
        let handle = unsafe { sys::tj3Init(sys::TJINIT_TJINIT_DECOMPRESS as i32) };
        Ok(Self(NonNull::new(handle).ok_or("libjpeg-turbo could not start")?))
    }

    /// Decodes to RGB at 1/`divisor` into `output`, which grows as needed; width and height.
    pub(crate) fn decode(&mut self, file: &[u8], divisor: i32, output: &mut Vec<u8>) -> Outcome<(usize, usize)> {
        let handle = self.0.as_ptr();
        let scaled = |length: i32| ((length + divisor - 1) / divisor) as usize;
        // SAFETY: the handle is live, pointer and length are those of a live slice, and the output has room for every row:
        // `width * height * 3` bytes of the size that the library itself reports for this file and scaling factor.
        unsafe {
            if sys::tj3DecompressHeader(handle, file.as_ptr(), file.len() as sys::size_t) != 0 {
                return Err("not a JPEG".into());
            }
            let width = scaled(sys::tj3Get(handle, sys::TJPARAM_TJPARAM_JPEGWIDTH as i32));
            let height = scaled(sys::tj3Get(handle, sys::TJPARAM_TJPARAM_JPEGHEIGHT as i32));
            sys::tj3SetScalingFactor(handle, sys::tjscalingfactor { num: 1, denom: divisor });
            if output.len() < width * height * 3 {
                output.resize(width * height * 3, 0);
            }
            let format = sys::TJPF_TJPF_RGB;
            let status =
                sys::tj3Decompress8(handle, file.as_ptr(), file.len() as sys::size_t, output.as_mut_ptr(), 0, format);
            if status != 0 {
                return Err("a JPEG that does not decode".into());
            }
            Ok((width, height))
        }
    }
}

impl Drop for Turbo {
    fn drop(&mut self) {
        // SAFETY: made by tj3Init, destroyed once.
        unsafe { sys::tj3Destroy(self.0.as_ptr()) }
    }
}
