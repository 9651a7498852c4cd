//! `AugMix` (Hendrycks and others, 2019): several chains of changes, mixed with the picture.

use forebay_codec::{DType, memory};
use serde::{Deserialize, Serialize};

use super::chain::{self, ChainScratch};
use super::policies::{Kind, Space, Strength, Warped, add, check_optional_fill};
use super::{EXPECTED, output_type};
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::{Scope, Scratch};
use crate::step::{BadParameter, Needs, Transform};
use crate::steps::warp::WarpInterpolation;
use crate::steps::{Numbers, picture};

/// Mixes a picture with what chains of random changes make of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugMix {
    /// How strong changes are at most: from 1 to 10.
    pub severity: usize,
    /// How many chains.
    pub mixture_width: usize,
    /// How many changes each has; from 1 to 3, drawn, if it is -1.
    pub chain_depth: i64,
    /// The parameter of the Dirichlet distribution of weights.
    pub alpha: f64,
    /// Whether brightness, color, contrast and sharpness are among the changes.
    pub all_ops: bool,
    /// How the pixels of warps are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill: Option<Numbers>,
}

impl Default for AugMix {
    fn default() -> Self {
        Self {
            severity: 3,
            mixture_width: 3,
            chain_depth: -1,
            alpha: 1.0,
            all_ops: true,
            interpolation: WarpInterpolation::Bilinear,
            fill: None,
        }
    }
}

/// How many strengths there are.
const BINS: usize = 10;

/// More of either are a mistake.
const WIDTH_MAX: usize = 64;

#[derive(Default)]
struct AugMixScratch {
    chain: ChainScratch,
    made: Vec<u8>,
    mixed: Vec<f32>,
}

impl Scratch for AugMixScratch {
    fn capacity_bytes(&self) -> usize {
        self.chain.capacity_bytes() + self.made.capacity() + self.mixed.capacity_bytes()
    }

    fn trim(&mut self) {
        *self = Self::default();
    }
}

impl AugMixScratch {
    /// Adds up a picture and what chains make of it: its own weight, and one for each chain, whose changes `draw` puts into a list.
    fn mix(
        &mut self,
        picture: &[u8],
        dims: [usize; 3],
        own: f64,
        weights: &[f64],
        mut draw: impl FnMut(&mut Vec<super::PixelOp>),
        to: &mut [u8],
    ) -> Result<(), StepError> {
        let Self { chain, made, mixed } = self;
        let bytes = picture.len();
        memory::grow(made, bytes)?;
        memory::grow(mixed, bytes)?;
        let (made, mixed) = (&mut made[..bytes], &mut mixed[..bytes]);
        let level = Supported::detect();
        // A value that all of them have must not fall below itself by how the weights were rounded.
        mixed.fill(1e-3);
        kernels::mix(level, picture, own as f32, mixed);
        for &weight in weights {
            chain.ops.clear();
            draw(&mut chain.ops);
            chain::run(chain, picture, dims, made)?;
            kernels::mix(level, made, weight as f32, mixed);
        }
        kernels::cut_off(level, mixed, to);
        Ok(())
    }
}

/// So many weights, which are at least 0 and have the sum `sum`: Dirichlet's distribution.
fn draw_weights(count: usize, alpha: f64, sum: f64, random: &mut Random) -> Vec<f64> {
    let mut drawn: Vec<f64> = (0..count).map(|_| random.gamma(alpha)).collect();
    let total: f64 = drawn.iter().sum();
    // All of them can be too small for a number only if `alpha` is tiny: one has everything then.
    if total > 0.0 {
        for weight in &mut drawn {
            *weight *= sum / total;
        }
    } else {
        drawn[random.below(count)] = sum;
    }
    drawn
}

impl AugMix {
    /// The weight of the picture, and that of each chain.
    pub(super) fn draw_weights(&self, random: &mut Random) -> (f64, Vec<f64>) {
        let shares = draw_weights(2, self.alpha, 1.0, random);
        (shares[0], draw_weights(self.mixture_width, self.alpha, shares[1], random))
    }

    pub(super) fn draw_chain(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<super::PixelOp>) {
        let kinds = if self.all_ops { &Kind::MIXED[..] } else { &Kind::MIXED[..9] };
        let depth = usize::try_from(self.chain_depth).ok().filter(|&depth| depth > 0);
        let depth = depth.unwrap_or_else(|| 1 + random.below(3));
        let warped = Warped { interpolation: self.interpolation, fill: self.fill.as_ref() };
        for _ in 0..depth {
            let kind = kinds[random.below(kinds.len())];
            let strength = Strength { bin: random.below(self.severity), bins: BINS };
            add(kind, Space::Mixed, strength, size, warped, random, ops);
        }
    }
}

impl Transform for AugMix {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless((1..=BINS).contains(&self.severity), "severity", &self.severity, "from 1 to 10")?;
        let width = (1..=WIDTH_MAX).contains(&self.mixture_width);
        BadParameter::unless(width, "mixture_width", &self.mixture_width, "from 1 to 64")?;
        let depth = self.chain_depth == -1 || (1..=WIDTH_MAX as i64).contains(&self.chain_depth);
        BadParameter::unless(depth, "chain_depth", &self.chain_depth, "from 1 to 64, or -1")?;
        let alpha = self.alpha > 0.0 && self.alpha.is_finite();
        BadParameter::unless(alpha, "alpha", &self.alpha, "a number above 0")?;
        check_optional_fill(self.fill.as_ref())
    }

    fn riders_left(&self) -> Option<&'static str> {
        Some(
            "no mask, boxes or key points, which cannot follow a mixture of images: take `rand_augment` with that field in \
             its `fields`, or `drop` it before",
        )
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        output_type(input)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let (view, dims @ [height, width, channels]) = picture(input)?;
        if view.spec.dtype != DType::U8 || !matches!(channels, 1 | 3) {
            return Err(StepError::Unfit { found: view.spec, expected: EXPECTED });
        }
        let bytes = view.spec.bytes();
        output.working(chain::working_bytes(bytes).saturating_add(bytes.saturating_mul(1 + size_of::<f32>())))?;
        let slot = output.tensor(view.spec)?;
        let mut scratch = std::mem::take(scope.scratch::<AugMixScratch>());
        let random = &mut scope.random;
        let (own, weights) = self.draw_weights(random);
        let draw = |ops: &mut Vec<super::PixelOp>| self.draw_chain((width, height), random, ops);
        scratch.mix(view.data, dims, own, &weights, draw, slot.data)?;
        *scope.scratch() = scratch;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::augment::PixelOp;
    use crate::steps::{Projection, Warp};

    /// The picture of `golden/aug_mix.py`.
    fn colorful(channels: usize) -> Vec<u8> {
        let value = |place: usize| {
            let (y, x, c) = (place / channels / 20, place / channels % 20, place % channels);
            let noise = (y * 7919 + x * 104_729 + c * 15_485_863) % 41;
            (30 + y * (9 - 2 * c) + x * (3 + 3 * c) + noise + if x * 2 > 20 + y { 40 } else { 0 }) as u8
        };
        (0..17 * 20 * channels).map(value).collect()
    }

    /// The changes and weights that `golden/aug_mix.py` gives torchvision's.
    #[test]
    fn fixed_draws_give_what_torchvision_gives() {
        let projection = Projection::affine([10.0, 8.5], -10.0, [0.0; 2], 1.0, [0.0; 2]).unwrap();
        let warp = Warp { projection, interpolation: WarpInterpolation::Bilinear, fill: None };
        let chains = [
            [PixelOp::Posterize(3), PixelOp::Brightness(1.3)],
            [PixelOp::Warp(warp), PixelOp::Saturation(0.5)],
            [PixelOp::Equalize, PixelOp::Solarize(255.0 * 0.6)],
        ];
        let weights = [0.2, 0.3, 0.5].map(|weight| weight * 0.7);
        let mut golden = &include_bytes!("../../../tests/golden/aug_mix.bin")[..];
        for channels in [3, 1] {
            let picture = colorful(channels);
            let (expected, rest) = golden.split_at(picture.len());
            golden = rest;
            let mut made = vec![0; picture.len()];
            let mut next = chains.iter();
            let draw = |ops: &mut Vec<PixelOp>| ops.extend(next.next().unwrap());
            AugMixScratch::default().mix(&picture, [17, 20, channels], 0.3, &weights, draw, &mut made).unwrap();
            let furthest = made.iter().zip(expected).map(|(ours, theirs)| ours.abs_diff(*theirs)).max();
            assert!(furthest <= Some(1), "{channels} channels: off by {furthest:?}");
        }
        assert!(golden.is_empty());
    }
}
