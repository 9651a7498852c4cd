//! Resizing: to a shorter side, to an exact size, or of a random rectangle.

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::geometry::{Frame, Kept, Rectangle, Reframe};
use super::size::Size;
use crate::error::StepError;
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

mod area;
mod rectangle;
mod tensorflow;

pub(crate) use rectangle::resize_rectangle;

/// Resizes, keeping the aspect ratio (`size = 256`, the shorter side) or not (`size = [height, width]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// The length of the shorter side, where the longer one follows, rounded down; or height and width.
    pub size: Size,
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// The library whose result it equals.
    #[serde(default)]
    pub backend: Backend,
}

impl Resize {
    /// To a shorter side of so many pixels, or to a height and width.
    pub fn to(size: impl Into<Size>) -> Self {
        Self { size: size.into(), interpolation: Interpolation::Bilinear, backend: Backend::Pillow }
    }
}

/// How pixels are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// Triangle.
    #[default]
    Bilinear,
    /// Catmull–Rom.
    Bicubic,
    /// Each output pixel is the mean of the area it covers, fractions of pixels included.
    Area,
    /// Lanczos with three lobes.
    Lanczos,
}

/// The library whose result a resize equals. Loaders disagree; a model trained with one should be fed with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// The filter grows with the scale, as in Pillow and torchvision.
    #[default]
    Pillow,
    /// The filter keeps its size: torchvision's `antialias=False`.
    Opencv,
    /// As `tf.image.resize`: bilinear, half-pixel centers, fixed filter, truncated to bytes.
    Tensorflow,
}

/// Cuts a random rectangle and resizes it, as `ImageNet` training does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomResizedCrop {
    /// Of the result.
    pub size: Size,
    /// The smallest and largest share of the picture's area.
    #[serde(default = "default_scale")]
    pub scale: [f64; 2],
    /// The smallest and largest aspect ratio, width over height.
    #[serde(default = "default_ratio")]
    pub ratio: [f64; 2],
    /// The filter.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Whether the filter grows with the scale, where a rectangle becomes smaller; OpenCV's, and torchvision's `antialias=False`, does not.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub antialias: bool,
}

fn yes() -> bool {
    true
}

fn default_scale() -> [f64; 2] {
    [0.08, 1.0]
}

fn default_ratio() -> [f64; 2] {
    [3.0 / 4.0, 4.0 / 3.0]
}

/// How often a rectangle that does not fit is drawn again before the middle is taken.
const CROP_ATTEMPTS: usize = 10;

/// Width and height of a picture whose shorter side becomes `side`, rounded down.
pub(super) fn with_shorter_side(side: usize, width: usize, height: usize) -> (usize, usize) {
    let longer = side * width.max(height) / width.min(height);
    if width <= height { (side, longer) } else { (longer, side) }
}

impl Resize {
    /// The size in pixels (width, height) that a picture of this size becomes.
    fn size_of(&self, width: usize, height: usize) -> (usize, usize) {
        let side = match self.size {
            Size::Exact([height, width]) => return (width, height),
            Size::Side(side) => side,
        };
        if self.backend == Backend::Tensorflow {
            // PRESTO scales in single precision, which can differ by one from exact division.
            let scale = side as f32 / width.min(height) as f32;
            return ((width as f32 * scale) as usize, (height as f32 * scale) as usize);
        }
        with_shorter_side(side, width, height)
    }
}

impl Reframe for Resize {
    fn is_random(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), BadParameter> {
        self.size.check()?;
        let fits = self.backend != Backend::Tensorflow || self.interpolation == Interpolation::Bilinear;
        let expected = "`bilinear` for the backend `tensorflow`";
        BadParameter::unless(fits, "interpolation", &self.interpolation, expected)?;
        let fits = self.backend == Backend::Pillow || self.interpolation != Interpolation::Area;
        BadParameter::unless(fits, "backend", &self.backend, "`pillow` for the interpolation `area`")
    }

    fn refuses(&self, dtype: DType) -> Option<Needs> {
        refuses(dtype)
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok(match (self.size, width, height) {
            (Size::Exact([height, width]), ..) => [Some(width), Some(height)],
            (Size::Side(_), Some(width), Some(height)) => {
                let (width, height) = self.size_of(width, height);
                [Some(width), Some(height)]
            }
            (Size::Side(_), ..) => [None, None],
        })
    }

    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        Ok(self.size_of(width, height))
    }

    fn kept(&self, width: usize, height: usize, _random: &mut Random) -> Result<Kept, StepError> {
        Ok(Rectangle::whole(width, height).into())
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        match (self.backend, self.interpolation) {
            (Backend::Tensorflow, _) => tensorflow::resize(view, output, scope.scratch()),
            (_, Interpolation::Area) => area::resize(view, output, scope.scratch()),
            (backend, interpolation) => {
                let antialias = backend == Backend::Pillow;
                resize_rectangle(view, frame.kept.rectangle, interpolation, antialias, &mut output, scope.scratch())
            }
        }
    }
}

impl Interpolation {
    fn kernel(self) -> forebay_resize::Filter {
        match self {
            Self::Bilinear => forebay_resize::Filter::Bilinear,
            Self::Bicubic => forebay_resize::Filter::Bicubic,
            Self::Lanczos => forebay_resize::Filter::Lanczos,
            Self::Area => unreachable!("`area.rs` does it, and a step that cuts refuses it"),
        }
    }
}

impl Reframe for RandomResizedCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        self.size.check()?;
        let in_order = |[low, high]: [f64; 2]| 0.0 < low && low <= high && high.is_finite();
        let shares = in_order(self.scale) && self.scale[1] <= 1.0;
        BadParameter::unless(shares, "scale", &self.scale, "two shares above 0 and up to 1, the smaller first")?;
        BadParameter::unless(in_order(self.ratio), "ratio", &self.ratio, "two ratios above 0, the smaller first")?;
        let fits = self.interpolation != Interpolation::Area;
        BadParameter::unless(fits, "interpolation", &self.interpolation, "`bilinear`, `bicubic` or `lanczos`")
    }

    fn refuses(&self, dtype: DType) -> Option<Needs> {
        refuses(dtype)
    }

    fn size_type(&self, _width: Option<usize>, _height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        let [height, width] = self.size.height_and_width();
        Ok([Some(width), Some(height)])
    }

    fn size(&self, _width: usize, _height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        let [height, width] = self.size.height_and_width();
        Ok((width, height))
    }

    fn kept(&self, width: usize, height: usize, random: &mut Random) -> Result<Kept, StepError> {
        Ok(self.draw(width, height, random).into())
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        let rectangle = frame.kept.rectangle;
        resize_rectangle(view, rectangle, self.interpolation, self.antialias, &mut output, scope.scratch())
    }
}

impl RandomResizedCrop {
    /// Draws area and (logarithmically) aspect ratio until the rectangle fits; after ten misses takes the middle.
    pub(crate) fn draw(&self, width: usize, height: usize, random: &mut Random) -> Rectangle {
        let pixels = (width * height) as f64;
        for _ in 0..CROP_ATTEMPTS {
            let area = pixels * random.between(self.scale[0], self.scale[1]);
            let ratio = random.between(self.ratio[0].ln(), self.ratio[1].ln()).exp();
            let crop_width = (area * ratio).sqrt().round() as usize;
            let crop_height = (area / ratio).sqrt().round() as usize;
            if (1..=width).contains(&crop_width) && (1..=height).contains(&crop_height) {
                return Rectangle {
                    left: random.below(width - crop_width + 1),
                    top: random.below(height - crop_height + 1),
                    width: crop_width,
                    height: crop_height,
                };
            }
        }
        let ratio = (width as f64 / height as f64).clamp(self.ratio[0], self.ratio[1]);
        let crop_width = ((height as f64 * ratio).round() as usize).clamp(1, width);
        let crop_height = ((width as f64 / ratio).round() as usize).clamp(1, height);
        Rectangle {
            left: (width - crop_width) / 2,
            top: (height - crop_height) / 2,
            width: crop_width,
            height: crop_height,
        }
    }
}

pub(super) fn refuses(dtype: DType) -> Option<Needs> {
    let can = matches!(dtype, DType::U8 | DType::U16 | DType::F32);
    (!can).then(|| Needs("an image in uint8, uint16 or float32".to_owned()))
}
