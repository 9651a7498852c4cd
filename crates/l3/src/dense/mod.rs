//! The payload of a `dense` strip: interleaved rANS streams, one per byte plane.
//!
//! ```text
//! 0  for each plane: words of its stream, u32; escaped values, u32
//!    for each plane: 64 states, u32 each; the words, u16 each; the escaped values, a byte each
//! ```

mod draft;
mod encode;

pub(crate) use encode::{Sink, codes};

use crate::{
    error::Result,
    kernel::{
        predict,
        rans::{self, LANES, Plane, STATE_LOW},
    },
    scratch::{Deep, Scratch},
    strip::{Job, Source as Rows},
};

/// What is decoded together: phases that do not depend on each other. They are the same kind of context.
const STAGES: [&[usize]; 3] = [&[0], &[2], &[1, 3]];
/// Bytes of a plane's lengths.
const LENGTHS_BYTES: usize = 8;
/// Bytes of a plane's states.
const STATES_BYTES: usize = 4 * LANES;

/// Reads the streams of a strip.
pub(crate) struct Source {
    /// The planes, and how many are in use.
    pub(crate) planes: [Plane; 8],
    pub(crate) used: usize,
    /// Where the words and the escapes of each plane end.
    pub(crate) ends: [(usize, usize); 8],
}

impl Source {
    pub(crate) fn new(job: &Job<'_>) -> Result<Self> {
        let payload = &job.data[job.payload.clone()];
        let used = job.channels() * job.header.shape.depth().bytes();
        let empty = Plane { states: [0; LANES], words: 0, escapes: 0 };
        let mut source = Self { planes: std::array::from_fn(|_| empty.clone()), used, ends: [(0, 0); 8] };
        let mut position = used * LENGTHS_BYTES;
        for index in 0..used {
            let lengths = payload.get(index * LENGTHS_BYTES..).and_then(|rest| rest.first_chunk());
            let lengths = lengths.map(|bytes| u64::from_le_bytes(*bytes));
            let lengths = lengths.ok_or_else(|| job.error("dense strip", position, payload.len()))?;
            let (words, escapes) = (lengths as u32 as usize * 2, (lengths >> 32) as usize);
            let states = payload.get(position..).and_then(|rest| rest.first_chunk::<STATES_BYTES>());
            let states = states.ok_or_else(|| job.error("states of a dense strip", position, payload.len()))?;
            let plane = &mut source.planes[index];
            for (state, bytes) in plane.states.iter_mut().zip(states.as_chunks::<4>().0) {
                *state = u32::from_le_bytes(*bytes);
            }
            // Only states in this range follow from each other, which kernels rely on when they compare them.
            if let Some(&state) = plane.states.iter().find(|&&state| state < STATE_LOW || state >> 16 >= STATE_LOW) {
                return Err(job.error("state of a dense strip", STATE_LOW as usize, state as usize));
            }
            plane.words = job.payload.start + position + STATES_BYTES;
            plane.escapes = plane.words + words;
            source.ends[index] = (plane.escapes, plane.escapes + escapes);
            position = plane.escapes + escapes - job.payload.start;
            if position > payload.len() {
                return Err(job.error("streams of a dense strip", payload.len(), position));
            }
        }
        if position != payload.len() {
            return Err(job.error("streams of a dense strip", position, payload.len()));
        }
        Ok(source)
    }
}

impl Source {
    /// Decodes the phases of `part`, which do not depend on each other.
    fn stage<S: Deep>(&mut self, job: &Job<'_>, scratch: &mut Scratch, part: predict::Part<'_>) -> Result<()> {
        let (channels, start, phase) = (job.channels(), part.start, part.phases[0]);
        let count = part.phases.iter().map(|&phase| part.counts[phase]).sum::<usize>();
        let error = || job.error("stream of a dense strip", job.payload.end, job.data.len());
        let mut activities = [predict::Activity::default(); 4];
        for (channel, activity) in activities[..channels].iter_mut().enumerate() {
            *activity = job.model.activity(channel, phase);
        }
        if S::BYTES == 1 {
            let coded = rans::Coded { entries: &job.model.entries, data: job.data, activities: &activities };
            let good = rans::decode_narrow(job.level, coded, &mut self.planes[..channels], part, scratch);
            return if good { Ok(()) } else { Err(error()) };
        }
        let mut tables = std::mem::take(&mut scratch.tables);
        predict::tables(job.level, part, &activities, &mut tables, S::rows(scratch));
        let mut good = true;
        for byte in 0..S::BYTES {
            let planes = byte * channels..(byte + 1) * channels;
            if byte == 1 {
                // A low byte's context is the high byte of its residual.
                for (channel, tables) in tables[..channels].iter_mut().enumerate() {
                    let numbers = job.model.activity(channels + channel, phase).tables;
                    let high = &scratch.residuals[channel][start..start + count];
                    predict::low_tables(job.level, numbers, high, &mut tables[start..]);
                }
            }
            let mut start = start;
            for &phase in part.phases {
                let (values, count) = (&mut scratch.residuals[planes.clone()], part.counts[phase]);
                let phase = rans::Phase { tables: &tables[..channels], values, start, count };
                let planes = &mut self.planes[planes.clone()];
                good &= rans::decode(job.level, &job.model.entries, job.data, planes, phase);
                start += count;
            }
        }
        scratch.tables = tables;
        if !good {
            return Err(error());
        }
        let (rows, residuals) = S::joined(scratch, channels, start..start + count);
        predict::decode(job.level, part, residuals, rows);
        Ok(())
    }
}

impl Rows for Source {
    fn row<S: Deep>(&mut self, job: &Job<'_>, scratch: &mut Scratch, part: predict::Part<'_>) -> Result<()> {
        let mut start = 0;
        for phases in STAGES {
            let part = predict::Part { phases, start, ..part };
            self.stage::<S>(job, scratch, part)?;
            start += phases.iter().map(|&phase| part.counts[phase]).sum::<usize>();
        }
        Ok(())
    }

    fn end(&self, job: &Job<'_>) -> Result<()> {
        for (plane, &(words, escapes)) in self.planes.iter().zip(&self.ends).take(self.used) {
            for (what, at, end) in
                [("end of a word stream", plane.words, words), ("end of an escape stream", plane.escapes, escapes)]
            {
                if at != end {
                    return Err(job.error(what, end - job.payload.start, at - job.payload.start));
                }
            }
            if let Some(&state) = plane.states.iter().find(|&&state| state != STATE_LOW) {
                return Err(job.error("final state", STATE_LOW as usize, state as usize));
            }
        }
        Ok(())
    }
}
