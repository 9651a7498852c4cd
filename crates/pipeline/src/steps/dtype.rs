//! Element types: from one to another, scaled if that is wanted.

use forebay_codec::{DType, Element, TensorMut, TensorSpec, TensorView};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::tensor;
use crate::error::StepError;
use crate::kernels::{self, Supported};
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

/// How a number of one type becomes one of another.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scaling {
    /// It stays what it is.
    None,
    /// The largest becomes 1.
    Divided(f64),
    /// By so much, and the next whole number below.
    Floored(f64),
}

impl Scaling {
    fn of(from: DType, to: DType, scale: bool) -> Self {
        match (largest(from), largest(to)) {
            _ if !scale => Self::None,
            (Some(most), None) => Self::Divided(most),
            // torchvision's: all of the range is reached, by values up to 1.
            (None, Some(most)) => Self::Floored(most + 1.0 - 1e-3),
            (Some(before), Some(after)) => Self::Floored((after + 1.0) / (before + 1.0)),
            (None, None) => Self::None,
        }
    }

    /// The elements, wherever they lie, one by one. Each pair of types and each way has a loop of its own, in which the types are constants.
    fn convert<A: Element, B: Element>(self, from: &[u8], to: &mut [u8]) {
        // What becomes an unsigned number is cut to a whole one anyway, and less than 0 becomes 0.
        let is_cut = matches!(B::DTYPE, DType::U8 | DType::U16);
        match self {
            Self::None => each::<A, B>(from, to, |number| number),
            Self::Divided(most) => each::<A, B>(from, to, |number| number / most),
            Self::Floored(factor) if is_cut => each::<A, B>(from, to, |number| number * factor),
            Self::Floored(factor) => each::<A, B>(from, to, |number| (number * factor).floor()),
        }
    }
}

/// A loop over elements of type `A` that become elements of type `B`.
fn each<A: Element, B: Element>(from: &[u8], to: &mut [u8], scaled: impl Fn(f64) -> f64) {
    let from = from.chunks_exact(size_of::<A>());
    for (from, to) in from.zip(to.chunks_exact_mut(size_of::<B>())) {
        B::DTYPE.write(scaled(A::DTYPE.read(from)), to);
    }
}

/// Runs `$body` with the Rust type `$rust` that elements of type `$dtype` are.
macro_rules! with_element {
    (@ $dtype:expr, $rust:ident, $body:expr, $($name:ident $type:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $rust = $type;
                $body
            })*
        }
    };
    ($dtype:expr, $rust:ident, $body:expr) => {
        with_element!(@ $dtype, $rust, $body, U8 u8, U16 u16, I16 i16, I32 i32, I64 i64, F32 f32, F64 f64, F16 f16, BF16 bf16)
    };
}

/// Bytes become what a table has for each of them.
fn look_up<const N: usize>(from: &[u8], to: &mut [u8], table: &[[u8; 8]; 256]) {
    let table: [[u8; N]; 256] = std::array::from_fn(|byte| std::array::from_fn(|index| table[byte][index]));
    for (to, &byte) in to.as_chunks_mut::<N>().0.iter_mut().zip(from) {
        *to = table[usize::from(byte)];
    }
}

/// Bytes become wider whole numbers of the same value.
fn widen<const N: usize>(from: &[u8], to: &mut [u8]) {
    for (to, &byte) in to.as_chunks_mut::<N>().0.iter_mut().zip(from) {
        *to = std::array::from_fn(|index| if index == 0 { byte } else { 0 });
    }
}

/// The same for bytes: there are so few that each is converted once.
fn convert_bytes(from: &[u8], to: &mut [u8], dtype: DType, scaling: Scaling) {
    if scaling == Scaling::None && !dtype.is_float() {
        return match dtype.bytes() {
            2 => widen::<2>(from, to),
            4 => widen::<4>(from, to),
            _ => widen::<8>(from, to),
        };
    }
    let table = std::array::from_fn(|byte| {
        let mut element = [0; 8];
        let element_bytes = &mut element[..dtype.bytes()];
        with_element!(dtype, To, scaling.convert::<u8, To>(&[byte as u8], element_bytes));
        element
    });
    match dtype.bytes() {
        2 => kernels::look_up_pairs(Supported::detect(), from, to, &table.map(|[first, second, ..]| [first, second])),
        4 => look_up::<4>(from, to, &table),
        _ => look_up::<8>(from, to, &table),
    }
}

/// Converts the elements of one type to another.
fn convert(from: &[u8], from_dtype: DType, to: &mut [u8], to_dtype: DType, scale: bool) {
    let scaling = Scaling::of(from_dtype, to_dtype, scale);
    if from_dtype == DType::U8 {
        return convert_bytes(from, to, to_dtype, scaling);
    }
    with_element!(from_dtype, From, with_element!(to_dtype, To, scaling.convert::<From, To>(from, to)));
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
            kernels::floats(Supported::detect(), view.data, float_output(&mut slot)?, factor);
            return Ok(());
        }
        let halved = match (from, to) {
            (DType::F32, DType::F16) => halve::<f16>(view, &mut slot),
            (DType::F32, DType::BF16) => halve::<bf16>(view, &mut slot),
            _ => false,
        };
        if !halved {
            convert(view.data, from, slot.data, to, self.scale);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the value of an element becomes: the definition, one by one.
    fn defined(from: DType, to: DType, scale: bool, number: f64) -> f64 {
        match (largest(from), largest(to)) {
            _ if !scale => number,
            (Some(most), None) => number / most,
            (None, Some(most)) => (number * (most + 1.0 - 1e-3)).floor(),
            (Some(before), Some(after)) => (number * ((after + 1.0) / (before + 1.0))).floor(),
            (None, None) => number,
        }
    }

    #[test]
    fn each_pair_of_types_is_converted_as_its_definition_says() {
        let numbers = [0.0, -0.0, 0.25, 1.0 / 3.0, 0.5, 0.999, 1.0, 1.001, -0.5, -1.0, 2.5, 127.0, 128.0, 255.0, 256.0]
            .into_iter()
            .chain([-32768.0, 32767.0, 65535.0, 1e9, -1e9, 1e19, -1e19, 1e-7, 1e300, f64::INFINITY, f64::NAN])
            .chain((0..256).map(f64::from));
        let numbers: Vec<f64> = numbers.collect();
        for from in DType::ALL {
            let mut given = vec![0; numbers.len() * from.bytes()];
            let elements = given.chunks_exact_mut(from.bytes()).zip(&numbers);
            elements.for_each(|(element, number)| from.write(*number, element));
            for (to, scale) in DType::ALL.into_iter().flat_map(|to| [(to, false), (to, true)]) {
                if from == to {
                    continue;
                }
                let mut expected = vec![0; numbers.len() * to.bytes()];
                for (given, expected) in given.chunks_exact(from.bytes()).zip(expected.chunks_exact_mut(to.bytes())) {
                    to.write(defined(from, to, scale, from.read(given)), expected);
                }
                // From a place where no element is aligned, and into one.
                let unaligned: Vec<u8> = std::iter::once(7).chain(given.iter().copied()).collect();
                let mut found = vec![7; 1 + expected.len()];
                convert(&unaligned[1..], from, &mut found[1..], to, scale);
                assert!(found[1..] == expected, "{from} to {to}, scaled: {scale}");
            }
        }
    }
}
