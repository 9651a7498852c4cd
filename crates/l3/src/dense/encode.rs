//! Encoding `dense`: all residuals and contexts are gathered first, the model is drafted from their histograms, and then each
//! strip is written, backwards, as rANS demands.

use super::draft;
use crate::{
    error::{Result, reserve},
    kernel::{
        Supported,
        rans::{self, ESCAPE, SLOTS, Source, Stream},
    },
    model::{CONTEXTS, Draft, Frequencies},
};

/// One byte plane: every residual with its context, and how often each occurs in each.
#[derive(Debug)]
struct Plane {
    residuals: Vec<u8>,
    contexts: Vec<u8>,
    histograms: Vec<[u32; 256]>,
}

/// Gathers an image, then writes it.
#[derive(Debug)]
pub(crate) struct Sink {
    width: usize,
    planes: Vec<Plane>,
    streams: Vec<Stream>,
}

impl Sink {
    pub(crate) fn new(width: usize, planes: usize, rows: usize) -> Result<Self> {
        let plane = |_| {
            let (mut residuals, mut contexts) = (Vec::new(), Vec::new());
            reserve(&mut residuals, width * rows)?;
            reserve(&mut contexts, width * rows)?;
            Ok(Plane { residuals, contexts, histograms: vec![[0; 256]; CONTEXTS] })
        };
        let streams = vec![Stream::default(); planes];
        Ok(Self { width, planes: (0..planes).map(plane).collect::<Result<_>>()?, streams })
    }

    /// Appends a row of one plane: residuals in coding order, each with its context within the plane.
    pub(crate) fn plane_row(&mut self, plane: usize, residuals: &[u8], contexts: &[u8]) {
        let plane = &mut self.planes[plane];
        for (&residual, &context) in residuals.iter().zip(contexts) {
            plane.histograms[usize::from(context)][usize::from(residual)] += 1;
        }
        plane.residuals.extend_from_slice(residuals);
        plane.contexts.extend_from_slice(contexts);
    }

    /// The model for everything gathered.
    pub(crate) fn draft(&self, shifts: Vec<u8>) -> Draft {
        let histograms: Vec<&[u32; 256]> = self.planes.iter().flat_map(|plane| &plane.histograms).collect();
        draft::draft(&histograms, shifts)
    }

    /// Appends the payload of the strip with these rows to a file.
    pub(crate) fn strip(
        &mut self,
        level: Supported,
        draft: &Draft,
        codes: &[u32],
        rows: std::ops::Range<usize>,
        file: &mut Vec<u8>,
    ) {
        let samples = rows.start * self.width..rows.end * self.width;
        for (index, (plane, stream)) in self.planes.iter().zip(&mut self.streams).enumerate() {
            let mut map = [0; 64];
            map[..CONTEXTS].copy_from_slice(&draft.map[index * CONTEXTS..][..CONTEXTS]);
            let (residuals, contexts) = (&plane.residuals[samples.clone()], &plane.contexts[samples.clone()]);
            let source = Source { residuals, contexts, map: &map, codes, width: self.width };
            rans::encode(level, &source, stream);
        }
        for stream in &self.streams {
            file.extend_from_slice(&(stream.words().len() as u32).to_le_bytes());
            file.extend_from_slice(&(stream.escapes().len() as u32).to_le_bytes());
        }
        for stream in &self.streams {
            file.extend(stream.states.iter().flat_map(|state| state.to_le_bytes()));
            let start = file.len();
            file.resize(start + 2 * stream.words().len(), 0);
            for (bytes, word) in file[start..].as_chunks_mut::<2>().0.iter_mut().zip(stream.words()) {
                *bytes = word.to_le_bytes();
            }
            file.extend_from_slice(stream.escapes());
        }
    }
}

/// How to encode each value with each table; a value without slots has the escape's.
pub(crate) fn codes(tables: &[Frequencies]) -> Vec<u32> {
    let mut codes = Vec::with_capacity(tables.len() * 256);
    for frequencies in tables {
        // The escape's slots come first, as in the model's bytes.
        let escape = u32::from(frequencies[usize::from(ESCAPE)]);
        let mut start = escape;
        for (value, &frequency) in frequencies.iter().enumerate() {
            if frequency == 0 || value == usize::from(ESCAPE) {
                codes.push(rans::code(escape, 0, true));
            } else {
                codes.push(rans::code(u32::from(frequency), start, false));
                start += u32::from(frequency);
            }
        }
        debug_assert_eq!(start as usize, SLOTS, "frequencies fill the table");
    }
    codes
}
