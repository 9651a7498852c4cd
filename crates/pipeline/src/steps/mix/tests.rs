//! Batches and labels beside what `golden/mix.py` wrote of torchvision and torch.

use super::*;

const BATCH: usize = 3;
const CLASSES: usize = 4;
const PICTURE: [usize; 3] = [2, 5, 6];
const VALUES: usize = 3 * 2 * 5 * 6;

fn bytes(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

/// Pictures and labels of the batch, changed.
fn mixed(change: impl Fn(&mut [BatchColumn<'_>])) -> (Vec<f32>, Vec<f32>) {
    let mut pictures = bytes((0..VALUES).map(|place| (place * 7919 % 251) as f32));
    let mut labels = vec![0.0; BATCH * CLASSES];
    [2, 0, 3].into_iter().enumerate().for_each(|(sample, class)| labels[sample * CLASSES + class] = 1.0);
    let mut labels = bytes(labels);
    change(&mut [
        BatchColumn { spec: TensorSpec::new(DType::F32, &PICTURE), data: &mut pictures },
        BatchColumn { spec: TensorSpec::new(DType::F32, &[CLASSES]), data: &mut labels },
    ]);
    (floats(&pictures), floats(&labels))
}

/// The same pictures in bytes, channels last.
fn mixed_bytes(change: impl Fn(&mut BatchColumn<'_>)) -> Vec<u8> {
    let [channels, height, width] = PICTURE;
    let place = |at: usize| {
        let (channel, x, y) = (at % channels, at / channels % width, at / channels / width % height);
        ((at / (channels * height * width) * channels + channel) * height + y) * width + x
    };
    let mut pictures: Vec<u8> = (0..VALUES).map(|at| (place(at) * 7919 % 251) as u8).collect();
    change(&mut BatchColumn { spec: TensorSpec::new(DType::U8, &[height, width, channels]), data: &mut pictures });
    let mut first = vec![0; VALUES];
    pictures.into_iter().enumerate().for_each(|(at, value)| first[place(at)] = value);
    first
}

fn assert_near(case: &str, ours: &[f32], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{case}");
    let furthest = ours.iter().zip(theirs).map(|(ours, theirs)| (f64::from(*ours) - theirs).abs()).fold(0.0, f64::max);
    assert!(furthest < 2e-4, "{case}: off by {furthest}");
}

#[test]
fn fixed_weights_and_boxes_give_what_torchvision_gives() {
    let mut cases = 0;
    for line in include_str!("../../../tests/golden/mix.txt").lines() {
        let (kind, numbers) = line.split_once('\t').unwrap();
        let numbers: Vec<f64> = numbers.split('\t').map(|number| number.parse().unwrap()).collect();
        let given = match kind {
            "mixup" => 1,
            "cutmix" => 4,
            _ => continue,
        };
        let (given, made) = numbers.split_at(given);
        let (pictures, labels) = made.split_at(VALUES);
        let share = match *given {
            [left, top, right, bottom] => 1.0 - (right - left) * (bottom - top) / 30.0,
            _ => given[0],
        } as f32;
        let change = |column: &mut BatchColumn<'_>| match *given {
            [left, top, right, bottom] => {
                paste(column, [top, bottom].map(|edge| edge as usize), [left, right].map(|edge| edge as usize));
            }
            _ => mix(column, share),
        };
        let case = &line[..20];
        let (ours, our_labels) = mixed(|columns| {
            change(&mut columns[0]);
            mix(&mut columns[1], share);
        });
        assert_near(case, &ours, pictures);
        assert_near(case, &our_labels, labels);
        // torchvision mixes floats only: bytes are what these round to.
        let rounded = mixed_bytes(change)
            .into_iter()
            .zip(pictures)
            .all(|(ours, theirs)| (f64::from(ours) - theirs).abs() < 0.5 + 1e-3);
        assert!(rounded, "{case}: in bytes");
        cases += 1;
    }
    assert_eq!(cases, 6);
}

/// Halves are mixed as their single precision is, and rounded once.
#[test]
fn halves_are_mixed_as_floats_are() {
    fn check<T: bytemuck::Pod>(dtype: DType, half: impl Fn(f32) -> T, single: impl Fn(T) -> f32)
    where
        [T]: HalfFloatSliceExt,
    {
        // More than are converted at once, and not a multiple; they begin where no half is aligned.
        let count = 2 * HALVES + 7;
        let spec = |dtype| TensorSpec::new(dtype, &[count]);
        let values: Vec<T> = (0..BATCH * count).map(|place| half((place * 7919 % 2003) as f32 / 501.0 - 2.0)).collect();
        let mut floats_of = bytes(values.iter().map(|value| single(*value)));
        let mut halves = vec![0; 1 + values.len() * 2];
        halves[1..].copy_from_slice(bytemuck::cast_slice(&values));
        mix(&mut BatchColumn { spec: spec(DType::F32), data: &mut floats_of }, 0.3);
        mix(&mut BatchColumn { spec: spec(dtype), data: &mut halves[1..] }, 0.3);
        let expected: Vec<T> = floats(&floats_of).into_iter().map(half).collect();
        assert!(halves[1..] == *bytemuck::cast_slice::<T, u8>(&expected), "{dtype}");
    }
    check(DType::F16, f16::from_f32, f16::to_f32);
    check(DType::BF16, bf16::from_f32, bf16::to_f32);
}

#[test]
fn pictures_and_labels_are_bytes_or_floats() {
    let schema = |image: DType, label: DType| {
        let tensor =
            |dtype, dims: &[usize]| FieldType::Tensor { dtype, dims: dims.iter().copied().map(Some).collect() };
        let mut schema = Schema::default();
        schema.put("image", tensor(image, &[3, 8, 8]));
        schema.put("label", tensor(label, &[10]));
        mixed_schema(&["image".to_owned(), "label".to_owned()], &schema)
    };
    for image in [DType::U8, DType::F32, DType::F16, DType::BF16] {
        assert!(schema(image, DType::F32).is_ok() && schema(image, DType::F16).is_ok(), "{image}");
        assert!(schema(image, DType::U8).is_err() && schema(image, DType::F64).is_err());
    }
    assert!(schema(DType::F64, DType::F32).is_err() && schema(DType::I32, DType::F32).is_err());
}

#[test]
fn smoothed_labels_are_those_of_torchs_cross_entropy() {
    let mut cases = 0;
    for line in include_str!("../../../tests/golden/mix.txt").lines() {
        let Some(numbers) = line.strip_prefix("one_hot\t") else { continue };
        let numbers: Vec<f64> = numbers.split('\t').map(|number| number.parse().unwrap()).collect();
        let one_hot = OneHot { num_classes: numbers[0] as usize, label_smoothing: numbers[1] };
        let mut ours = vec![0.0; one_hot.num_classes];
        one_hot.fill(numbers[2] as usize, &mut ours);
        assert_near("one_hot", &ours, &numbers[3..]);
        cases += 1;
    }
    assert_eq!(cases, 4);
}
