//! The payload of a `fast` strip: two streams of bit-packed groups.
//!
//! ```text
//! 0  header stream: three bytes per block of 64 values, rows in order, within a row plane by plane
//!    value stream (the rest)
//! ```

use crate::{
    error::Result,
    kernel::{
        Supported,
        pack::{self, BLOCK, BLOCK_HEADER_BYTES, Cursors, Streams},
        predict,
    },
    scratch::{Deep, Scratch},
    strip::{Job, Source as Rows},
};

/// Reads the streams of a strip.
pub(crate) struct Source {
    pub(crate) at: Cursors,
}

impl Source {
    pub(crate) fn new(job: &Job<'_>) -> Result<Self> {
        let planes = job.channels() * job.header.shape.depth().bytes();
        let headers_bytes = job.rows * planes * job.width().div_ceil(BLOCK) * BLOCK_HEADER_BYTES;
        if headers_bytes > job.payload.len() {
            return Err(job.error("headers of a fast strip", headers_bytes, job.payload.len()));
        }
        let headers = job.payload.start;
        Ok(Self { at: Cursors { headers, values: headers + headers_bytes } })
    }
}

impl Rows for Source {
    fn row<S: Deep>(&mut self, job: &Job<'_>, scratch: &mut Scratch, part: predict::Part<'_>) -> Result<()> {
        let planes = job.channels() * S::BYTES;
        let residuals = &mut scratch.residuals[..planes];
        if !pack::unpack(job.level, job.data, &mut self.at, job.width(), residuals) {
            return Err(job.error("block of a fast strip", job.payload.end, self.at.values));
        }
        let (rows, residuals) = S::joined(scratch, job.channels(), 0..job.width());
        S::predict(job.level, part, residuals, rows);
        Ok(())
    }

    fn end(&self, job: &Job<'_>) -> Result<()> {
        let (at, end) = (self.at.values - job.payload.start, job.payload.len());
        if at == end { Ok(()) } else { Err(job.error("end of the value stream", end, at)) }
    }
}

/// Writes the streams of a strip, row by row.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    streams: Streams,
}

impl Sink {
    /// Appends a row of one plane.
    pub(crate) fn plane_row(&mut self, level: Supported, residuals: &[u8], width: usize) {
        pack::pack(level, residuals, width, &mut self.streams);
    }

    /// Appends the strip's payload to a file and empties the streams for the next.
    pub(crate) fn finish(&mut self, file: &mut Vec<u8>) {
        let Streams { headers, values } = &mut self.streams;
        for stream in [headers, values] {
            file.extend_from_slice(stream);
            stream.clear();
        }
    }
}
