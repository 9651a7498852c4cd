//! `AugMix` (Hendrycks and others, 2019): several chains of changes, mixed with the picture.

use forebay_codec::{DType, memory};
use serde::{Deserialize, Serialize};

use super::chain::{self, ChainScratch};
use super::policies::{Kind, Space, Warped, add, check_optional_fill};
use super::{EXPECTED, output_type};
use crate::error::StepError;
use crate::kernels::{self, Level};
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

/// Adds so many weights to `weights`, which are at least 0 and have the sum `sum`: Dirichlet's distribution.
fn draw_weights(count: usize, alpha: f64, sum: f64, random: &mut Random, weights: &mut Vec<f64>) {
    let first = weights.len();
    weights.extend((0..count).map(|_| random.gamma(alpha)));
    let drawn = &mut weights[first..];
    let total: f64 = drawn.iter().sum();
    // All of them can be too small for a number only if `alpha` is tiny: one has everything then.
    if total > 0.0 {
        for weight in drawn {
            *weight *= sum / total;
        }
    } else {
        drawn[random.below(count)] = sum;
    }
}

impl AugMix {
    fn draw_chain(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<super::PixelOp>) {
        let kinds = if self.all_ops { &Kind::MIXED[..] } else { &Kind::MIXED[..9] };
        let depth = usize::try_from(self.chain_depth).ok().filter(|&depth| depth > 0);
        let depth = depth.unwrap_or_else(|| 1 + random.below(3));
        let warped = Warped { interpolation: self.interpolation, fill: self.fill.as_ref() };
        for _ in 0..depth {
            let kind = kinds[random.below(kinds.len())];
            let share = random.below(self.severity) as f64 / (BINS - 1) as f64;
            add(kind, Space::Mixed, share, size, warped, random, ops);
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
            "no mask, boxes or key points, which cannot follow a mixture of pictures: take `rand_augment` with that field in \
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
        let AugMixScratch { chain, made, mixed } = &mut scratch;
        memory::grow(made, bytes)?;
        memory::grow(mixed, bytes)?;
        let (made, mixed) = (&mut made[..bytes], &mut mixed[..bytes]);
        let mut weights = Vec::with_capacity(2 + self.mixture_width);
        draw_weights(2, self.alpha, 1.0, &mut scope.random, &mut weights);
        let augmented = weights[1];
        draw_weights(self.mixture_width, self.alpha, augmented, &mut scope.random, &mut weights);
        let level = Level::best();
        // A value that all of them have must not fall below itself by how the weights were rounded.
        mixed.fill(1e-3);
        kernels::mix(level, view.data, weights[0] as f32, mixed);
        for &weight in &weights[2..] {
            chain.ops.clear();
            self.draw_chain((width, height), &mut scope.random, &mut chain.ops);
            chain::run(chain, view.data, dims, made)?;
            kernels::mix(level, made, weight as f32, mixed);
        }
        kernels::cut_off(level, mixed, slot.data);
        *scope.scratch() = scratch;
        Ok(())
    }
}
