//! Decode an encoded tensor: the step that a strategy with an encoding of tensors puts before all others. No pipeline names it.

use forebay_codec::tensor_encoding::{EncodedTensor, TensorDecoder};

use super::encoded;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Transform};

/// Decodes a tensor that was stored encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodeTensor {
    /// What was stored. What turns out to be something else is damaged.
    pub(crate) kind: FieldType,
}

impl Transform for DecodeTensor {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Bytes => Ok(self.kind.clone()),
            _ => Err(Needs("the bytes of an encoded tensor".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let value = EncodedTensor::open(encoded(input)?)?;
        let spec = value.spec();
        if !self.kind.holds(&spec) {
            return Err(StepError::Codec(forebay_codec::Error::Format {
                format: "tensor",
                problem: format!("it is {spec}, but should be {}", self.kind).into(),
                offset: None,
                truncated: false,
                source: None,
            }));
        }
        output.working(value.working_bytes())?;
        let decoder: &mut TensorDecoder = scope.scratch();
        Ok(decoder.decode_into(&value, output.tensor(spec)?)?)
    }
}
