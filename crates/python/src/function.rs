//! Python functions as steps.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use forebay_codec::{DType, Shape, Tensor, TensorSpec};
use forebay_pipeline::steps::{Call, Function};
use forebay_pipeline::{FieldType, Pipeline, SampleChanges, SampleView, StepError, ValueView};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::array::Array;
use crate::errors;
use crate::files::Label;
use crate::raised::{Raised, failed};
use crate::turns::Work;

/// The Python functions that steps name, as the user gave them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Functions(Arc<HashMap<String, Arc<Given>>>);

#[derive(Debug)]
struct Given {
    function: Py<PyAny>,
    /// Whether the user says that it may be called on several threads at the same time.
    parallel: bool,
}

/// A Python function that a `function` step calls: with the values of the step's fields, in order, and with a seed as `seed`
/// if the step is random. It returns the value of the one field that the step gives, or a dictionary of several.
#[derive(Debug)]
struct PythonFunction {
    given: Arc<Given>,
    work: Work,
}

impl Functions {
    /// Those of a dictionary: for each name the function, and whether it is thread-safe.
    pub(crate) fn of(given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut functions = HashMap::new();
        for (name, given) in given.into_iter().flatten() {
            let (function, parallel) = given.extract()?;
            functions.insert(name.extract()?, Arc::new(Given { function, parallel }));
        }
        Ok(Self(Arc::new(functions)))
    }

    /// Those of several pipelines; of two with one name, the first.
    pub(crate) fn joined<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut functions = HashMap::new();
        for (name, given) in all.flat_map(|functions| &*functions.0) {
            functions.entry(name.clone()).or_insert_with(|| Arc::clone(given));
        }
        Self(Arc::new(functions))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The label that the function `name` gives the file at `path`, which is called for `work`.
    pub(crate) fn label(&self, name: &str, path: &Path, work: &Work) -> Result<Label, StepError> {
        let unknown = || failed("there is no such function", true);
        let given = self.0.get(name).ok_or_else(unknown)?;
        let turn = if given.parallel { Some(work.parallel()) } else { work.turn() };
        let Some(_turn) = turn else { return Err(failed("it was not called, since the work was ended", true)) };
        let called = Python::try_attach(|py| {
            let raised = |error| StepError::from(Raised::new(py, error, name, &path.to_string_lossy()));
            let label = given.function.bind(py).call1((path,)).map_err(raised)?;
            label.extract().map_err(|_| StepError::FunctionOutput {
                function: name.to_owned(),
                found: described(&label),
                expected: "a label".to_owned(),
                hint: "return the name of a class, or a number",
            })
        });
        called.unwrap_or_else(|| Err(failed("it was not called, since Python is shutting down", true)))
    }

    /// The pipeline, for `work` that calls its functions.
    pub(crate) fn bind(&self, pipeline: &Pipeline, work: &Work) -> Pipeline {
        pipeline.clone().with_functions(&|name| {
            let given = Arc::clone(self.0.get(name)?);
            Some(Arc::new(PythonFunction { given, work: work.clone() }) as Arc<dyn Call>)
        })
    }
}

impl Call for PythonFunction {
    fn call(
        &self,
        step: &Function,
        fields: &[String],
        sample: &SampleView<'_>,
        seed: u64,
        changes: &mut SampleChanges<'_>,
    ) -> Result<(), StepError> {
        let value = |name: &String| sample.fields.iter().find(|(field, _)| field == name).map(|(_, value)| *value);
        let arguments: Vec<Argument<'_>> =
            fields.iter().filter_map(value).map(Argument::of).collect::<Result<_, _>>()?;
        // What a function returns may be an array that its next call writes to: it is copied before the turn ends. And it is put into
        // the sample after that: that may wait for memory, which only another call may give back.
        let returned = {
            let turn = if self.given.parallel { Some(self.work.parallel()) } else { self.work.turn() };
            let Some(_turn) = turn else { return Err(failed("it was not called, since the work was ended", true)) };
            let called = Python::try_attach(|py| {
                let raised = |error| self.raised(py, error, step, sample);
                let result = self.run(py, step, arguments, seed).map_err(raised)?;
                take(step, &result, &raised)
            });
            called.unwrap_or_else(|| Err(failed("it was not called, since Python is shutting down", true)))?
        };
        for (field, value) in returned {
            changes.set(field, &mut |output| match &value {
                Returned::Int(number) => {
                    output.int(*number);
                    Ok(())
                }
                Returned::Text(text) => output.text(text),
                Returned::Tensor(spec, content) => {
                    output.tensor(*spec)?.data.copy_from_slice(content);
                    Ok(())
                }
            })?;
        }
        Ok(())
    }
}

impl PythonFunction {
    fn run<'py>(
        &self,
        py: Python<'py>,
        step: &Function,
        arguments: Vec<Argument<'_>>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = arguments.into_iter().map(|argument| argument.into_python(py));
        let arguments = PyTuple::new(py, arguments.collect::<PyResult<Vec<_>>>()?)?;
        let named = PyDict::new(py);
        if step.random {
            named.set_item("seed", seed)?;
        }
        self.given.function.bind(py).call(arguments, Some(&named))
    }

    fn raised(&self, py: Python<'_>, error: PyErr, step: &Function, sample: &SampleView<'_>) -> StepError {
        let raised = Raised::new(py, error, &step.function, sample.key);
        self.work.note_raised(py, &raised);
        raised.into()
    }
}

/// A value that a function returned. It belongs to nobody else, and needs no lock of Python's to be looked at.
enum Returned {
    Int(i64),
    Text(String),
    Tensor(TensorSpec, PyBackedBytes),
}

/// What the function returned for each field, if that is what the step promised.
fn take<'a>(
    step: &'a Function,
    result: &Bound<'_, PyAny>,
    raised: &dyn Fn(PyErr) -> StepError,
) -> Result<Vec<(&'a str, Returned)>, StepError> {
    let wrong = |found: String, expected: String, hint| StepError::FunctionOutput {
        function: step.function.clone(),
        found,
        expected,
        hint,
    };
    let fields = || step.output.keys().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ");
    let Ok(several) = result.cast::<PyDict>() else {
        let mut output = step.output.iter();
        if let (Some((field, kind)), None) = (output.next(), output.next()) {
            return Ok(vec![(field, value_of(step, result, (field, kind), raised)?)]);
        }
        let expected = format!("a dictionary of the fields {}", fields());
        return Err(wrong(describe(result), expected, "return a dictionary, or pass the one type as `output`"));
    };
    let mut returned = Vec::with_capacity(step.output.len());
    for (field, kind) in &step.output {
        let value = several.get_item(field).map_err(raised)?;
        let value = value.ok_or_else(|| {
            let found = format!("a dictionary without the field `{field}`");
            wrong(found, format!("the fields {}", fields()), "return every field that `output` names")
        })?;
        returned.push((field.as_str(), value_of(step, &value, (field, kind), raised)?));
    }
    let unknown = several
        .keys()
        .iter()
        .find(|key| key.cast::<PyString>().map_or(true, |key| !step.output.contains_key(&*key.to_string_lossy())));
    match unknown {
        None => Ok(returned),
        Some(key) => {
            let found = format!("the field {}", described(&key));
            let hint = "leave it out, or name it and its type in `output`";
            Err(wrong(found, format!("only the fields {}", fields()), hint))
        }
    }
}

/// What the function returned for `field`.
fn value_of(
    step: &Function,
    value: &Bound<'_, PyAny>,
    (field, kind): (&str, &FieldType),
    raised: &dyn Fn(PyErr) -> StepError,
) -> Result<Returned, StepError> {
    let unfit = |hint| StepError::FunctionOutput {
        function: step.function.clone(),
        found: format!("{} for field `{field}`", describe(value)),
        expected: kind.to_string(),
        hint,
    };
    match kind {
        FieldType::Int => value.extract().map(Returned::Int).map_err(|_| unfit("return an integer of at most 64 bits")),
        FieldType::Text | FieldType::Json => {
            value.extract().map(Returned::Text).map_err(|_| unfit("return a text; `json.dumps` makes one"))
        }
        FieldType::Bytes => Err(unfit("no function can give bytes: give them as an array, of type `uint8[?]`")),
        FieldType::Tensor { .. } => {
            let hint = "convert it (`.astype`, `.reshape`), or pass what it gives as `output`";
            let (spec, content) = array(value).map_err(raised)?;
            let spec = spec.filter(|spec| kind.holds(spec)).ok_or_else(|| unfit(hint))?;
            Ok(Returned::Tensor(spec, content.into()))
        }
    }
}

/// A value of the sample, with a copy of its elements: made before Python's lock is taken.
enum Argument<'a> {
    Plain(ValueView<'a>),
    Tensor(Tensor),
}

impl<'a> Argument<'a> {
    fn of(value: ValueView<'a>) -> Result<Self, StepError> {
        Ok(match value {
            ValueView::Tensor(view) => Self::Tensor(view.to_tensor()?),
            plain => Self::Plain(plain),
        })
    }

    /// As a Python object: a new NumPy array for a tensor.
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let tensor = match self {
            Self::Plain(ValueView::Bytes(bytes)) => return Ok(PyBytes::new(py, bytes).into_any()),
            Self::Plain(ValueView::Text(text)) => return Ok(PyString::new(py, text).into_any()),
            Self::Plain(ValueView::Int(number)) => return Ok(number.into_pyobject(py)?.into_any()),
            Self::Plain(ValueView::Tensor(view)) => view.to_tensor().map_err(|error| errors::codec(py, &error))?,
            Self::Tensor(tensor) => tensor,
        };
        py.import("forebay._frameworks")?.call_method1("as_numpy", (Bound::new(py, Array::of_tensor(tensor))?,))
    }
}

/// The elements and the spec of anything that NumPy converts to an array; `None` for types that a tensor cannot have.
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

/// What a value is, for a message: `float64[3, 2]`, or its type where it is no array of numbers.
fn describe(value: &Bound<'_, PyAny>) -> String {
    let text = || -> PyResult<Option<String>> {
        if value.is_none() || value.is_instance_of::<PyDict>() || value.is_instance_of::<PyString>() {
            return Ok(None);
        }
        let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
        let dims: Vec<usize> = array.getattr("shape")?.extract()?;
        let dtype = array.getattr("dtype")?.to_string();
        Ok((dtype != "object").then(|| format!("{dtype}{dims:?}")))
    };
    text().ok().flatten().unwrap_or_else(|| described(value))
}

/// What a value is in Python's words: `None`, or the name of its type and the beginning of what it is.
fn described(value: &Bound<'_, PyAny>) -> String {
    if value.is_none() {
        return "`None`".to_owned();
    }
    let name = value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let shown = value.repr().map(|shown| shown.to_string_lossy().chars().take(SHOWN_MAX).collect::<String>());
    shown.map_or_else(|_| name.clone(), |shown| format!("`{shown}` ({name})"))
}

/// So many characters of a value are shown in a message.
const SHOWN_MAX: usize = 60;
