//! The masks of COCO: polygons and run lengths, as `pycocotools` draws them.
//!
//! Pixels count down the columns: number `x * height + y`. A mask is a list of places where it changes between outside and inside.

use forebay_codec::memory;

use crate::error::StepError;

/// The outline of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Segmentation {
    /// There is none.
    #[default]
    None,
    /// Polygons, each of x and y in turns: whatever is in one of them is the object's.
    Polygons(Vec<Vec<f64>>),
    /// Run lengths of outside and inside in turns, down the columns of an image of this height and width.
    Runs {
        /// Height and width.
        size: [usize; 2],
        /// The lengths.
        counts: Vec<u32>,
    },
}

/// Corners further out are none of this world.
pub(super) const COORDINATE_MAX: f64 = (1 << 20) as f64;

/// The most places where the outline of one polygon crosses a column: far more than any picture has.
const CROSSINGS_MAX: usize = 1 << 24;

/// Polygons are drawn on a grid so many times finer.
const FINENESS: i64 = 5;

impl Segmentation {
    /// Calls `paint` with each run of pixels that is inside, column by column, in an image of this height and width; runs may overlap.
    pub fn draw(
        &self,
        [height, width]: [usize; 2],
        mut paint: impl FnMut(std::ops::Range<usize>),
    ) -> Result<(), String> {
        match self {
            Self::None => Ok(()),
            Self::Polygons(polygons) => {
                let mut changes = Vec::new();
                for polygon in polygons {
                    crossings(polygon, [height, width], &mut changes)?;
                    changes.sort_unstable();
                    for run in changes.chunks(2) {
                        paint(run[0]..run.get(1).copied().unwrap_or(height * width));
                    }
                }
                Ok(())
            }
            Self::Runs { size, counts } => {
                if *size != [height, width] {
                    return Err(format!("run lengths of {}x{} for an image of {width}x{height}", size[1], size[0]));
                }
                let mut end = 0usize;
                for (number, &count) in counts.iter().enumerate() {
                    let start = end;
                    end = start.saturating_add(count as usize);
                    if end > height * width {
                        return Err(format!("run lengths go beyond the {} pixels of their image", height * width));
                    }
                    if number % 2 == 1 {
                        paint(start..end);
                    }
                }
                Ok(())
            }
        }
    }
}

/// Where the outline of a polygon changes between outside and inside, not in order. Corners are rounded to a grid of fifths of pixels; an edge
/// crosses a column of pixels where it passes from the third to the fourth fifth of it, at the upper of its two places there, rounded down the column.
fn crossings(polygon: &[f64], [height, width]: [usize; 2], changes: &mut Vec<usize>) -> Result<(), String> {
    changes.clear();
    // As C makes whole numbers of others: towards zero.
    let whole = |value: f64| value as i64;
    let corner = |at: usize| {
        let at = at % (polygon.len() / 2) * 2;
        (whole(FINENESS as f64 * polygon[at] + 0.5), whole(FINENESS as f64 * polygon[at + 1] + 0.5))
    };
    for at in 0..polygon.len() / 2 {
        let ((mut xs, mut ys), (mut xe, mut ye)) = (corner(at), corner(at + 1));
        let (dx, dy) = ((xe - xs).abs(), (ye - ys).abs());
        if (dx >= dy && xs > xe) || (dx < dy && ys > ye) {
            (xs, ys, xe, ye) = (xe, ye, xs, ys);
        }
        if dx == 0 {
            continue;
        }
        let slope = if dx >= dy { (ye - ys) as f64 / dx as f64 } else { (xe - xs) as f64 / dy as f64 };
        let (left, right) = (xs.min(xe), xs.max(xe));
        // The first and the last column whose third and fourth fifths both are on the edge.
        let first = (left - FINENESS / 2 + FINENESS - 1).div_euclid(FINENESS).max(0);
        let last = (right - FINENESS / 2 - 1).div_euclid(FINENESS).min(width as i64 - 1);
        if last < first {
            continue;
        }
        if changes.len() + (last - first + 1) as usize > CROSSINGS_MAX {
            return Err(format!("a polygon crosses more than {CROSSINGS_MAX} columns"));
        }
        for column in first..=last {
            let before = column * FINENESS + FINENESS / 2;
            let upper = if dx >= dy {
                let y = |x: i64| whole(ys as f64 + slope * (x - xs) as f64 + 0.5);
                y(before).min(y(before + 1))
            } else {
                // The step down the edge at which x passes from one fifth to the next.
                let x = |step: i64| whole(xs as f64 + slope * step as f64 + 0.5);
                let passed = |step: i64| if slope > 0.0 { x(step) > before } else { x(step) <= before };
                let (mut low, mut high) = (0, dy);
                while low < high {
                    let middle = i64::midpoint(low, high);
                    if passed(middle) { high = middle } else { low = middle + 1 }
                }
                ys + low - 1
            };
            let y = ((upper as f64 + 0.5) / FINENESS as f64 - 0.5).clamp(0.0, height as f64).ceil();
            changes.push(column as usize * height + y as usize);
        }
    }
    Ok(())
}

/// The run lengths in COCO's compressed text: each in letters of five bits, the lowest first, and from the fourth on less the one before the last.
pub(super) fn runs_from_text(text: &str) -> Result<Vec<u32>, String> {
    let mut counts: Vec<i64> = Vec::new();
    let mut letters = text.bytes();
    while let Some(mut letter) = letters.next() {
        let (mut value, mut shift) = (0i64, 0);
        loop {
            let bits = i64::from(letter) - 48;
            if !(0..64).contains(&bits) || shift > 30 {
                return Err("a text that is none of run lengths".to_owned());
            }
            value |= (bits & 31) << shift;
            shift += 5;
            if bits & 32 == 0 {
                if bits & 16 != 0 {
                    value |= -1 << shift;
                }
                break;
            }
            letter = letters.next().ok_or("a text of run lengths that ends too early")?;
        }
        if counts.len() > 2 {
            value += counts[counts.len() - 2];
        }
        counts.push(value);
    }
    counts.into_iter().map(|count| u32::try_from(count).map_err(|_| "a run length below 0".to_owned())).collect()
}

/// Puts `value` into every pixel of a run; `mask` has its rows one after another.
pub(super) fn paint<T: Copy>(mask: &mut [T], [height, width]: [usize; 2], run: std::ops::Range<usize>, value: T) {
    for pixel in run {
        mask[pixel % height * width + pixel / height] = value;
    }
}

/// An image of no object.
pub(super) fn blank([height, width]: [usize; 2]) -> Result<Vec<u16>, StepError> {
    Ok(memory::zeroed(height * width)?)
}
