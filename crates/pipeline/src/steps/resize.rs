//! Resizing: to a shorter side, to an exact size, or of a random rectangle.

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::SIDE_MAX;
use super::geometry::{Frame, Rectangle, Reframe};
use crate::error::StepError;
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

mod area;
mod rectangle;
mod tensorflow;

pub(crate) use rectangle::resize_rectangle;

/// Resizes, keeping the aspect ratio (`shorter-side`) or not (`width` and `height`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Resize {
    /// The length of the shorter side; the longer one follows, rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shorter_side: Option<usize>,
    /// The exact width; needs `height`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// The exact height; needs `width`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<usize>,
    /// The filter.
    #[serde(default)]
    pub filter: Filter,
    /// Whose result it equals.
    #[serde(default)]
    pub variant: Variant,
}

impl Resize {
    /// To a shorter side of `pixels`.
    pub fn shorter_side(pixels: usize) -> Self {
        Self {
            shorter_side: Some(pixels),
            width: None,
            height: None,
            filter: Filter::Bilinear,
            variant: Variant::Antialias,
        }
    }
}

/// How pixels are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Filter {
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

/// Whose result a resize equals. Loaders disagree; a model trained with one should be fed with the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The filter grows with the scale, as in Pillow and torchvision.
    #[default]
    Antialias,
    /// The filter keeps its size, as in `OpenCV`.
    Plain,
    /// As `tf.image.resize`: bilinear, half-pixel centres, fixed filter, truncated to bytes.
    Tensorflow,
}

/// Cuts a random rectangle and resizes it to a square, as `ImageNet` training does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RandomResizedCrop {
    /// Width and height of the result in pixels.
    pub size: usize,
    /// The smallest and largest share of the picture's area.
    #[serde(default = "default_area")]
    pub area: [f64; 2],
    /// The smallest and largest aspect ratio, width over height.
    #[serde(default = "default_ratio")]
    pub ratio: [f64; 2],
    /// The filter.
    #[serde(default)]
    pub filter: Filter,
}

fn default_area() -> [f64; 2] {
    [0.08, 1.0]
}

fn default_ratio() -> [f64; 2] {
    [3.0 / 4.0, 4.0 / 3.0]
}

/// How often a rectangle that does not fit is drawn again before the middle is taken.
const CROP_ATTEMPTS: usize = 10;

impl Resize {
    /// The size in pixels (width, height) that a picture of this size becomes.
    fn size_of(&self, width: usize, height: usize) -> (usize, usize) {
        if let (Some(width), Some(height)) = (self.width, self.height) {
            return (width, height);
        }
        let side = self.shorter_side.unwrap_or(width.min(height));
        if self.variant == Variant::Tensorflow {
            // PRESTO scales in single precision (inventory §1.5, step 3), which can differ by one from exact division.
            let scale = side as f32 / width.min(height) as f32;
            return ((width as f32 * scale) as usize, (height as f32 * scale) as usize);
        }
        let longer = side * width.max(height) / width.min(height);
        if width <= height { (side, longer) } else { (longer, side) }
    }
}

/// A length in pixels that a picture can have.
fn check_side(name: &'static str, side: Option<usize>) -> Result<(), BadParameter> {
    let sound = side.is_none_or(|side| (1..=SIDE_MAX).contains(&side));
    BadParameter::unless(sound, name, &side.unwrap_or(0), "from 1 to 65536 pixels")
}

impl Reframe for Resize {
    fn is_random(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_side("shorter-side", self.shorter_side)?;
        check_side("width", self.width)?;
        check_side("height", self.height)?;
        let (exact, any) = (self.width.is_some() && self.height.is_some(), self.width.or(self.height).is_some());
        BadParameter::unless(exact || !any, "height", &self.height, "given together with `width`, or not at all")?;
        let one = exact != self.shorter_side.is_some();
        let expected = "given, unless `width` and `height` are";
        BadParameter::unless(one, "shorter-side", &self.shorter_side, expected)?;
        let sound = self.variant != Variant::Tensorflow || self.filter == Filter::Bilinear;
        BadParameter::unless(sound, "filter", &self.filter, "`bilinear` for the variant `tensorflow`")?;
        let sound = self.variant == Variant::Antialias || self.filter != Filter::Area;
        BadParameter::unless(sound, "variant", &self.variant, "`antialias` for the filter `area`")
    }

    fn refuses(&self, dtype: DType) -> Option<Needs> {
        refuses(dtype)
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok(match (width, height) {
            (Some(width), Some(height)) => {
                let (width, height) = self.size_of(width, height);
                [Some(width), Some(height)]
            }
            _ if self.width.is_some() && self.height.is_some() => [self.width, self.height],
            _ => [None, None],
        })
    }

    fn size(&self, width: usize, height: usize) -> Result<(usize, usize), StepError> {
        Ok(self.size_of(width, height))
    }

    fn place(&self, width: usize, height: usize, _random: &mut Random) -> Result<(Rectangle, bool), StepError> {
        Ok((Rectangle::whole(width, height), false))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        match (self.variant, self.filter) {
            (Variant::Tensorflow, _) => tensorflow::resize(view, output, scope.scratch()),
            (_, Filter::Area) => area::resize(view, output, scope.scratch()),
            (variant, filter) => {
                let antialias = variant == Variant::Antialias;
                resize_rectangle(view, frame.rectangle, filter, antialias, &mut output, scope.scratch())
            }
        }
    }
}

impl Filter {
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
        check_side("size", Some(self.size))?;
        let in_order = |[low, high]: [f64; 2]| 0.0 < low && low <= high && high.is_finite();
        let sound = in_order(self.area) && self.area[1] <= 1.0;
        BadParameter::unless(sound, "area", &self.area, "two shares above 0 and up to 1, the smaller first")?;
        BadParameter::unless(in_order(self.ratio), "ratio", &self.ratio, "two ratios above 0, the smaller first")?;
        BadParameter::unless(self.filter != Filter::Area, "filter", &self.filter, "`bilinear`, `bicubic` or `lanczos`")
    }

    fn refuses(&self, dtype: DType) -> Option<Needs> {
        refuses(dtype)
    }

    fn size_type(&self, _width: Option<usize>, _height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok([Some(self.size), Some(self.size)])
    }

    fn size(&self, _width: usize, _height: usize) -> Result<(usize, usize), StepError> {
        Ok((self.size, self.size))
    }

    fn place(&self, width: usize, height: usize, random: &mut Random) -> Result<(Rectangle, bool), StepError> {
        Ok((self.draw(width, height, random), false))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        resize_rectangle(view, frame.rectangle, self.filter, true, &mut output, scope.scratch())
    }
}

impl RandomResizedCrop {
    /// Draws area and (logarithmically) aspect ratio until the rectangle fits; after ten misses takes the middle.
    pub(crate) fn draw(&self, width: usize, height: usize, random: &mut Random) -> Rectangle {
        let pixels = (width * height) as f64;
        for _ in 0..CROP_ATTEMPTS {
            let area = pixels * random.between(self.area[0], self.area[1]);
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

fn refuses(dtype: DType) -> Option<Needs> {
    let can = matches!(dtype, DType::U8 | DType::U16 | DType::F32);
    (!can).then(|| Needs("a picture in uint8, uint16 or float32".to_owned()))
}
