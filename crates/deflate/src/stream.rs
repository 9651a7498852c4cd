//! zlib's stream.
#![expect(unsafe_code, reason = "the library is C; all calls are here, each with the reason why it is sound")]

use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

use libz_sys as sys;

use crate::{Error, Flush, Parameters, Strategy, Wrapper};

/// A stream that compresses.
pub struct Deflate {
    /// In a box, because zlib's state points back to it. Never taken as a value: the functions in it that allocate may not be
    /// null in Rust's eyes, and null is how zlib is asked for its own.
    stream: Box<MaybeUninit<sys::z_stream>>,
}

// SAFETY: The stream and all it points to belong to this value alone, are reached only through `&mut self`, and were allocated
// by `malloc`, which does not mind what thread gives them back. zlib keeps nothing by thread.
unsafe impl Send for Deflate {}

/// What a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes of the input were consumed.
    pub read: usize,
    /// How many bytes of the output were filled.
    pub written: usize,
    /// Whether the stream has ended.
    pub ended: bool,
}

impl Deflate {
    /// A new stream.
    pub fn new(parameters: Parameters, wrapper: Wrapper) -> Result<Self, Error> {
        let Parameters { level, strategy, window_bits, memory_level } = parameters;
        if !Parameters::LEVELS.contains(&level)
            || !Parameters::WINDOW_BITS.contains(&window_bits)
            || !Parameters::MEMORY_LEVELS.contains(&memory_level)
        {
            return Err(Error::Parameters);
        }
        let window_bits = match wrapper {
            Wrapper::Raw => -c_int::from(window_bits),
            Wrapper::Zlib => c_int::from(window_bits),
        };
        let mut stream = Box::new(MaybeUninit::<sys::z_stream>::zeroed());
        // SAFETY: The pointer is a live box's, of the size that is passed; all-zero is what zlib asks for: no input, its own
        // allocator. The version is a text with a NUL at its end, and static.
        let status = unsafe {
            sys::deflateInit2_(
                stream.as_mut_ptr(),
                c_int::from(level),
                sys::Z_DEFLATED,
                window_bits,
                c_int::from(memory_level),
                strategy_number(strategy),
                sys::zlibVersion(),
                size_of::<sys::z_stream>() as c_int,
            )
        };
        match status {
            sys::Z_OK => Ok(Self { stream }),
            sys::Z_MEM_ERROR => Err(Error::Memory),
            _ => Err(Error::Parameters),
        }
    }

    /// Compresses some of `input` into `output`, as much as fits. Where `output` was filled there may be more to come: call again, with the rest of
    /// the input and the same `flush`.
    pub fn run(&mut self, input: &[u8], output: &mut [u8], flush: Flush) -> Progress {
        // zlib counts in 32 bits. What is left over comes with the next call, so it must not be the end yet.
        let given = input.len().min(c_uint::MAX as usize);
        let space = output.len().min(c_uint::MAX as usize);
        let flush = match flush {
            _ if given < input.len() => sys::Z_NO_FLUSH,
            Flush::None => sys::Z_NO_FLUSH,
            Flush::Full => sys::Z_FULL_FLUSH,
            Flush::Finish => sys::Z_FINISH,
        };
        let stream = self.stream.as_mut_ptr();
        // SAFETY: The stream was initialized by `new` and not ended since. Its input and output are live slices of at least the
        // lengths that are stored; zlib only reads the first, and only writes the second. No reference to the structure is made, only
        // places in it are read and written. Neither pointer is kept beyond the call: the next one replaces both.
        unsafe {
            (&raw mut (*stream).next_in).write(input.as_ptr().cast_mut());
            (&raw mut (*stream).avail_in).write(given as c_uint);
            (&raw mut (*stream).next_out).write(output.as_mut_ptr());
            (&raw mut (*stream).avail_out).write(space as c_uint);
            let status = sys::deflate(stream, flush);
            Progress {
                read: given - (&raw const (*stream).avail_in).read() as usize,
                written: space - (&raw const (*stream).avail_out).read() as usize,
                ended: status == sys::Z_STREAM_END,
            }
        }
    }

    /// Begins anew, with the same parameters.
    pub fn reset(&mut self) {
        // SAFETY: The stream was initialized by `new` and not ended since.
        unsafe { sys::deflateReset(self.stream.as_mut_ptr()) };
    }
}

impl Drop for Deflate {
    fn drop(&mut self) {
        // SAFETY: The stream was initialized by `new`, and nobody can use it after this.
        unsafe { sys::deflateEnd(self.stream.as_mut_ptr()) };
    }
}

fn strategy_number(strategy: Strategy) -> c_int {
    match strategy {
        Strategy::Default => sys::Z_DEFAULT_STRATEGY,
        Strategy::Filtered => sys::Z_FILTERED,
        Strategy::HuffmanOnly => sys::Z_HUFFMAN_ONLY,
        Strategy::Rle => sys::Z_RLE,
        Strategy::Fixed => sys::Z_FIXED,
    }
}
