//! Against TensorFlow's own results, from the golden files.

use forebay_codec::Tensor;
use forebay_pipeline::{RngKey, Value};

use crate::data::data_folder;
use crate::support::{bytes_value, difference_max, run, run_all, sample, step};

/// Reads a NumPy file of bytes: its header is a Python literal whose shape is all we need.
fn read_npy(path: &std::path::Path) -> Tensor {
    let bytes = std::fs::read(path).unwrap();
    let header_bytes = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = std::str::from_utf8(&bytes[10..10 + header_bytes]).unwrap();
    assert!(header.contains("'|u1'"), "{header}");
    let shape = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
    let dims: Vec<usize> = shape.split(',').filter_map(|dim| dim.trim().parse().ok()).collect();
    Tensor::from_elements(&dims, &bytes[10 + header_bytes..]).unwrap()
}

const PICTURES: [&str; 3] = ["Abyssinian_116", "Birman_65", "Egyptian_Mau_57"];

#[test]
fn decode_and_resize_equal_tensorflow() {
    let (Some(golden), Some(photos)) = (data_folder("golden"), data_folder("images-jpeg")) else { return };
    let steps =
        [step("op = \"decode\"\nfast_dct = true"), step("op = \"resize\"\nsize = 256\nbackend = \"tensorflow\"")];
    for name in PICTURES {
        let file = std::fs::read(photos.join(format!("{name}.jpg"))).unwrap();
        let mut out = run_all(&steps, &sample(bytes_value(file)), RngKey::default());
        let Value::Tensor(ours) = out.pop().unwrap().fields.pop().unwrap().value else { panic!("a tensor") };
        let theirs = read_npy(&golden.join(format!("resize-{name}.npy")));
        assert_eq!(difference_max(ours.view(), theirs.view()), 0, "{name}");
    }
}

#[test]
fn grayscale_equals_tensorflow() {
    let Some(golden) = data_folder("golden") else { return };
    for name in PICTURES {
        let resized = read_npy(&golden.join(format!("resize-{name}.npy")));
        let ours = run("op = \"grayscale\"", resized);
        let theirs = read_npy(&golden.join(format!("grey-{name}.npy")));
        assert_eq!(difference_max(ours.view(), theirs.view()), 0, "{name}");
    }
}
