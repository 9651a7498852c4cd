//! Steps of steps: all of them with some probability, or one of them.

use std::sync::Arc;

use forebay_codec::{TensorSpec, TensorView};
use serde::Deserialize;

use super::augment::{Augment, Augmentation, PixelOp};
use super::spec::StepSpec;
use super::tensor;
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::output::{Buffer, Output};
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::{Scope, Scratch};
use crate::step::{Action, BadParameter, Needs, Transform};

/// Which of the steps are done.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    /// All, with this probability.
    All(f64),
    /// One; so probable, compared with each other.
    One(Vec<f64>),
}

impl Rule {
    fn check(&self, count: usize) -> Result<(), BadParameter> {
        BadParameter::unless(count > 0, "steps", &count, "at least one step")?;
        match self {
            Self::All(p) => BadParameter::unless((0.0..=1.0).contains(p), "p", p, "between 0 and 1"),
            Self::One(p) => {
                let valid =
                    p.len() == count && p.iter().all(|p| *p >= 0.0 && p.is_finite()) && p.iter().sum::<f64>() > 0.0;
                BadParameter::unless(valid, "p", p, "one number from 0 on for each step, and not 0 for all")
            }
        }
    }

    /// Which of so many are done this time.
    fn draw(&self, count: usize, random: &mut Random) -> std::ops::Range<usize> {
        match self {
            Self::All(p) => 0..if random.unit() < *p { count } else { 0 },
            Self::One(p) => {
                let mut left = random.unit() * p.iter().sum::<f64>();
                let passes = |p: &f64| {
                    left -= p;
                    left < 0.0
                };
                // Rounding may leave a little: then it is the last one that can be.
                let last = || p.iter().rposition(|p| *p > 0.0).unwrap_or(0);
                let chosen = p.iter().position(passes).unwrap_or_else(last);
                chosen..chosen + 1
            }
        }
    }
}

/// What is drawn within step `index` of those in a step whose draw began with `key`.
fn random_of(key: u64, index: usize) -> Random {
    Random::from_parts(&[key, index as u64])
}

/// Several augmentations, of which some are done.
#[derive(Debug)]
struct SomeAugmentations {
    steps: Vec<Augment>,
    rule: Rule,
}

impl Augmentation for SomeAugmentations {
    fn check(&self) -> Result<(), BadParameter> {
        self.rule.check(self.steps.len())?;
        self.steps.iter().try_for_each(Transform::check)
    }

    fn is_geometric(&self) -> bool {
        self.steps.iter().any(Transform::is_geometric)
    }

    fn mask_fill(&self) -> u16 {
        self.steps.iter().map(Augment::mask_fill).max().unwrap_or(0)
    }

    fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        let chosen = self.rule.draw(self.steps.len(), random);
        let key = random.bits();
        for index in chosen {
            self.steps[index].draw(size, &mut random_of(key, index), ops);
        }
    }
}

/// Several steps, of which some are done. Where some of them move pixels, the others leave masks, boxes and key points alone.
#[derive(Debug)]
struct SomeSteps {
    steps: Vec<Arc<dyn Transform>>,
    rule: Rule,
}

/// What the steps in between make.
#[derive(Default)]
struct BetweenScratch {
    buffers: Vec<Buffer>,
}

impl Scratch for BetweenScratch {
    fn capacity_bytes(&self) -> usize {
        self.buffers.iter().map(Scratch::capacity_bytes).sum()
    }

    fn trim(&mut self) {
        self.buffers.clear();
    }
}

impl SomeSteps {
    /// Whether a value of this type follows a picture: a mask, boxes or key points, where there is a step to follow. Without one, whole numbers in two dimensions
    /// are a table or sound like any other.
    fn rides_along(&self, kind: &FieldType) -> bool {
        let is_rider = kind.as_mask().is_some() || kind.as_boxes().is_some() || kind.as_keypoints().is_some();
        is_rider && self.is_geometric()
    }

    /// The same of a value.
    fn follows(&self, spec: TensorSpec) -> bool {
        let kind =
            || FieldType::Tensor { dtype: spec.dtype, dims: spec.shape.dims().iter().copied().map(Some).collect() };
        // The first is cheap, and enough for most.
        self.is_geometric() && self.rides_along(&kind())
    }

    /// Does one of the steps, which has its own draw and its own frame, the same for every field.
    fn step(
        &self,
        key: u64,
        index: usize,
        input: ValueView<'_>,
        output: &mut Output<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        scope.random = random_of(key, index);
        let frame_key = random_of(key, index).bits();
        let outer = scope.enter(frame_key);
        let done = self.steps[index].run(input, output, scope);
        scope.leave(frame_key, outer);
        done
    }
}

fn copy(view: TensorView<'_>, output: &mut Output<'_>) -> Result<(), StepError> {
    kernels::copy(Supported::detect(), view.data, output.tensor(view.spec)?.data);
    Ok(())
}

impl Transform for SomeSteps {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        self.rule.check(self.steps.len())?;
        self.steps.iter().try_for_each(|step| step.check())
    }

    fn is_geometric(&self) -> bool {
        self.steps.iter().any(|step| step.is_geometric())
    }

    fn riders_left(&self) -> Option<&'static str> {
        self.steps.iter().find_map(|step| step.riders_left())
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let rides_along = self.rides_along(input);
        let after = |step: &Arc<dyn Transform>, input: &FieldType| {
            if rides_along && !step.is_geometric() { Ok(input.clone()) } else { step.output_type(input) }
        };
        match &self.rule {
            Rule::All(_) => {
                let output = self.steps.iter().try_fold(input.clone(), |input, step| after(step, &input))?;
                let same = || Needs(format!("steps in it that give what they get: they give {output}"));
                if output == *input { Ok(output) } else { Err(same()) }
            }
            Rule::One(_) => {
                let outputs = self.steps.iter().map(|step| after(step, input)).collect::<Result<Vec<_>, _>>()?;
                let output = outputs.first().cloned().unwrap_or_else(|| input.clone());
                match outputs.iter().find(|other| **other != output) {
                    Some(other) => Err(Needs(format!("steps in it that give the same: {output} and {other} differ"))),
                    None => Ok(output),
                }
            }
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, "a tensor")?;
        let rides_along = self.follows(view.spec);
        let chosen = self.rule.draw(self.steps.len(), &mut scope.random);
        let key = scope.random.bits();
        let done: Vec<usize> = chosen.filter(|&index| !rides_along || self.steps[index].is_geometric()).collect();
        let Some((&last, before)) = done.split_last() else { return copy(view, output) };
        let mut scratch = std::mem::take(scope.scratch::<BetweenScratch>());
        let mut between = None;
        for &index in before {
            let buffer = scratch.buffers.pop().unwrap_or_default();
            let input = between.as_ref().map_or(input, crate::output::Made::view);
            let made = output.between(buffer, |output| self.step(key, index, input, output, scope))?;
            if let Some(made) = between.replace(made) {
                scratch.buffers.push(made.into_buffer());
            }
        }
        let input = between.as_ref().map_or(input, crate::output::Made::view);
        self.step(key, last, input, output, scope)?;
        scratch.buffers.extend(between.map(crate::output::Made::into_buffer));
        *scope.scratch() = scratch;
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RandomApply {
    steps: Vec<StepSpec>,
    #[serde(default = "half")]
    p: f64,
}

fn half() -> f64 {
    0.5
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RandomChoice {
    steps: Vec<StepSpec>,
    #[serde(default)]
    p: Option<Vec<f64>>,
}

/// All of some steps, with some probability.
pub(super) fn random_apply(parameters: toml::Table) -> Result<Action, toml::de::Error> {
    let RandomApply { steps, p } = parameters.try_into()?;
    made(&steps, Rule::All(p))
}

/// One of some steps.
pub(super) fn random_choice(parameters: toml::Table) -> Result<Action, toml::de::Error> {
    let RandomChoice { steps, p } = parameters.try_into()?;
    let p = p.unwrap_or_else(|| vec![1.0; steps.len()]);
    made(&steps, Rule::One(p))
}

fn made(specs: &[StepSpec], rule: Rule) -> Result<Action, toml::de::Error> {
    let refused = |message: String| <toml::de::Error as serde::de::Error>::custom(message);
    let mut steps = Vec::new();
    for spec in specs {
        if let Some(key) = ["name", "stage", "fields"].into_iter().find(|key| spec.has(key)) {
            return Err(refused(format!("a step in `steps` has `{key}`: only the step around it can")));
        }
        // An error of a step says what is wrong with it; the pipeline is named around it.
        let step = spec.to_step("steps", "image").map_err(|error| refused(error.to_string()))?;
        match step.action {
            Action::Transform(transform) if transform.files().is_none() => steps.push(transform),
            _ => return Err(refused(format!("`{}` cannot be in `steps`: it is not a change of one value", step.name))),
        }
    }
    let augments: Option<Vec<Augment>> =
        steps.iter().map(|step| (&**step as &dyn std::any::Any).downcast_ref::<Augment>().cloned()).collect();
    Ok(Action::Transform(match augments {
        Some(steps) => Arc::new(Augment::new(SomeAugmentations { steps, rule })),
        None => Arc::new(SomeSteps { steps, rule }),
    }))
}
