//! Masked language models: tokens that are hidden, and what they were.

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use crate::error::StepError;
use crate::random::Random;
use crate::sample::{SampleView, ValueView};
use crate::sample_changes::SampleChanges;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, SampleTransform};

/// Hides tokens, and puts what they were into another field, where all others are -100, which losses leave out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskTokens {
    /// The token that stands for a hidden one.
    pub mask_token_id: i32,
    /// How many tokens there are: a hidden one may become any.
    pub vocab_size: i32,
    /// How probable it is that a token is hidden.
    #[serde(default = "default_probability")]
    pub mlm_probability: f64,
    /// How many of the hidden ones become `mask_token_id`.
    #[serde(default = "default_mask_replace")]
    pub mask_replace_prob: f64,
    /// How many of them become another token, at random; the rest stays.
    #[serde(default = "default_random_replace")]
    pub random_replace_prob: f64,
    /// Tokens that are never hidden: padding, the beginning and end of a text.
    #[serde(default)]
    pub special_token_ids: Vec<i32>,
    /// The field of what the tokens were.
    #[serde(default = "default_labels")]
    pub labels: String,
}

fn default_probability() -> f64 {
    0.15
}

fn default_mask_replace() -> f64 {
    0.8
}

fn default_random_replace() -> f64 {
    0.1
}

fn default_labels() -> String {
    "labels".to_owned()
}

/// What stands at the places of tokens that were not hidden.
const IGNORED: i32 = -100;

const TOKENS: &str = "token ids, int32[tokens]";

impl MaskTokens {
    /// What becomes of each token, and its label.
    fn drawn<'a>(&'a self, tokens: TensorView<'a>, mut random: Random) -> impl Iterator<Item = (i32, i32)> + 'a {
        tokens.data.as_chunks::<4>().0.iter().map(move |bytes| {
            let token = i32::from_le_bytes(*bytes);
            let hidden = random.unit() < self.mlm_probability;
            let (which, other) = (random.unit(), random.below(self.vocab_size as usize) as i32);
            if !hidden || self.special_token_ids.contains(&token) {
                return (token, IGNORED);
            }
            if which < self.mask_replace_prob {
                (self.mask_token_id, token)
            } else if which < self.mask_replace_prob + self.random_replace_prob {
                (other, token)
            } else {
                (token, token)
            }
        })
    }
}

fn put(numbers: impl Iterator<Item = i32>, output: &mut TensorMut<'_>) {
    let to = output.data.as_chunks_mut::<4>().0;
    to.iter_mut().zip(numbers).for_each(|(to, number)| *to = number.to_le_bytes());
}

impl SampleTransform for MaskTokens {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.vocab_size > 0, "vocab_size", &self.vocab_size, "at least 1")?;
        let share = |p: f64| (0.0..=1.0).contains(&p);
        let p = self.mlm_probability;
        BadParameter::unless(share(p), "mlm_probability", &p, "between 0 and 1")?;
        BadParameter::unless(
            share(self.mask_replace_prob),
            "mask_replace_prob",
            &self.mask_replace_prob,
            "between 0 and 1",
        )?;
        let both = share(self.random_replace_prob) && self.mask_replace_prob + self.random_replace_prob <= 1.0 + 1e-9;
        let expected = "from 0 to what `mask_replace_prob` leaves of 1";
        BadParameter::unless(both, "random_replace_prob", &self.random_replace_prob, expected)
    }

    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs> {
        let [tokens] = fields else { return Err(Needs("one field of tokens".to_owned())) };
        if *tokens == self.labels {
            return Err(Needs(format!("`labels` to name another field than that of the tokens, `{tokens}`")));
        }
        match input.field(tokens) {
            Some(kind @ FieldType::Tensor { dtype: DType::I32, dims }) if dims.len() == 1 => {
                let mut output = input.clone();
                output.put(&self.labels, kind.clone());
                Ok(output)
            }
            _ => Err(Needs(format!("{TOKENS} in field `{tokens}`"))),
        }
    }

    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        let name = fields.first().map_or("", String::as_str);
        let found = sample.fields.iter().find(|(field, _)| *field == name);
        let Some((_, ValueView::Tensor(tokens))) = found else {
            return Err(StepError::NoField { field: name.to_owned() });
        };
        let random = &scope.random;
        changes.set(name, &mut |output| {
            put(self.drawn(*tokens, random.clone()).map(|(token, _)| token), &mut output.tensor(tokens.spec)?);
            Ok(())
        })?;
        changes.set(&self.labels, &mut |output| {
            put(self.drawn(*tokens, random.clone()).map(|(_, label)| label), &mut output.tensor(tokens.spec)?);
            Ok(())
        })
    }
}
