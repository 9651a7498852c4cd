//! The tensor: an element type, a shape and row-major bytes.
//!
//! A [`Tensor`] is immutable and cheap to clone or slice, because its bytes are shared: the pixels of a stored image may
//! be a slice of the block that was read from disk. Work happens on views: an operation reads a [`TensorView`] and writes
//! a [`TensorMut`], and the caller decides where the output goes (a scratch buffer, or the slot of a batch).

use std::fmt;

use bytes::Bytes;
use half::{bf16, f16};

use crate::error::Result;
use crate::memory;

/// The type of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// Unsigned 8 bit.
    U8,
    /// Unsigned 16 bit.
    U16,
    /// Signed 16 bit.
    I16,
    /// Signed 32 bit.
    I32,
    /// Signed 64 bit.
    I64,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// IEEE 754 half precision.
    F16,
    /// The upper half of single precision: its range, with fewer digits.
    BF16,
}

impl DType {
    /// Bytes per element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }

    /// All of them. Encoded tensors name theirs by its index here.
    pub const ALL: [Self; 9] =
        [Self::U8, Self::U16, Self::I16, Self::I32, Self::I64, Self::F32, Self::F64, Self::F16, Self::BF16];

    /// Whether elements are floating point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// The number that the bytes of one element are; a 64-bit integer loses digits.
    ///
    /// # Panics
    /// If there are fewer bytes than an element has.
    #[inline]
    pub fn read(self, bytes: &[u8]) -> f64 {
        macro_rules! read {
            ($rust:ty) => {
                <$rust>::from_le_bytes(std::array::from_fn(|index| bytes[index]))
            };
        }
        match self {
            Self::U8 => f64::from(bytes[0]),
            Self::U16 => f64::from(read!(u16)),
            Self::I16 => f64::from(read!(i16)),
            Self::I32 => f64::from(read!(i32)),
            Self::I64 => read!(i64) as f64,
            Self::F32 => f64::from(read!(f32)),
            Self::F64 => read!(f64),
            Self::F16 => read!(f16).to_f64(),
            Self::BF16 => read!(bf16).to_f64(),
        }
    }

    /// Writes a number as one element: the nearest that there is; an integer is cut, not rounded.
    ///
    /// # Panics
    /// If `to` is not as long as an element.
    #[inline]
    pub fn write(self, number: f64, to: &mut [u8]) {
        match self {
            Self::U8 => to.copy_from_slice(&(number as u8).to_le_bytes()),
            Self::U16 => to.copy_from_slice(&(number as u16).to_le_bytes()),
            Self::I16 => to.copy_from_slice(&(number as i16).to_le_bytes()),
            Self::I32 => to.copy_from_slice(&(number as i32).to_le_bytes()),
            Self::I64 => to.copy_from_slice(&(number as i64).to_le_bytes()),
            Self::F32 => to.copy_from_slice(&(number as f32).to_le_bytes()),
            Self::F64 => to.copy_from_slice(&number.to_le_bytes()),
            Self::F16 => to.copy_from_slice(&f16::from_f64(number).to_le_bytes()),
            Self::BF16 => to.copy_from_slice(&bf16::from_f64(number).to_le_bytes()),
        }
    }

    /// The type of this short name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// The short name, as `NumPy` (and `ml_dtypes`) spells it: `uint8`, `float32`, `bfloat16`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type that is one element of a tensor.
pub trait Element: bytemuck::Pod {
    /// The matching [`DType`].
    const DTYPE: DType;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
element!(u8 => U8, u16 => U16, i16 => I16, i32 => I32, i64 => I64, f32 => F32, f64 => F64, f16 => F16, bf16 => BF16);

/// The most dimensions a tensor has.
pub const RANK_MAX: usize = 6;

/// Up to [`RANK_MAX`] dimensions, outermost first. Copied freely: no allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; RANK_MAX],
    rank: u8,
}

impl Shape {
    /// A shape of the given dimensions.
    ///
    /// # Panics
    /// If there are more than [`RANK_MAX`]; use [`Shape::try_new`] for shapes that come from a file.
    pub fn new(dims: &[usize]) -> Self {
        Self::try_new(dims).expect("a shape has at most RANK_MAX dimensions")
    }

    /// A shape, or `None` where there are more than [`RANK_MAX`] dimensions or the element count overflows.
    pub fn try_new(dims: &[usize]) -> Option<Self> {
        let mut all = [0; RANK_MAX];
        all.get_mut(..dims.len())?.copy_from_slice(dims);
        dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(dim))?;
        Some(Self { dims: all, rank: dims.len() as u8 })
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank as usize]
    }

    /// How many elements.
    pub fn elements(&self) -> usize {
        self.dims().iter().product()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.dims()).finish()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a tensor is, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorSpec {
    /// The element type.
    pub dtype: DType,
    /// The dimensions.
    pub shape: Shape,
}

impl TensorSpec {
    /// A tensor of this element type and these dimensions.
    pub fn new(dtype: DType, dims: &[usize]) -> Self {
        Self { dtype, shape: Shape::new(dims) }
    }

    /// How many bytes its elements take; saturates, so that a size check against a limit always sees an absurd shape.
    pub fn bytes(&self) -> usize {
        self.shape.elements().saturating_mul(self.dtype.bytes())
    }

    /// Height, width and channels, if this has the three dimensions of a picture.
    pub fn as_picture(&self) -> Option<(usize, usize, usize)> {
        match *self.shape.dims() {
            [height, width, channels] => Some((height, width, channels)),
            _ => None,
        }
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// A tensor that owns (a share of) its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    spec: TensorSpec,
    data: Bytes,
}

impl Tensor {
    /// A tensor of `data`, or `None` if the length does not fit `spec`.
    pub fn new(spec: TensorSpec, data: impl Into<Bytes>) -> Option<Self> {
        let data = data.into();
        (data.len() == spec.bytes()).then_some(Self { spec, data })
    }

    /// A tensor with a copy of `elements`, or `None` if their number does not fit `dims`.
    pub fn from_elements<T: Element>(dims: &[usize], elements: &[T]) -> Option<Self> {
        let shape = Shape::try_new(dims)?;
        Self::new(TensorSpec { dtype: T::DTYPE, shape }, Bytes::copy_from_slice(bytemuck::cast_slice(elements)))
    }

    /// What it is.
    pub fn spec(&self) -> &TensorSpec {
        &self.spec
    }

    /// Its bytes: row-major, elements in the machine's (little-endian) order.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Its elements, by value.
    pub fn into_data(self) -> Bytes {
        self.data
    }

    /// A view of it.
    pub fn view(&self) -> TensorView<'_> {
        TensorView { spec: self.spec, data: &self.data }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({})", self.spec)
    }
}

/// A borrowed tensor.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    /// What it is.
    pub spec: TensorSpec,
    /// Its bytes; always `spec.bytes()` long.
    pub data: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// An owned copy; an error where there is no memory for it.
    ///
    /// # Panics
    /// If the view breaks its own invariant: `data` is not as long as `spec` says.
    pub fn to_tensor(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.spec, memory::copied(self.data)?).expect("a view is as long as its spec"))
    }

    /// Its elements, or `None` if `T` is not its type or the bytes are not aligned for `T`.
    ///
    /// Bytes that came out of the middle of a record often are not: see [`TensorView::elements_or_copy`].
    pub fn elements<T: Element>(&self) -> Option<&'a [T]> {
        (self.spec.dtype == T::DTYPE).then(|| bytemuck::try_cast_slice(self.data).ok()).flatten()
    }

    /// Its elements, copied into `scratch` where the bytes are not aligned for `T`; `None` if `T` is not its type.
    pub fn elements_or_copy<'s, T: Element>(&self, scratch: &'s mut Vec<T>) -> Option<&'s [T]>
    where
        'a: 's,
    {
        if self.spec.dtype != T::DTYPE {
            return None;
        }
        if let Some(elements) = self.elements() {
            return Some(elements);
        }
        scratch.clear();
        scratch.resize(self.spec.shape.elements(), T::zeroed());
        bytemuck::cast_slice_mut::<T, u8>(scratch).copy_from_slice(self.data);
        Some(scratch)
    }
}

/// A borrowed tensor to write.
pub struct TensorMut<'a> {
    /// What it is.
    pub spec: TensorSpec,
    /// Its bytes; always `spec.bytes()` long. What they hold before is unspecified.
    pub data: &'a mut [u8],
}

impl TensorMut<'_> {
    /// Its elements to write, or `None` if `T` is not its type or the bytes are not aligned for `T`.
    pub fn elements_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        (self.spec.dtype == T::DTYPE).then(|| bytemuck::try_cast_slice_mut(self.data).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_the_nearest_of_their_type() {
        for dtype in DType::ALL {
            let mut bytes = vec![0; dtype.bytes()];
            for number in [0.0_f64, 1.0, 100.0] {
                dtype.write(number, &mut bytes);
                assert_eq!(dtype.read(&bytes).to_bits(), number.to_bits(), "{dtype}");
            }
            // Too large for all but the floating point ones that reach so far.
            dtype.write(1e30, &mut bytes);
            let found = dtype.read(&bytes);
            match dtype {
                DType::F16 => assert!(found.is_infinite()),
                DType::BF16 => assert!((found / 1e30 - 1.0).abs() < 1.0 / 256.0, "{found}"),
                DType::F32 | DType::F64 => assert!((found / 1e30 - 1.0).abs() < 1e-6, "{found}"),
                _ => assert!(found < 1e20, "{dtype} {found}"),
            }
        }
        // A third, rounded to eleven and to eight digits of two.
        let rounded = |dtype: DType| {
            let mut bytes = [0; 2];
            dtype.write(1.0 / 3.0, &mut bytes);
            dtype.read(&bytes).to_bits()
        };
        let expected = [1365.0_f64 / 4096.0, 171.0 / 512.0].map(f64::to_bits);
        assert_eq!([rounded(DType::F16), rounded(DType::BF16)], expected);
    }

    #[test]
    fn a_tensor_is_as_long_as_its_spec_says() {
        let spec = TensorSpec::new(DType::F32, &[2, 3]);
        assert_eq!(spec.bytes(), 24);
        assert!(Tensor::new(spec, vec![0; 24]).is_some());
        assert!(Tensor::new(spec, vec![0; 23]).is_none());
        assert_eq!(spec.to_string(), "float32[2, 3]");
    }

    #[test]
    fn a_shape_that_overflows_is_refused() {
        assert!(Shape::try_new(&[usize::MAX, 2]).is_none());
        assert!(Shape::try_new(&[1; RANK_MAX + 1]).is_none());
        assert_eq!(TensorSpec { dtype: DType::F64, shape: Shape::new(&[usize::MAX / 2]) }.bytes(), usize::MAX);
    }

    #[test]
    fn misaligned_elements_are_copied() {
        let tensor = Tensor::from_elements(&[2], &[1.5_f32, -2.0]).expect("two elements");
        let mut shifted = [0_u8; 9];
        for start in 0..2 {
            shifted[start..start + 8].copy_from_slice(tensor.data());
            let view = TensorView { spec: *tensor.spec(), data: &shifted[start..start + 8] };
            assert_eq!(view.elements_or_copy::<f32>(&mut Vec::new()), Some(&[1.5, -2.0][..]));
            assert_eq!(view.elements_or_copy::<i32>(&mut Vec::new()), None);
        }
    }
}
