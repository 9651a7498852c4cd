//! Inflating a stream of DEFLATE, in either wrapping.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};

/// What one stream inflates to, in order. Of a damaged one, everything before the damage.
pub(crate) struct DeflateReader<R> {
    input: R,
    stream: Decompress,
    ended: bool,
    /// What is wrong after the bytes that were given last.
    failed: Option<io::Error>,
}

/// The largest window.
const WINDOW_BITS: u8 = 15;

impl<R: BufRead> DeflateReader<R> {
    pub(crate) fn gzip(input: R) -> Self {
        Self { input, stream: Decompress::new_gzip(WINDOW_BITS), ended: false, failed: None }
    }

    pub(crate) fn zlib(input: R) -> Self {
        Self { input, stream: Decompress::new(true), ended: false, failed: None }
    }

    pub(crate) fn get_ref(&self) -> &R {
        &self.input
    }

    pub(crate) fn into_inner(self) -> R {
        self.input
    }
}

impl<R: BufRead> Read for DeflateReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while !self.ended && !out.is_empty() {
            let available = self.input.fill_buf()?;
            let is_last = available.is_empty();
            let before = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(available, out, FlushDecompress::None);
            let read = (self.stream.total_in() - before.0) as usize;
            let written = (self.stream.total_out() - before.1) as usize;
            self.input.consume(read);
            self.ended = matches!(status, Ok(Status::StreamEnd));
            let failed = match status {
                Err(error) => {
                    let detail = error.message().unwrap_or("it is corrupt").to_owned();
                    Some(io::Error::new(io::ErrorKind::InvalidData, detail))
                }
                Ok(_) if !self.ended && read + written == 0 => Some(if is_last {
                    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends within the stream")
                } else {
                    io::Error::new(io::ErrorKind::InvalidData, "it does not go on")
                }),
                Ok(_) => None,
            };
            match failed {
                Some(error) if written == 0 => return Err(error),
                failed => self.failed = failed,
            }
            if written > 0 {
                return Ok(written);
            }
        }
        Ok(0)
    }
}
