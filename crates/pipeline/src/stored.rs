//! How a sample is kept in a record: a `tf.train.Example` with one feature per field, which TensorFlow and others read as
//! it is. Tensors are serialized `TensorProto`s, as PRESTO writes them, unless the format encodes them; bytes and text are byte
//! strings, whole numbers are integers, and the sample's key is the feature [`KEY_FEATURE`].

use bytes::Bytes;
use forebay_codec::image::{END_OF_IMAGE, Format, SCAN_GROUPS, progressive_scans};
use forebay_codec::tensor_encoding::encode_tensor;
use forebay_codec::{DType, Shape, Tensor, TensorMut, TensorSpec};
use forebay_record::{Feature, SharedExample, TensorFlowType, TensorProto, TensorShape, encode_example_into};

use crate::error::{Error, Result};
use crate::sample::{Field, Sample, SampleView, Value, ValueView};
use crate::schema::{FieldType, Schema};
use crate::storage_format::StorageFormat;
use crate::strategy::{StoredAs, kept_as};

/// The feature that holds the sample's key. (`WebDataset` calls it the same.)
pub const KEY_FEATURE: &str = "__key__";

/// Appends the record of `sample` to `out`; pictures and tensors that the encodings of `format` can hold are stored encoded.
pub fn encode_sample(sample: &SampleView<'_>, format: &StorageFormat, out: &mut Vec<u8>) -> Result<()> {
    let encoded = sample.fields.iter().map(|(_, value)| encode_value(*value, format));
    let encoded: Vec<Option<Vec<u8>>> = encoded.collect::<Result<_>>()?;
    // Features borrow lists, and lists borrow values: both live here while the record is written.
    let strings: Vec<[&[u8]; 1]> = sample
        .fields
        .iter()
        .zip(&encoded)
        .map(|((_, value), encoded)| [encoded.as_deref().unwrap_or_else(|| string_of(*value))])
        .collect();
    let numbers: Vec<[i64; 1]> = sample.fields.iter().map(|(_, value)| [number_of(*value)]).collect();
    let key: [&[u8]; 1] = [sample.key.as_bytes()];
    let mut features = Vec::with_capacity(sample.fields.len() + 1);
    features.push((KEY_FEATURE, Feature::Bytes(&key)));
    for (index, (name, value)) in sample.fields.iter().enumerate() {
        let feature = match value {
            ValueView::Tensor(view) if encoded[index].is_none() => {
                let dims: Vec<u64> = view.spec.shape.dims().iter().map(|&dim| dim as u64).collect();
                let shape = TensorShape::new(&dims)?;
                Feature::Tensor(TensorProto::new(tensorflow_type(view.spec.dtype), shape, view.data)?)
            }
            ValueView::Int(_) => Feature::Int64(&numbers[index]),
            _ => Feature::Bytes(&strings[index]),
        };
        features.push((*name, feature));
    }
    Ok(encode_example_into(&features, out)?)
}

/// Appends the progressive records of `sample` to `out`, [`SCAN_GROUPS`] of them, and where each ends to `ends`. The first is its record as
/// [`encode_sample`] writes it, but of each JPEG only the first group of scans; the others have the groups after it, and nothing else.
///
/// What is no JPEG, or one that cannot be transcoded without loss, is whole in the first.
pub fn encode_scan_groups(sample: &SampleView<'_>, out: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<()> {
    let scans_of = |value: &ValueView<'_>| match value {
        ValueView::Bytes(bytes) if Format::detect(bytes) == Some(Format::Jpeg) => progressive_scans(bytes).ok(),
        _ => None,
    };
    let scans: Vec<Option<[Vec<u8>; SCAN_GROUPS]>> = sample.fields.iter().map(|(_, value)| scans_of(value)).collect();
    let first = sample.fields.iter().zip(&scans).map(|((name, value), scans)| match scans {
        Some(groups) => (*name, ValueView::Bytes(&groups[0])),
        None => (*name, *value),
    });
    let fields: Vec<(&str, ValueView<'_>)> = first.collect();
    encode_sample(&SampleView { fields: &fields, ..*sample }, &StorageFormat::default(), out)?;
    ends.push(out.len());
    for group in 1..SCAN_GROUPS {
        let lists: Vec<(&str, [&[u8]; 1])> = sample
            .fields
            .iter()
            .zip(&scans)
            .filter_map(|((name, _), scans)| Some((*name, [scans.as_ref()?[group].as_slice()])))
            .collect();
        let features: Vec<(&str, Feature<'_>)> =
            lists.iter().map(|(name, list)| (*name, Feature::Bytes(list))).collect();
        encode_example_into(&features, out)?;
        ends.push(out.len());
    }
    Ok(())
}

/// Completes `sample`, which was decoded from the first of its progressive records, with those that follow it, as many as were read. Each JPEG
/// is a whole file then, of so many groups of scans.
pub fn join_scan_groups(sample: &mut Sample, records: &[Bytes]) -> Result<()> {
    let groups: Vec<SharedExample> =
        records.iter().map(|record| SharedExample::parse(record.clone())).collect::<Result<_, _>>()?;
    for field in &mut sample.fields {
        let Value::Bytes(first) = &field.value else { continue };
        // What was kept whole has its end.
        if Format::detect(first) != Some(Format::Jpeg) || first.ends_with(&END_OF_IMAGE) {
            continue;
        }
        let scans: Vec<Bytes> = groups.iter().filter_map(|group| group.bytes(&field.name)).collect();
        let bytes = first.len() + scans.iter().map(Bytes::len).sum::<usize>() + END_OF_IMAGE.len();
        let mut file = Vec::new();
        forebay_codec::memory::reserve(&mut file, bytes).map_err(Error::Encoding)?;
        let parts = std::iter::once(&first[..]).chain(scans.iter().map(|part| &part[..])).chain([&END_OF_IMAGE[..]]);
        parts.for_each(|part| file.extend_from_slice(part));
        field.value = Value::Bytes(file.into());
    }
    Ok(())
}

/// The tensor in `value`, encoded, if an encoding of `format` can hold it.
fn encode_value(value: ValueView<'_>, format: &StorageFormat) -> Result<Option<Vec<u8>>> {
    let ValueView::Tensor(view) = value else { return Ok(None) };
    let dims = view.spec.shape.dims().iter().map(|&dim| Some(dim)).collect();
    let kind = FieldType::Tensor { dtype: view.spec.dtype, dims };
    let encoded = match kept_as(&kind, format) {
        None => return Ok(None),
        Some(StoredAs::Image(encoding, _)) => forebay_codec::image::encode(view, &encoding),
        Some(StoredAs::Tensor(encoding, _)) => encode_tensor(view, &encoding),
    };
    encoded.map(Some).map_err(Error::Encoding)
}

fn string_of(value: ValueView<'_>) -> &[u8] {
    match value {
        ValueView::Bytes(bytes) => bytes,
        ValueView::Text(text) => text.as_bytes(),
        ValueView::Int(_) | ValueView::Tensor(_) => &[],
    }
}

fn number_of(value: ValueView<'_>) -> i64 {
    match value {
        ValueView::Int(number) => number,
        _ => 0,
    }
}

/// The sample in `record`, whose fields the schema names, as number `index` of its data set. Bytes and tensors share the
/// record's memory.
pub fn decode_sample(record: Bytes, schema: &Schema, index: u64) -> Result<Sample> {
    let example = SharedExample::parse(record)?;
    let key = example.bytes(KEY_FEATURE).ok_or_else(|| stored(KEY_FEATURE, "is missing".to_owned()))?;
    let key = std::str::from_utf8(&key).map_err(|_| stored(KEY_FEATURE, "is not text".to_owned()))?.into();
    let fields = schema.fields.iter().map(|(name, kind)| {
        let value = decode_value(&example, name, kind)?;
        Ok(Field { name: name.as_str().into(), value })
    });
    Ok(Sample { key, index, fields: fields.collect::<Result<_>>()? })
}

fn decode_value(example: &SharedExample, name: &str, kind: &FieldType) -> Result<Value> {
    let missing = || stored(name, format!("is missing or is no {kind}"));
    Ok(match kind {
        FieldType::Bytes => Value::Bytes(example.bytes(name).ok_or_else(missing)?),
        FieldType::Text | FieldType::Json => {
            let bytes = example.bytes(name).ok_or_else(missing)?;
            let text = std::str::from_utf8(&bytes).map_err(|_| stored(name, "is not UTF-8 text".to_owned()))?;
            Value::Text(text.into())
        }
        FieldType::Int => Value::Int(example.int64(name).ok_or_else(missing)?),
        FieldType::Tensor { .. } => {
            let message = example.bytes(name).ok_or_else(missing)?;
            let proto = TensorProto::parse(&message)?;
            Value::Tensor(tensor_from(&proto, &message, kind).map_err(|problem| stored(name, problem))?)
        }
    })
}

/// The tensor in `proto`, which was parsed from `message` and shares its memory.
pub(crate) fn tensor_from(proto: &TensorProto<'_>, message: &Bytes, kind: &FieldType) -> Result<Tensor, String> {
    let shape: Vec<usize> = proto.shape().dims().iter().map(|&dim| dim as usize).collect();
    let unfit = || format!("is a tensor {shape:?} of type {}, but should be {kind}", proto.dtype().0);
    let dtype = DType::ALL.into_iter().find(|&dtype| tensorflow_type(dtype) == proto.dtype()).ok_or_else(unfit)?;
    let spec = TensorSpec { dtype, shape: Shape::try_new(&shape).ok_or_else(unfit)? };
    let content = message.slice_ref(proto.content());
    Tensor::new(spec, content).filter(|_| kind.holds(&spec)).ok_or_else(unfit)
}

/// A list of numbers as a tensor of one dimension; those that an integer type cannot hold become its nearest.
pub(crate) fn tensor_of(dtype: DType, numbers: impl Iterator<Item = f64>) -> Tensor {
    let numbers: Vec<f64> = numbers.collect();
    let spec = TensorSpec::new(dtype, &[numbers.len()]);
    let mut data = vec![0; spec.bytes()];
    fill(numbers.into_iter(), &mut TensorMut { spec, data: &mut data });
    Tensor::new(spec, data).expect("allocated to the spec")
}

/// Writes numbers as the elements of a tensor; those that an integer type cannot hold become its nearest.
pub(crate) fn fill(numbers: impl Iterator<Item = f64>, output: &mut TensorMut<'_>) {
    let dtype = output.spec.dtype;
    output.data.chunks_exact_mut(dtype.bytes()).zip(numbers).for_each(|(to, number)| dtype.write(number, to));
}

fn stored(field: &str, problem: String) -> Error {
    Error::Stored { field: field.to_owned(), problem }
}

fn tensorflow_type(dtype: DType) -> TensorFlowType {
    match dtype {
        DType::U8 => TensorFlowType::DT_UINT8,
        DType::U16 => TensorFlowType::DT_UINT16,
        DType::I16 => TensorFlowType::DT_INT16,
        DType::I32 => TensorFlowType::DT_INT32,
        DType::I64 => TensorFlowType::DT_INT64,
        DType::F32 => TensorFlowType::DT_FLOAT,
        DType::F64 => TensorFlowType::DT_DOUBLE,
        DType::F16 => TensorFlowType::DT_HALF,
        DType::BF16 => TensorFlowType::DT_BFLOAT16,
    }
}
