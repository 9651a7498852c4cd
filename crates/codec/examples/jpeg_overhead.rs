//! What the decoder costs beside the bare library: `cargo run --release -p forebay-codec --example jpeg_overhead -- FILES`.
//!
//! Every file is decoded by both in turn, so that a slower moment of the machine strikes both; the ratio is that of the
//! medians over the passes.
#![expect(clippy::print_stdout, reason = "the figures are the purpose")]

use std::time::Instant;

use forebay_codec::image::{DecodeOptions, Decoder, EncodedImage};
use forebay_codec::{TensorMut, TensorSpec};
use turbojpeg_sys as sys;

const PASSES: usize = 41;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = std::env::args().skip(1).map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let mut decoder = Decoder::new();
    let options = DecodeOptions { apply_orientation: false, ..DecodeOptions::default() };
    let spec = |file| Ok::<_, forebay_codec::Error>(EncodedImage::open(file)?.plan(&options)?.spec());
    let specs = files.iter().map(|file| spec(file)).collect::<Result<Vec<_>, _>>()?;
    let mut buffer = vec![0; specs.iter().map(TensorSpec::bytes).max().unwrap_or(0)];
    // SAFETY: no preconditions.
    let handle = unsafe { sys::tj3Init(sys::TJINIT_TJINIT_DECOMPRESS as i32) };
    let bare = |file: &[u8], data: &mut [u8]| {
        let started = Instant::now();
        // SAFETY: the handle was made above; the file is live, and the buffer as large as its header says.
        let status = unsafe {
            sys::tj3Decompress8(
                handle,
                file.as_ptr(),
                file.len() as sys::size_t,
                data.as_mut_ptr(),
                0,
                sys::TJPF_TJPF_RGB,
            )
        };
        assert_eq!(status, 0, "the library refuses a file");
        started.elapsed().as_secs_f64()
    };
    let mut ours = |file: &[u8], spec: TensorSpec, data: &mut [u8]| {
        let started = Instant::now();
        let picture = EncodedImage::open(file)?;
        decoder.decode_into(&picture.plan(&options)?, TensorMut { spec, data })?;
        Ok::<_, forebay_codec::Error>(started.elapsed().as_secs_f64())
    };
    let (mut bare_seconds, mut our_seconds) = (vec![0.0; PASSES], vec![0.0; PASSES]);
    for pass in 0..PASSES {
        for (index, (file, &spec)) in files.iter().zip(&specs).enumerate() {
            let data = &mut buffer[..spec.bytes()];
            // The second finds file and buffer in the cache, so they take turns.
            if (pass + index) % 2 == 0 {
                bare_seconds[pass] += bare(file, data);
                our_seconds[pass] += ours(file, spec, data)?;
            } else {
                our_seconds[pass] += ours(file, spec, data)?;
                bare_seconds[pass] += bare(file, data);
            }
        }
    }
    // SAFETY: the handle was made above and is not used again.
    unsafe { sys::tj3Destroy(handle) };
    let median = |mut seconds: Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        seconds[PASSES / 2]
    };
    let (bare, ours) = (median(bare_seconds), median(our_seconds));
    let rate = |seconds: f64| files.len() as f64 / seconds;
    println!(
        "{} files, bare {:.0}/s, decoder {:.0}/s, time ratio {:.4}",
        files.len(),
        rate(bare),
        rate(ours),
        ours / bare
    );
    Ok(())
}
