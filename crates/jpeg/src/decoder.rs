//! From a file to pixels, one row of MCUs after the other.

use crate::entropy::{BlockPlan, Damage, GROUP, MCU_BLOCKS_MAX, Plan, Position, QUADS_MAX, Quad};
use crate::error::{Error, Result};
use crate::header::{self, Codes, Frame, Header, Space};
use crate::huffman::{Ac, Dc};
use crate::kernel::idct::{self, Quantizers};
use crate::level::{Level, Supported};
use crate::output::Output;
use crate::plane::Plane;
use crate::scan::Scan;

/// What the pixels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Color {
    /// Red, green and blue, a byte each.
    Rgb,
    /// Brightness, a byte.
    Gray,
}

impl Color {
    /// Bytes of a pixel.
    pub const fn channels(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Gray => 1,
        }
    }
}

/// A part of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// The first column.
    pub x: usize,
    /// The first row.
    pub y: usize,
    /// Columns, at least one.
    pub width: usize,
    /// Rows, at least one.
    pub height: usize,
}

/// What to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the pixels are to be.
    pub color: Color,
    /// Only this region; `None` is the full image.
    pub region: Option<Region>,
    /// Images (not regions) of more pixels are refused.
    pub max_pixels: usize,
}

impl Options {
    /// The full image, of any size.
    pub fn new(color: Color) -> Self {
        Self { color, region: None, max_pixels: usize::MAX }
    }
}

/// Reads the header of an image that this crate decodes; refuses all others.
pub fn header(bytes: &[u8]) -> Result<Header> {
    header::read(bytes).map(|frame| frame.header)
}

/// The maximum number of cached tables of earlier images: most files have the standard tables, or those of one encoder.
const TABLES_MAX: usize = 6;

/// Decodes images, reusing its memory and tables from one to the next.
#[derive(Clone, Debug)]
pub struct Decoder {
    level: Supported,
    scan: Scan,
    dc: Vec<Dc>,
    ac: Vec<Ac>,
    work: Work,
}

/// What is at work.
#[derive(Clone, Debug)]
struct Work {
    quads: Box<[Quad; QUADS_MAX]>,
    planes: [Plane; 3],
    output: Output,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder that uses the fastest instructions of this machine.
    pub fn new() -> Self {
        Self::of(Supported::detect())
    }

    /// A decoder that uses certain instructions; refused if this machine lacks them.
    pub fn with_level(level: Level) -> Result<Self> {
        Supported::new(level).map(Self::of)
    }

    fn of(level: Supported) -> Self {
        let work = Work {
            quads: Box::new([Quad([0; 256]); QUADS_MAX]),
            planes: Default::default(),
            output: Output::new(level),
        };
        Self { level, scan: Scan::default(), dc: Vec::new(), ac: Vec::new(), work }
    }

    /// The instructions it uses.
    pub fn level(&self) -> Level {
        self.level.level()
    }

    /// Decodes `bytes` into `output`, which must have the size of the pixels: packed rows.
    ///
    /// If this succeeds, the pixels are those of libjpeg-turbo, and it would not have warned of anything; but where restart markers cut
    /// the data into intervals, only those that a region touches were looked at. If it fails, `output` may hold anything.
    pub fn decode_into(&mut self, bytes: &[u8], options: &Options, output: &mut [u8]) -> Result<()> {
        let frame = header::read(bytes)?;
        let layout = Layout::new(&frame.header, options)?;
        let expected = layout.region.width * layout.region.height * options.color.channels();
        if output.len() != expected {
            let problem = "the output has not the size of the pixels";
            return Err(Error::Usage { problem, expected: expected as u64, found: output.len() as u64 });
        }
        let interval = match frame.header.restart_interval {
            0 => layout.mcu_total(),
            interval => interval,
        };
        self.scan.load(bytes, frame.data_at, layout.mcu_total().div_ceil(interval))?;
        let plan = make_plan(&frame, &layout, &mut self.dc, &mut self.ac)?;
        let mut position = Position::new(self.scan.bytes(), self.scan.ends(), interval);
        let finished = self.work.run(self.level, &frame, &layout, &plan, &mut position, output);
        finished.map_err(|failure| match failure {
            Failure::Damage(damage) => {
                let problem = match damage {
                    Damage::NoCode => "bits that are not a code",
                    Damage::Overflow => "a block of more than 64 coefficients",
                    Damage::Length => "data that is too short or too long",
                };
                Error::format(problem, position.next_byte())
            }
            Failure::Range => Error::unsupported("coefficients beyond the range of pixels", 8192u64),
            Failure::Other(error) => error,
        })
    }
}

enum Failure {
    Damage(Damage),
    Range,
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

/// What of the image is needed, in MCUs and samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) header: Header,
    pub(crate) color: Color,
    pub(crate) region: Region,
    /// Samples of brightness for each of color: across, down.
    pub(crate) factors: (usize, usize),
    /// MCUs of the image.
    pub(crate) mcus: (usize, usize),
    /// The MCU columns and rows that are needed: the first, and the one behind the last.
    pub(crate) columns: (usize, usize),
    pub(crate) rows: (usize, usize),
}

impl Layout {
    fn new(header: &Header, options: &Options) -> Result<Self> {
        let (width, height) = (header.width, header.height);
        if width * height > options.max_pixels {
            let (found, limit) = ((width * height) as u64, options.max_pixels as u64);
            return Err(Error::Limit { what: "the number of pixels", found, limit });
        }
        if options.color == Color::Gray && header.space == Space::Rgb {
            return Err(Error::unsupported("brightness of an image in RGB", 0u64));
        }
        let region = options.region.unwrap_or(Region { x: 0, y: 0, width, height });
        check_side("the region's columns reach beyond the image", region.x, region.width, width)?;
        check_side("the region's rows reach beyond the image", region.y, region.height, height)?;
        let factors = header.factors();
        Ok(Self {
            header: *header,
            color: options.color,
            region,
            factors,
            mcus: (width.div_ceil(8 * factors.0), height.div_ceil(8 * factors.1)),
            columns: needed(region.x, region.width, width, factors.0),
            rows: needed(region.y, region.height, height, factors.1),
        })
    }

    pub(crate) fn mcu_total(&self) -> usize {
        self.mcus.0 * self.mcus.1
    }

    /// Samples of color in the image: across, down.
    pub(crate) fn color_size(&self) -> (usize, usize) {
        (self.header.width.div_ceil(self.factors.0), self.header.height.div_ceil(self.factors.1))
    }

    /// Components whose samples are needed.
    pub(crate) fn components(&self) -> usize {
        if self.color == Color::Gray { 1 } else { self.header.components() }
    }

    /// Blocks of a component in an MCU: across, down.
    fn blocks(&self, component: usize) -> (usize, usize) {
        if component == 0 { self.factors } else { (1, 1) }
    }
}

fn check_side(problem: &'static str, start: usize, length: usize, whole: usize) -> Result<()> {
    if length == 0 || start >= whole || length > whole - start {
        let found = start.saturating_add(length) as u64;
        return Err(Error::Usage { problem, expected: whole as u64, found });
    }
    Ok(())
}

/// The MCUs along one side that pixels `start..start + length` need: where color is halved, also those of the next sample
/// of color on either side.
fn needed(start: usize, length: usize, whole: usize, factor: usize) -> (usize, usize) {
    let (first, last) = (start / factor, (start + length - 1) / factor);
    if factor == 1 {
        return (first / 8, last / 8 + 1);
    }
    (first.saturating_sub(1) / 8, (last + 1).min(whole.div_ceil(factor) - 1) / 8 + 1)
}

/// Finds or builds the tables, and lays the blocks of a group out.
fn make_plan<'a>(frame: &Frame, layout: &Layout, dc: &'a mut Vec<Dc>, ac: &'a mut Vec<Ac>) -> Result<Plan<'a>> {
    let (mut dc_at, mut ac_at) = ([0; 3], [0; 3]);
    if dc.len() + 3 > TABLES_MAX {
        dc.retain(|table| frame.dc.iter().any(|codes| table.is_of(codes)));
    }
    if ac.len() + 3 > TABLES_MAX {
        ac.retain(|table| frame.ac.iter().any(|codes| table.is_of(codes)));
    }
    for component in 0..frame.header.components() {
        dc_at[component] = table_index(dc, &frame.dc[component], Dc::is_of, Dc::new)?;
        ac_at[component] = table_index(ac, &frame.ac[component], Ac::is_of, Ac::new)?;
    }
    let mut blocks = [BlockPlan::default(); MCU_BLOCKS_MAX];
    let (mut count, mut quad) = (0, 0);
    for component in 0..frame.header.components() {
        let (across, down) = layout.blocks(component);
        for row in 0..down {
            for column in 0..across {
                let at = std::array::from_fn(|mcu| {
                    let block = mcu * across + column;
                    ((quad + row * across + block / 4) * 256 + block % 4 * 8) as u16
                });
                blocks[count] = BlockPlan { component, stored: component < layout.components(), at };
                count += 1;
            }
        }
        quad += across * down;
    }
    let (dc, ac) = (&*dc, &*ac);
    Ok(Plan { dc: dc_at.map(|at| &dc[at]), ac: ac_at.map(|at| &ac[at]), blocks, count })
}

/// The index of the table for `codes`, which is built if necessary.
fn table_index<T>(
    tables: &mut Vec<T>,
    codes: &Codes,
    is_of: fn(&T, &Codes) -> bool,
    build: fn(&Codes) -> Result<T>,
) -> Result<usize> {
    if let Some(found) = tables.iter().position(|table| is_of(table, codes)) {
        return Ok(found);
    }
    tables.push(build(codes)?);
    Ok(tables.len() - 1)
}

impl Work {
    fn run(
        &mut self,
        level: Supported,
        frame: &Frame,
        layout: &Layout,
        plan: &Plan<'_>,
        position: &mut Position<'_>,
        output: &mut [u8],
    ) -> Result<(), Failure> {
        let columns = layout.columns.1 - layout.columns.0;
        let quantizers = frame.quantizers.each_ref().map(idct::quantizers);
        for (component, plane) in self.planes.iter_mut().enumerate().take(layout.components()) {
            let (across, down) = layout.blocks(component);
            let width = columns.next_multiple_of(GROUP) * across * 8;
            plane.prepare(layout.columns.0 * across * 8, width, down * 8)?;
        }
        self.output.prepare(layout)?;
        position.jump(level, plan, layout.rows.0 * layout.mcus.0)?;
        let mut in_range = true;
        for row in layout.rows.0..layout.rows.1 {
            position.skip(level, plan, layout.columns.0)?;
            for first in (0..columns).step_by(GROUP) {
                in_range &= self.group(level, layout, plan, &quantizers, position, (first, columns))?;
            }
            self.output.emit(layout, &mut self.planes, row, output);
            if row + 1 < layout.rows.1 {
                position.skip(level, plan, layout.mcus.0 - layout.columns.1)?;
            }
        }
        // Codes may go on wrong from where bits were damaged, and show it only where the data end.
        let done = (layout.rows.1 - 1) * layout.mcus.0 + layout.columns.1;
        if !position.finish(level, plan, layout.mcu_total() - done)? {
            return Err(Failure::Damage(Damage::Length));
        }
        if in_range { Ok(()) } else { Err(Failure::Range) }
    }

    /// Decodes the MCUs of one group, from column `first` of `columns` needed on.
    fn group(
        &mut self,
        level: Supported,
        layout: &Layout,
        plan: &Plan<'_>,
        quantizers: &[Quantizers; 3],
        position: &mut Position<'_>,
        (first, columns): (usize, usize),
    ) -> Result<bool, Damage> {
        let mut extents = [0; QUADS_MAX];
        for quad in &mut self.quads[..plan.count] {
            quad.0.fill(0);
        }
        position.decode(level, plan, (columns - first).min(GROUP), &mut self.quads, &mut extents)?;
        let (mut quad, mut in_range) = (0, true);
        for (component, plane) in self.planes.iter_mut().enumerate().take(layout.components()) {
            let (across, down) = layout.blocks(component);
            let stride = plane.stride();
            for row in 0..down {
                for part in 0..across {
                    let target = plane.samples_mut(1 + row * 8, first * across * 8 + part * 32);
                    in_range &=
                        idct::inverse(level, &self.quads[quad], &quantizers[component], extents[quad], target, stride);
                    quad += 1;
                }
            }
        }
        Ok(in_range)
    }
}
