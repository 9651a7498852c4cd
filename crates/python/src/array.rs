//! Zero-copy arrays for Python: the buffer protocol over a batch's memory.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use bytes::BytesMut;
use forebay_codec::{DType, Tensor, TensorSpec};
use forebay_engine::load::{Batch, Column, Recycler};
use forebay_engine::sync::Mutex;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::in_process::InProcess;

/// Elements in memory, row-major, that Python may read and write. `numpy.asarray` makes an array of it without a copy; when
/// the last array is gone, the memory goes back to the loader, which uses it for another batch.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Array {
    memory: InProcess<Memory>,
    dtype: DType,
    /// In the form that the buffer protocol wants; both live as long as the array, and so as any view of it.
    shape: Box<[isize]>,
    strides: Box<[isize]>,
    /// Takes a buffer of its own back.
    recycler: Recycler,
}

/// Whose memory it is.
enum Memory {
    /// The column of this number of a batch, which goes back to its pool when all of its columns are free.
    Batch(Arc<Mutex<Batch>>, usize),
    /// A buffer of its own.
    Buffer(Mutex<BytesMut>),
    /// Whole numbers.
    Numbers(Mutex<Vec<i64>>),
}

impl Memory {
    /// Its address and size. The memory does not move: its length never changes.
    fn span(&self) -> (*mut u8, usize) {
        match self {
            Self::Batch(batch, column) => match &mut batch.lock().columns[*column].1 {
                Column::Dense { data, .. } => (data.as_mut_ptr(), data.len()),
                _ => unreachable!("made of a dense column"),
            },
            Self::Buffer(buffer) => {
                let mut buffer = buffer.lock();
                (buffer.as_mut_ptr(), buffer.len())
            }
            Self::Numbers(numbers) => {
                let mut numbers = numbers.lock();
                (numbers.as_mut_ptr().cast(), size_of_val(&numbers[..]))
            }
        }
    }
}

impl Array {
    /// The tensors of a dense column of `samples` samples.
    pub(crate) fn of_column(batch: &Arc<Mutex<Batch>>, column: usize, spec: TensorSpec, samples: usize) -> Self {
        let dims: Vec<usize> = std::iter::once(samples).chain(spec.shape.dims().iter().copied()).collect();
        Self::new(Memory::Batch(Arc::clone(batch), column), spec.dtype, &dims)
    }

    /// One tensor. Its bytes are taken over if nobody shares them, and copied otherwise, since Python may write to them.
    pub(crate) fn of_tensor(tensor: Tensor) -> Self {
        let spec = *tensor.spec();
        let data = tensor.data().clone();
        drop(tensor);
        let aligned = |buffer: &BytesMut| buffer.as_ptr().align_offset(spec.dtype.bytes()) == 0;
        let buffer = match data.try_into_mut() {
            Ok(buffer) if aligned(&buffer) => buffer,
            Ok(buffer) => aligned_copy(&buffer),
            Err(shared) => aligned_copy(&shared),
        };
        Self::new(Memory::Buffer(Mutex::new(buffer)), spec.dtype, spec.shape.dims())
    }

    /// The same, whose buffer goes to `recycler` when it is free.
    pub(crate) fn recycled(mut self, recycler: Recycler) -> Self {
        self.recycler = recycler;
        self
    }

    /// Whole numbers, one for each sample.
    pub(crate) fn of_numbers(numbers: Vec<i64>) -> Self {
        let samples = numbers.len();
        Self::new(Memory::Numbers(Mutex::new(numbers)), DType::I64, &[samples])
    }

    fn new(memory: Memory, dtype: DType, dims: &[usize]) -> Self {
        let mut strides = vec![0; dims.len()];
        let mut stride = dtype.bytes();
        for (to, dim) in strides.iter_mut().zip(dims).rev() {
            *to = stride as isize;
            stride *= dim;
        }
        let shape = dims.iter().map(|&dim| dim as isize).collect();
        Self { memory: InProcess::new(memory), dtype, shape, strides: strides.into(), recycler: Recycler::default() }
    }

    /// How a buffer names its elements (the codes of Python's `struct`).
    fn format(&self) -> &'static CStr {
        match self.dtype {
            DType::U8 => c"B",
            // Of `bfloat16`, for which Python has no name, the bits.
            DType::U16 | DType::BF16 => c"H",
            DType::I16 => c"h",
            DType::I32 => c"i",
            // `l` is what NumPy calls `int64` where a C long has 64 bits.
            DType::I64 if size_of::<std::ffi::c_long>() == 8 => c"l",
            DType::I64 => c"q",
            DType::F32 => c"f",
            DType::F64 => c"d",
            DType::F16 => c"e",
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(Memory::Buffer(buffer)) = self.memory.take_value() {
            self.recycler.give(buffer.into_inner());
        }
    }
}

/// A copy that is aligned for every element type.
fn aligned_copy(data: &[u8]) -> BytesMut {
    const ALIGN_BYTES: usize = 64;
    let mut buffer = BytesMut::zeroed(data.len() + ALIGN_BYTES);
    let skip = buffer.as_ptr().align_offset(ALIGN_BYTES).min(ALIGN_BYTES);
    drop(buffer.split_to(skip));
    buffer.truncate(data.len());
    buffer.copy_from_slice(data);
    buffer
}

#[pymethods]
impl Array {
    /// The name of the element type, as NumPy spells it.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The dimensions.
    #[getter]
    fn shape(&self) -> Vec<isize> {
        self.shape.to_vec()
    }

    fn __len__(&self) -> usize {
        self.shape.first().map_or(0, |&dim| dim as usize)
    }

    fn __repr__(&self) -> String {
        format!("Array({}{:?})", self.dtype.name(), self.shape)
    }

    /// Fills a view of the memory, as `PyObject_GetBuffer` asks for it.
    #[expect(unsafe_code, reason = "the buffer protocol is a C structure that is filled by hand")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        let array = slf.get();
        let wants = |flag: c_int| flags & flag == flag;
        if wants(ffi::PyBUF_F_CONTIGUOUS) && array.shape.len() > 1 {
            return Err(PyBufferError::new_err("the array is row-major, not column-major"));
        }
        let memory = array.memory.get().ok_or_else(|| PyBufferError::new_err("the array is gone"))?;
        let (start, bytes) = memory.span();
        // SAFETY: `view` is not null (checked above), and the caller of the buffer protocol owns the structure that it
        // points to. `start` is the beginning of `bytes` bytes that were allocated and initialized, that no Rust code reads
        // or writes while the array lives, and that stay where they are until it is dropped, which `obj` below prevents.
        // `shape` and `strides` belong to the array too, the format is static, and the protocol forbids consumers to write to
        // any of the three, so that handing them out as mutable pointers is fine.
        unsafe {
            (*view).buf = start.cast::<c_void>();
            (*view).len = bytes as isize;
            (*view).readonly = 0;
            (*view).itemsize = array.dtype.bytes() as isize;
            (*view).format =
                if wants(ffi::PyBUF_FORMAT) { array.format().as_ptr().cast_mut() } else { std::ptr::null_mut() };
            let with_shape = wants(ffi::PyBUF_ND);
            (*view).ndim = if with_shape { array.shape.len() as c_int } else { 1 };
            (*view).shape = if with_shape { array.shape.as_ptr().cast_mut() } else { std::ptr::null_mut() };
            (*view).strides =
                if wants(ffi::PyBUF_STRIDES) { array.strides.as_ptr().cast_mut() } else { std::ptr::null_mut() };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
