//! What a record holds.

use forebay_codec::image::{EncodedImage, Format};
use forebay_codec::tensor_encoding::EncodedTensor;
use forebay_plan::units;
use forebay_record::{Example, FeatureView, TensorFlowType, TensorProto};
use serde::Serialize;

use crate::output::{Align, Page, Table};

/// A record and its features.
#[derive(Debug, Serialize)]
pub(super) struct RecordFound {
    shard: String,
    number: u64,
    offset: u64,
    bytes: usize,
    /// Empty where the record is no `tf.train.Example`.
    features: Vec<FeatureFound>,
}

#[derive(Debug, Serialize)]
struct FeatureFound {
    name: String,
    /// `bytes`, `float`, `int64` or `unset`.
    list: &'static str,
    values: usize,
    /// What the values are, in words.
    content: String,
}

impl RecordFound {
    /// The record `record`. One that is no Example has no features.
    pub(super) fn new(shard: &str, number: u64, offset: u64, record: &[u8]) -> Self {
        let features = match Example::parse(record) {
            Ok(example) => example.features().map(|(name, view)| FeatureFound::new(name, &view)).collect(),
            Err(_) => Vec::new(),
        };
        Self { shard: shard.to_owned(), number, offset, bytes: record.len(), features }
    }

    pub(super) fn show(&self, page: &mut Page) {
        page.heading(&format!(
            "Record {} of {}, {} at byte {}",
            units::count(self.number),
            self.shard,
            units::bytes(self.bytes as f64),
            units::count(self.offset)
        ));
        if self.features.is_empty() {
            page.line("It is not a tf.train.Example, or has no features.");
            return;
        }
        let mut table = Table::new(&[
            ("feature", Align::Left),
            ("list", Align::Left),
            ("values", Align::Right),
            ("content", Align::Left),
        ]);
        for feature in &self.features {
            let values = units::count(feature.values as u64);
            table.row([feature.name.clone(), feature.list.to_owned(), values, feature.content.clone()], false);
        }
        page.table(&table);
    }
}

impl FeatureFound {
    fn new(name: &str, view: &FeatureView<'_>) -> Self {
        let (list, values, content) = match view {
            FeatureView::Bytes(values) => {
                let first = values.first().map_or_else(String::new, describe);
                ("bytes", values.iter().count(), first)
            }
            FeatureView::Int64(values) => {
                ("int64", values.iter().count(), few(values.iter().map(|value| value.to_string())))
            }
            FeatureView::Float(values) => {
                ("float", values.iter().count(), few(values.iter().map(|value| value.to_string())))
            }
            FeatureView::Unset => ("unset", 0, String::new()),
        };
        Self { name: name.to_owned(), list, values, content }
    }
}

/// The first few of some values.
fn few(mut values: impl Iterator<Item = String>) -> String {
    const SHOWN_MAX: usize = 6;
    let shown: Vec<String> = values.by_ref().take(SHOWN_MAX).collect();
    let more = if values.next().is_some() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// What a byte string is: a tensor, an image, text, or just bytes.
fn describe(bytes: &[u8]) -> String {
    const TEXT_BYTES_MAX: usize = 60;
    if let Some(tensor) = describe_tensor(bytes) {
        return tensor;
    }
    let size = units::bytes(bytes.len() as f64);
    // It has a checksum, so that nothing passes for one.
    if let Ok(value) = EncodedTensor::open(bytes) {
        return format!("encoded tensor {}, {size}", value.spec());
    }
    if Format::detect(bytes).is_some() {
        return match EncodedImage::open(bytes).as_ref().map(EncodedImage::header) {
            Ok(header) => format!("{} {}x{}, {size}", header.format, header.width, header.height),
            Err(_) => format!("damaged image, {size}"),
        };
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control) => format!("\"{text}\""),
        Ok(_) => format!("text, {size}"),
        Err(_) => size,
    }
}

fn describe_tensor(bytes: &[u8]) -> Option<String> {
    let tensor = TensorProto::parse(bytes).ok()?;
    let content_bytes = tensor.shape().elements()?.checked_mul(tensor.dtype().element_bytes()?)?;
    // Any text may pass for a message; only a tensor has as much content as its shape says.
    let is_tensor = !tensor.content().is_empty() && tensor.content().len() as u64 == content_bytes;
    let dims: Vec<String> = tensor.shape().dims().iter().map(ToString::to_string).collect();
    is_tensor.then(|| {
        format!("tensor {}[{}], {}", type_name(tensor.dtype()), dims.join(", "), units::bytes(content_bytes as f64))
    })
}

fn type_name(dtype: TensorFlowType) -> String {
    let name = match dtype {
        TensorFlowType::DT_FLOAT => "float32",
        TensorFlowType::DT_DOUBLE => "float64",
        TensorFlowType::DT_HALF => "float16",
        TensorFlowType::DT_BFLOAT16 => "bfloat16",
        TensorFlowType::DT_UINT8 => "uint8",
        TensorFlowType::DT_UINT16 => "uint16",
        TensorFlowType::DT_UINT32 => "uint32",
        TensorFlowType::DT_UINT64 => "uint64",
        TensorFlowType::DT_INT8 => "int8",
        TensorFlowType::DT_INT16 => "int16",
        TensorFlowType::DT_INT32 => "int32",
        TensorFlowType::DT_INT64 => "int64",
        TensorFlowType::DT_BOOL => "bool",
        other => return format!("type {}", other.0),
    };
    name.to_owned()
}
