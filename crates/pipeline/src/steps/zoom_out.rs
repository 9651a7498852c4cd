//! Zooming out: a picture somewhere on a larger one, as SSD's recipe has it.

use forebay_codec::{TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::geometry::{Frame, Reframe};
use super::pad::{check_fill, filled_pixel, surround, zero};
use super::projection::Projection;
use crate::error::StepError;
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

/// With probability `p`, puts a picture somewhere on one that is larger by a random factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomZoomOut {
    /// The value around the picture, one for all channels or one for each.
    pub fill: Numbers,
    /// The class that a mask has there.
    pub mask_fill: u16,
    /// The smallest and largest factor, of both sides.
    pub side_range: [f64; 2],
    /// How probable it is.
    pub p: f64,
}

impl Default for RandomZoomOut {
    fn default() -> Self {
        Self { fill: zero(), mask_fill: 0, side_range: [1.0, 4.0], p: 0.5 }
    }
}

/// A larger factor is a mistake.
const FACTOR_MAX: f64 = 100.0;

impl Reframe for RandomZoomOut {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        let [least, most] = self.side_range;
        let valid = 1.0 <= least && least <= most && most <= FACTOR_MAX;
        BadParameter::unless(valid, "side_range", &self.side_range, "two factors from 1 to 100, the smaller first")?;
        BadParameter::unless((0.0..=1.0).contains(&self.p), "p", &self.p, "between 0 and 1")?;
        check_fill(&self.fill)
    }

    fn size_type(&self, _width: Option<usize>, _height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok([None, None])
    }

    fn drawn(&self, from: (usize, usize), random: &mut Random) -> Result<Frame, StepError> {
        let whole = Frame::whole(from);
        if random.unit() >= self.p {
            return Ok(whole);
        }
        let factor = random.between(self.side_range[0], self.side_range[1]);
        let [width, height] = [from.0, from.1].map(|side| (side as f64 * factor) as usize);
        let mut before = |longer: usize, side: usize| ((longer - side) as f64 * random.unit()) as usize;
        let (left, top) = (before(width, from.0), before(height, from.1));
        Ok(whole.to((width, height), Projection::margin(left, top)))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let &[_, _, channels] = view.spec.shape.dims() else { return Ok(()) };
        let (fill, bytes) = filled_pixel(&self.fill, view.spec.dtype, channels);
        put(view, frame, &fill[..bytes], &mut output);
        Ok(())
    }

    fn mask(&self, view: TensorView<'_>, frame: &Frame, output: &mut TensorMut<'_>) {
        let (fill, bytes) = filled_pixel(&f64::from(self.mask_fill).into(), view.spec.dtype, 1);
        put(view, frame, &fill[..bytes], output);
    }
}

/// Puts a picture or a mask where the frame says.
fn put(view: TensorView<'_>, frame: &Frame, fill: &[u8], output: &mut TensorMut<'_>) {
    let [left, top] = frame.kept.projection.map_or([0; 2], |projection| projection.margins());
    surround(view.data, [frame.from.0, frame.from.1], output.data, [frame.to.0, left, top], fill);
}
