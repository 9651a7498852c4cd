//! Python functions as steps.

use std::sync::Arc;

use forebay_codec::{DType, Shape, TensorSpec};
use forebay_pipeline::steps::{Call, Function};
use forebay_pipeline::{FieldType, Pipeline, Remade, SampleView, StepError, ValueView};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::array::Array;

/// A Python function that a `function` step calls: with the values of the step's fields, in order, and with a seed as `seed`
/// if the step is random. It returns the value of the one field that the step gives, or a dictionary of several.
#[derive(Debug)]
struct PythonFunction {
    function: Py<PyAny>,
}

/// The pipeline with the functions of `functions`, by their names.
pub(crate) fn with_functions(pipeline: Pipeline, functions: Option<&Bound<'_, PyDict>>) -> Pipeline {
    let Some(functions) = functions else { return pipeline };
    pipeline.with_functions(&|name| {
        let function = functions.get_item(name).ok().flatten()?.unbind();
        Some(Arc::new(PythonFunction { function }) as Arc<dyn Call>)
    })
}

impl Call for PythonFunction {
    fn call(
        &self,
        step: &Function,
        fields: &[String],
        sample: &SampleView<'_>,
        seed: u64,
        remade: &mut Remade<'_>,
    ) -> Result<(), StepError> {
        let called = Python::try_attach(|py| {
            let result = self.run(py, step, fields, sample, seed).map_err(|error| raised(py, &error))?;
            for (field, kind) in &step.output {
                let value = if step.output.len() == 1 && !result.is_instance_of::<PyDict>() {
                    Ok(result.clone())
                } else {
                    result.get_item(field)
                };
                let value = value.map_err(|_| failed(format!("it gave no field `{field}`")))?;
                put(&value, field, kind, remade)?;
            }
            Ok(())
        });
        called.unwrap_or_else(|| Err(failed("Python is shutting down".to_owned())))
    }
}

impl PythonFunction {
    fn run<'py>(
        &self,
        py: Python<'py>,
        step: &Function,
        fields: &[String],
        sample: &SampleView<'_>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = |name: &String| sample.fields.iter().find(|(field, _)| field == name).map(|(_, value)| *value);
        let arguments = fields.iter().filter_map(value).map(|value| to_python(py, value));
        let arguments = PyTuple::new(py, arguments.collect::<PyResult<Vec<_>>>()?)?;
        let named = PyDict::new(py);
        if step.random {
            named.set_item("seed", seed)?;
        }
        self.function.bind(py).call(arguments, Some(&named))
    }
}

/// A value as Python has it: a NumPy array of its own for a tensor.
fn to_python<'py>(py: Python<'py>, value: ValueView<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ValueView::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        ValueView::Text(text) => PyString::new(py, text).into_any(),
        ValueView::Int(number) => number.into_pyobject(py)?.into_any(),
        ValueView::Tensor(view) => {
            let array = Bound::new(py, Array::of_tensor(view.to_tensor()))?;
            py.import("numpy")?.call_method1("asarray", (array,))?
        }
    })
}

/// Gives `field` what the function returned for it, if that is what the step promised.
fn put(value: &Bound<'_, PyAny>, field: &str, kind: &FieldType, remade: &mut Remade<'_>) -> Result<(), StepError> {
    let py = value.py();
    let unfit = |found: String| failed(format!("it gave {found} for field `{field}`, but the pipeline says {kind}"));
    let python_type = || value.get_type().to_string();
    match kind {
        FieldType::Int => {
            let number: i64 = value.extract().map_err(|_| unfit(python_type()))?;
            remade.set(field, &mut |output| {
                output.int(number);
                Ok(())
            })
        }
        FieldType::Text | FieldType::Json => {
            let text: String = value.extract().map_err(|_| unfit(python_type()))?;
            remade.set(field, &mut |output| {
                output.text(&text);
                Ok(())
            })
        }
        FieldType::Bytes => Err(unfit("bytes, which no step can give".to_owned())),
        FieldType::Tensor { .. } => {
            let (spec, content) = array(value).map_err(|error| raised(py, &error))?;
            let spec = spec.filter(|spec| kind.holds(spec)).ok_or_else(|| unfit(describe(value)))?;
            remade.set(field, &mut |output| {
                output.tensor(spec)?.data.copy_from_slice(content.as_bytes());
                Ok(())
            })
        }
    }
}

/// The elements of anything that NumPy makes an array of, and what it is; `None` for types that a tensor cannot have.
fn array<'py>(value: &Bound<'py, PyAny>) -> PyResult<(Option<TensorSpec>, Bound<'py, PyBytes>)> {
    let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
    // Elements may have the order of another machine; here they get this one's.
    let native = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
    let unless_needed = PyDict::new(value.py());
    unless_needed.set_item("copy", false)?;
    let array = array.call_method("astype", (native,), Some(&unless_needed))?;
    let dims: Vec<usize> = array.getattr("shape")?.extract()?;
    let dtype: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let spec = DType::from_name(&dtype).zip(Shape::try_new(&dims)).map(|(dtype, shape)| TensorSpec { dtype, shape });
    let content = array.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    Ok((spec.filter(|spec| spec.bytes() == content.as_bytes().len()), content))
}

/// What a value is, for a message: `float64[3, 2]`.
fn describe(value: &Bound<'_, PyAny>) -> String {
    let text = || -> PyResult<String> {
        let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
        let dims: Vec<usize> = array.getattr("shape")?.extract()?;
        Ok(format!("{}{dims:?}", array.getattr("dtype")?))
    };
    text().unwrap_or_else(|_| value.get_type().to_string())
}

fn failed(problem: String) -> StepError {
    StepError::Function { message: problem }
}

/// What a Python exception says, with where it was raised.
fn raised(py: Python<'_>, error: &PyErr) -> StepError {
    let trace = error.traceback(py).and_then(|trace| trace.format().ok());
    let last = trace.as_deref().and_then(|trace| {
        let line = trace.lines().rev().find(|line| line.trim_start().starts_with("File "))?;
        Some(format!(" ({})", line.trim()))
    });
    failed(format!("{error}{}", last.unwrap_or_default()))
}
