//! Element types: from one to another, scaled if that is wanted.

use forebay_codec::{DType, TensorMut, TensorSpec, TensorView};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::tensor;
use crate::error::StepError;
use crate::kernels::{self, Conversion, Level};
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Transform};
use crate::steps::float_output;

/// Converts a tensor to another element type, as torchvision's `ToDtype`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToDtype {
    /// The element type that comes out.
    #[serde(serialize_with = "name", deserialize_with = "named")]
    pub dtype: DType,
    /// Whether values are scaled, so that the largest of a type of whole numbers is 1 as floating point.
    #[serde(default)]
    pub scale: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn name<S: Serializer>(dtype: &DType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(dtype)
}

fn named<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
    let text = String::deserialize(deserializer)?;
    let names = DType::ALL.map(DType::name).join("`, `");
    DType::from_name(&text)
        .ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not an element type: use one of `{names}`")))
}

/// The largest value of a type of whole numbers; none of floating point.
fn largest(dtype: DType) -> Option<f64> {
    match dtype {
        DType::U8 => Some(f64::from(u8::MAX)),
        DType::U16 => Some(f64::from(u16::MAX)),
        DType::I16 => Some(f64::from(i16::MAX)),
        DType::I32 => Some(f64::from(i32::MAX)),
        DType::I64 => Some(i64::MAX as f64),
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => None,
    }
}

/// The elements, wherever they lie, as numbers.
fn numbers(view: TensorView<'_>) -> impl Iterator<Item = f64> + '_ {
    let dtype = view.spec.dtype;
    view.data.chunks_exact(dtype.bytes()).map(move |bytes| dtype.read(bytes))
}

/// Halves single precision, by the processor's instruction where it has one.
fn halve<T: Copy + bytemuck::Pod>(view: TensorView<'_>, slot: &mut TensorMut<'_>) -> bool
where
    [T]: HalfFloatSliceExt,
{
    let (Ok(from), Ok(to)) = (bytemuck::try_cast_slice(view.data), bytemuck::try_cast_slice_mut::<u8, T>(slot.data))
    else {
        return false;
    };
    to.convert_from_f32_slice(from);
    true
}

impl Transform for ToDtype {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dims, .. } => Ok(FieldType::Tensor { dtype: self.dtype, dims: dims.clone() }),
            _ => Err(Needs("a tensor".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, "a tensor")?;
        let (from, to) = (view.spec.dtype, self.dtype);
        let mut slot: TensorMut<'_> = output.tensor(TensorSpec { dtype: to, ..view.spec })?;
        if from == to {
            slot.data.copy_from_slice(view.data);
            return Ok(());
        }
        if (from, to) == (DType::U8, DType::F32) {
            let factor = if self.scale { 1.0 / 255.0 } else { 1.0 };
            let conversion = Conversion::Affine { factors: [factor; 3], offsets: [0.0; 3] };
            let out = float_output(&mut slot)?;
            let whole = view.data.len() / 3 * 3;
            kernels::interleaved(Level::best(), &view.data[..whole], &mut out[..whole], conversion);
            for (to, &byte) in out[whole..].iter_mut().zip(&view.data[whole..]) {
                *to = f32::from(byte) * factor;
            }
            return Ok(());
        }
        let halved = match (from, to) {
            (DType::F32, DType::F16) => halve::<f16>(view, &mut slot),
            (DType::F32, DType::BF16) => halve::<bf16>(view, &mut slot),
            _ => false,
        };
        if halved {
            return Ok(());
        }
        let scaled: Box<dyn Fn(f64) -> f64> = match (largest(from), largest(to)) {
            _ if !self.scale => Box::new(|number| number),
            (Some(most), None) => Box::new(move |number| number / most),
            // torchvision's: all of the range is reached, by values up to 1.
            (None, Some(most)) => Box::new(move |number| (number * (most + 1.0 - 1e-3)).floor()),
            (Some(before), Some(after)) => {
                let ratio = (after + 1.0) / (before + 1.0);
                Box::new(move |number| (number * ratio).floor())
            }
            (None, None) => Box::new(|number| number),
        };
        crate::stored::fill(numbers(view).map(scaled), &mut slot);
        Ok(())
    }
}
