//! From a header and options to the geometry of a decode: what is stored, what of it is wanted, and where it goes.

use crate::error::{Error, Result};
use crate::tensor::{DType, TensorSpec};

use super::header::Header;
use super::options::{Channels, DecodeOptions, Depth, Region};
use super::orientation::Orientation;

/// The geometry of one decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The stored image, scaled but not turned: width and height.
    pub(crate) scaled: (usize, usize),
    /// By how much it was scaled down.
    pub(crate) divisor: usize,
    /// What of it is wanted, in its coordinates.
    pub(crate) window: Region,
    /// How the window is turned on its way out.
    pub(crate) orientation: Orientation,
    /// Channels and type of what comes out.
    pub(crate) channels: usize,
    pub(crate) dtype: DType,
}

impl Layout {
    pub(crate) fn new(header: &Header, options: &DecodeOptions) -> Result<Self> {
        let pixels = header.width.saturating_mul(header.height);
        let limit = options.limits.max_pixels;
        if pixels > limit {
            return Err(Error::Limit { what: "the number of pixels", found: pixels as u64, limit: limit as u64 });
        }
        if pixels == 0 {
            let problem = format!("the image is `{}` × `{}` pixels", header.width, header.height);
            return Err(Error::format(header.format.name(), problem));
        }
        let orientation = if options.apply_orientation { header.orientation } else { Orientation::Normal };
        let scaled = (options.scale.apply(header.width), options.scale.apply(header.height));
        let turned = orientation.size(scaled.0, scaled.1);
        let window = match options.region {
            None => Region { x: 0, y: 0, width: scaled.0, height: scaled.1 },
            Some(region) => {
                require_inside(&region, turned)?;
                turn_back(&region, orientation, turned)
            }
        };
        let channels = match options.channels {
            Channels::Rgb => 3,
            Channels::Gray => 1,
            Channels::AsStored => header.channels,
        };
        let deep = options.depth == Depth::AsStored && header.bits == 16;
        let dtype = if deep { DType::U16 } else { DType::U8 };
        Ok(Self { scaled, divisor: options.scale.divisor(), window, orientation, channels, dtype })
    }

    /// What comes out.
    pub(crate) fn spec(&self) -> TensorSpec {
        let (width, height) = self.orientation.size(self.window.width, self.window.height);
        TensorSpec::new(self.dtype, &[height, width, self.channels])
    }

    /// Whether everything stored is wanted, untouched in size and order.
    pub(crate) fn is_plain(&self) -> bool {
        self.divisor == 1 && self.orientation == Orientation::Normal && self.is_whole()
    }

    /// Whether the window is the full scaled image.
    pub(crate) fn is_whole(&self) -> bool {
        self.window == Region { x: 0, y: 0, width: self.scaled.0, height: self.scaled.1 }
    }
}

/// Checks the memory of one decode against the limit: the output and `working_bytes`.
pub(crate) fn require_bytes(layout: &Layout, working_bytes: usize, options: &DecodeOptions) -> Result<()> {
    let found = layout.spec().bytes().saturating_add(working_bytes);
    let limit = options.limits.max_bytes;
    if found > limit {
        return Err(Error::Limit { what: "the memory to decode, in bytes,", found: found as u64, limit: limit as u64 });
    }
    Ok(())
}

fn require_inside(region: &Region, (width, height): (usize, usize)) -> Result<()> {
    let fits = |start: usize, length: usize, side: usize| {
        length > 0 && start.checked_add(length).is_some_and(|end| end <= side)
    };
    if fits(region.x, region.width, width) && fits(region.y, region.height, height) {
        return Ok(());
    }
    let found = format!("x {}, y {}, {} × {}", region.x, region.y, region.width, region.height);
    Err(Error::usage("the region is not inside the image", format!("within {width} × {height}"), found))
}

/// The same rectangle in the image before it is turned.
fn turn_back(region: &Region, orientation: Orientation, turned: (usize, usize)) -> Region {
    let back = orientation.inverse();
    let (x_a, y_a) = back.map(region.x, region.y, turned.0, turned.1);
    let (right, bottom) = (region.x + region.width - 1, region.y + region.height - 1);
    let (x_b, y_b) = back.map(right, bottom, turned.0, turned.1);
    let (width, height) = back.size(region.width, region.height);
    Region { x: x_a.min(x_b), y: y_a.min(y_b), width, height }
}
