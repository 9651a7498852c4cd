//! The strips of many files side by side, for a decoder that does all of them at once: that of a GPU.
//!
//! What a file can say wrongly before its streams are read is found here: header, strip table, checksums, model, the lengths of
//! streams and their first states. What is left to the decoder is to stay within each stream and to tell whether it was used up.

use crate::{
    decode::{DecodeOptions, Strips},
    dense,
    error::{Error, Result, reserve},
    fast,
    header::{Header, Mode},
    image::Region,
    kernel::rans::refill_order,
    strip::Job,
};

/// What begins in [`StripBatch::data`] is aligned to this.
const ALIGN_BYTES: usize = 16;
/// A strip has fewer bytes of samples than this, so that a decoder may count them with 32 bits.
const STRIP_BYTES_MAX: u64 = 1 << 30;

/// The strips of any number of files, taken apart: numbers and streams that a device can be given as they are.
#[derive(Clone, Debug, Default)]
pub struct StripBatch {
    /// The streams.
    pub data: Vec<u8>,
    /// [`Self::STRIP_NUMBERS`] for each strip: the number of its file; mode; width; first row, rows; channels, bytes per sample; color
    /// transform; predictor; then for `fast` where in `data` headers and values begin and the bytes of the values, and for `dense` the first
    /// of its `planes`, the first of its `contexts`, and the activity shifts of its channels, four bits each.
    pub strips: Vec<i64>,
    /// [`Self::PLANE_NUMBERS`] for each byte plane of a `dense` strip: where its words begin in `data` and how many they are, and the same of
    /// its escaped values.
    pub planes: Vec<i64>,
    /// 64 for each of `planes`, in the order in which states are refilled.
    pub states: Vec<i32>,
    /// 24 for each byte plane of a `dense` file: the table of each context, by its number in `tables`.
    pub contexts: Vec<i32>,
    /// 1024 for each table: symbol in bits 0 to 7, frequency in 8 to 19, index among the symbol's slots in 20 to 29.
    pub tables: Vec<i32>,
    files: i64,
}

/// Where the streams of a strip are in its file.
enum Streams {
    Fast(fast::Source),
    Dense(Box<dense::Source>),
}

impl StripBatch {
    /// How many numbers a strip has.
    pub const STRIP_NUMBERS: usize = 12;
    /// How many numbers a byte plane has.
    pub const PLANE_NUMBERS: usize = 4;

    /// Adds the strips of a file, or those that a region of it touches. After an error nothing was added, but the file has its number.
    pub fn push(&mut self, bytes: &[u8], region: Option<Region>, options: DecodeOptions) -> Result<Header> {
        let file = self.files;
        self.files += 1;
        let opened = Strips::open(bytes, options)?;
        let header = *opened.header();
        if header.mode == Mode::Classic {
            let hint = "encode it in mode fast or dense";
            return Err(Error::Unsupported { what: "mode (classic) in a batch of strips:", found: 0, hint });
        }
        let region = region.unwrap_or_else(|| Region::whole(header.shape));
        region.check(header.shape)?;
        let found = u64::from(header.strip_rows.min(header.shape.height())) * header.shape.row_bytes() as u64;
        if found >= STRIP_BYTES_MAX {
            let (what, hint) = ("bytes of the samples of a strip", "use fewer rows per strip");
            return Err(Error::Limit { what, limit: STRIP_BYTES_MAX, found, hint });
        }
        let touched = region.y / header.strip_rows..(region.y + region.height).div_ceil(header.strip_rows);
        let streams = touched.clone().map(|strip| streams(&opened, strip)).collect::<Result<Vec<_>>>()?;
        reserve(&mut self.data, bytes.len() + streams.len() * 2 * ALIGN_BYTES * 8)?;
        let (contexts, shifts) = self.add_model(&opened);
        for (strip, streams) in touched.zip(streams) {
            let [first, second, third] = match streams {
                Streams::Fast(source) => self.add_fast(&source, &job(&opened, strip)),
                Streams::Dense(source) => [self.add_dense(&source, bytes), contexts, shifts],
            };
            let (rows, shape) = (opened.rows(strip), header.shape);
            self.strips.extend([
                file,
                header.mode as i64,
                i64::from(shape.width()),
                i64::from(rows.start),
                rows.len() as i64,
                i64::from(shape.channels()),
                shape.depth().bytes() as i64,
                header.color as i64,
                header.predictor.map_or(0, |predictor| predictor as i64 + 1),
                first,
                second,
                third,
            ]);
        }
        Ok(header)
    }

    /// Adds the model of a file; where its contexts begin, and the shifts of its channels.
    fn add_model(&mut self, opened: &Strips<'_>) -> (i64, i64) {
        if opened.header().mode != Mode::Dense {
            return (0, 0);
        }
        let model = opened.model();
        let (contexts, table) = (self.contexts.len() as i64, (self.tables.len() >> 10) as i32);
        self.contexts.extend(model.map.iter().map(|&number| table + i32::from(number)));
        self.tables.extend(model.entries.iter().map(|&entry| entry as i32));
        let shifts = model.shifts.iter().enumerate().map(|(channel, &shift)| i64::from(shift) << (4 * channel));
        (contexts, shifts.sum())
    }

    fn add_fast(&mut self, source: &fast::Source, job: &Job<'_>) -> [i64; 3] {
        let values = &job.data[source.at.values..job.payload.end];
        let headers = self.add(&job.data[source.at.headers..source.at.values]);
        [headers, self.add(values), values.len() as i64]
    }

    /// Adds the byte planes of a strip; the number of the first.
    fn add_dense(&mut self, source: &dense::Source, bytes: &[u8]) -> i64 {
        let first = self.planes.len() / Self::PLANE_NUMBERS;
        for (plane, &(words_end, escapes_end)) in source.planes.iter().zip(&source.ends).take(source.used) {
            let (words, escapes) = (&bytes[plane.words..words_end], &bytes[plane.escapes..escapes_end]);
            let numbers = [self.add(words), (words.len() / 2) as i64, self.add(escapes), escapes.len() as i64];
            self.planes.extend(numbers);
            self.states.extend(refill_order().map(|lane| plane.states[lane] as i32));
        }
        first as i64
    }

    /// Adds a stream; where it begins.
    fn add(&mut self, stream: &[u8]) -> i64 {
        self.data.resize(self.data.len().next_multiple_of(ALIGN_BYTES), 0);
        let start = self.data.len();
        self.data.extend_from_slice(stream);
        start as i64
    }
}

fn job<'a>(opened: &'a Strips<'_>, strip: u32) -> Job<'a> {
    let columns = 0..opened.header().shape.width() as usize;
    opened.job(strip, 0..opened.rows(strip).len(), columns)
}

fn streams(opened: &Strips<'_>, strip: u32) -> Result<Streams> {
    opened.verify(strip)?;
    let job = job(opened, strip);
    Ok(match opened.header().mode {
        Mode::Dense => Streams::Dense(Box::new(dense::Source::new(&job)?)),
        _ => Streams::Fast(fast::Source::new(&job)?),
    })
}
