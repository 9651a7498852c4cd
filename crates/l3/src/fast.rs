//! The payload of a `fast` strip: four streams of bit-packed blocks.
//!
//! ```text
//! 0  bytes of the mask stream, u32     8  header stream: a byte per block, rows in order, within a row plane by plane
//! 4  bytes of the low stream, u32         mask stream, low stream, exception stream (the rest)
//! ```

use crate::{
    error::Result,
    kernel::{
        Proven,
        pack::{self, BLOCK, Cursors, Streams},
        predict,
    },
    scratch::{Deep, Scratch},
    strip::{Job, Source as Rows},
};

/// Bytes before the header stream.
const LENGTHS_BYTES: usize = 8;

/// Reads the streams of a strip.
pub(crate) struct Source {
    at: Cursors,
    /// Where each stream ends.
    ends: Cursors,
}

impl Source {
    pub(crate) fn new(job: &Job<'_>) -> Result<Self> {
        let payload = &job.data[job.payload.clone()];
        let planes = job.channels() * job.header.shape.depth().bytes();
        let headers_bytes = job.rows * planes * job.width().div_ceil(BLOCK);
        let lengths = payload.first_chunk::<LENGTHS_BYTES>().map(|bytes| u64::from_le_bytes(*bytes));
        let lengths = lengths.ok_or_else(|| job.error("fast strip", LENGTHS_BYTES, payload.len()))?;
        let (masks_bytes, low_bytes) = (lengths as u32 as usize, (lengths >> 32) as usize);
        let headers = job.payload.start + LENGTHS_BYTES;
        let masks = headers + headers_bytes;
        let low = masks + masks_bytes;
        let exceptions = low + low_bytes;
        if exceptions > job.payload.end {
            return Err(job.error("streams of a fast strip", job.payload.len(), exceptions - job.payload.start));
        }
        let at = Cursors { headers, masks, low, exceptions };
        let ends = Cursors { headers: masks, masks: low, low: exceptions, exceptions: job.payload.end };
        Ok(Self { at, ends })
    }
}

impl Rows for Source {
    fn row<S: Deep>(&mut self, job: &Job<'_>, scratch: &mut Scratch, part: predict::Part<'_>) -> Result<()> {
        let planes = job.channels() * S::BYTES;
        let residuals = &mut scratch.residuals[..planes];
        if !pack::unpack(job.level, job.data, &mut self.at, job.width(), residuals) {
            return Err(job.error("block of a fast strip", self.ends.headers, self.at.headers));
        }
        let (rows, residuals) = S::joined(scratch, job.channels(), 0..job.width());
        S::predict(job.level, part, residuals, rows);
        Ok(())
    }

    fn end(&self, job: &Job<'_>) -> Result<()> {
        let (at, ends) = (&self.at, &self.ends);
        for (what, at, end) in [
            ("end of the mask stream", at.masks, ends.masks),
            ("end of the low stream", at.low, ends.low),
            ("end of the exception stream", at.exceptions, ends.exceptions),
        ] {
            if at != end {
                return Err(job.error(what, end - job.payload.start, at - job.payload.start));
            }
        }
        Ok(())
    }
}

/// Writes the streams of a strip, row by row.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    streams: Streams,
}

impl Sink {
    /// Appends a row of one plane.
    pub(crate) fn plane_row(&mut self, level: Proven, residuals: &[u8], width: usize) {
        pack::pack(level, residuals, width, &mut self.streams);
    }

    /// Appends the strip's payload to a file and empties the streams for the next.
    pub(crate) fn finish(&mut self, file: &mut Vec<u8>) {
        let Streams { headers, masks, low, exceptions } = &mut self.streams;
        file.extend_from_slice(&(masks.len() as u32).to_le_bytes());
        file.extend_from_slice(&(low.len() as u32).to_le_bytes());
        for stream in [headers, masks, low, exceptions] {
            file.extend_from_slice(stream);
            stream.clear();
        }
    }
}
