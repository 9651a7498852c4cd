//! Arrays of numbers: read one from `NumPy`'s file, and take the root mean square of its periods.

use forebay_codec::signal::{rms, rms_dtype, rms_spec};
use forebay_codec::{TensorView, npy};
use serde::{Deserialize, Serialize};

use super::{encoded, tensor};
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Reads the tensor in a `.npy` file, as `numpy.save` writes it: little endian, C order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeNpy {
    /// What the files hold, with `?` for a size that differs: `float32[2500, ?]`. A file that holds something else is an error.
    #[serde(rename = "type")]
    pub kind: FieldType,
}

impl DecodeNpy {
    fn view<'a>(&self, input: ValueView<'a>) -> Result<TensorView<'a>, StepError> {
        let view = npy::view(encoded(input)?)?;
        if self.kind.holds(&view.spec) {
            return Ok(view);
        }
        Err(StepError::OtherType { found: view.spec, expected: self.kind.clone() })
    }
}

impl Transform for DecodeNpy {
    fn check(&self) -> Result<(), BadParameter> {
        let is_tensor = matches!(self.kind, FieldType::Tensor { .. });
        BadParameter::unless(is_tensor, "type", &self.kind, "that of a tensor, as `float32[2500, ?]`")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Bytes => Ok(self.kind.clone()),
            _ => Err(Needs("the bytes of a NumPy file".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let view = self.view(input)?;
        output.tensor(view.spec)?.data.copy_from_slice(view.data);
        Ok(())
    }
}

/// The root mean square of each `period` elements, whatever the dimensions: `float32` of `float32`, else `float64`. What is left over at
/// the end counts for nothing.
///
/// PRESTO's computation on synthetic data, as its `NumPy` variant does it: periods *of* 500 elements. Its TensorFlow variant
/// makes 500 periods, which is another computation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rms {
    /// Elements in a period.
    pub period: usize,
}

impl Default for Rms {
    fn default() -> Self {
        Self { period: 500 }
    }
}

const ARRAY: &str = "a tensor";

impl Transform for Rms {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.period > 0, "period", &self.period, "at least 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let FieldType::Tensor { dtype, dims } = input else { return Err(Needs(ARRAY.to_owned())) };
        let elements = dims.iter().try_fold(1_usize, |product, dim| product.checked_mul((*dim)?));
        let periods = elements.map(|elements| elements / self.period);
        Ok(FieldType::Tensor { dtype: rms_dtype(*dtype), dims: vec![periods] })
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, ARRAY)?;
        Ok(rms(view, self.period, output.tensor(rms_spec(&view.spec, self.period))?)?)
    }
}
