//! 64 pixels at a time; permutations across the full vector interleave the channels.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi16, _mm512_add_epi32, _mm512_loadu_si512, _mm512_madd_epi16, _mm512_mask_permutexvar_epi8,
    _mm512_mulhi_epi16, _mm512_packs_epi32, _mm512_packus_epi16, _mm512_permutex2var_epi8, _mm512_set1_epi16,
    _mm512_set1_epi32, _mm512_setzero_si512, _mm512_srai_epi16, _mm512_srai_epi32, _mm512_storeu_si512,
    _mm512_sub_epi16, _mm512_unpackhi_epi8, _mm512_unpackhi_epi16, _mm512_unpacklo_epi8, _mm512_unpacklo_epi16,
};

use super::{BLUE_CB, GREEN_CB, GREEN_CR, RED_CR, avx2};

const STEP: usize = 64;

/// For each of three parts of 64 pixels: which of the red (0..64) and green (64..128) samples go where, which blue ones, and
/// which bytes are blue.
static SPREAD: [([u8; 64], [u8; 64], u64); 3] = {
    let mut spread = [([0; 64], [0; 64], 0); 3];
    let mut byte = 0;
    while byte < 192 {
        let (part, at) = (byte / 64, byte % 64);
        let sample = (byte / 3) as u8;
        spread[part].0[at] = if byte % 3 == 1 { sample + 64 } else { sample };
        spread[part].1[at] = sample;
        if byte % 3 == 2 {
            spread[part].2 |= 1 << at;
        }
        byte += 1;
    }
    spread
};

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn convert(y: &[u8], cb: &[u8], cr: &[u8], output: &mut [u8]) {
    let count = output.len() / 3;
    if count < STEP {
        return avx2::convert(y, cb, cr, output);
    }
    assert!(y.len() >= count && cb.len() >= count && cr.len() >= count, "a row is shorter than its pixels");
    let mut at = 0;
    loop {
        // SAFETY: `at` is at most `count - STEP`, so the loads are within the rows and the stores within the output.
        unsafe {
            convert_step(y.as_ptr().add(at), cb.as_ptr().add(at), cr.as_ptr().add(at), output.as_mut_ptr().add(at * 3));
        };
        if at == count - STEP {
            break;
        }
        // The last step overlaps the one before, rather than that the rest is done otherwise.
        at = (at + STEP).min(count - STEP);
    }
}

/// # Safety
///
/// `STEP` bytes can be read at `y`, `cb` and `cr`, and three times as many written at `output`.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn convert_step(y: *const u8, cb: *const u8, cr: *const u8, output: *mut u8) {
    // SAFETY: as the caller promises.
    let [y, cb, cr] = unsafe { [y, cb, cr].map(|row| _mm512_loadu_si512(row.cast())) };
    let zero = _mm512_setzero_si512();
    let low = convert_half([y, cb, cr].map(|row| _mm512_unpacklo_epi8(row, zero)));
    let high = convert_half([y, cb, cr].map(|row| _mm512_unpackhi_epi8(row, zero)));
    let [red, green, blue] = std::array::from_fn(|channel| _mm512_packus_epi16(low[channel], high[channel]));
    for (index, (red_green, blues, is_blue)) in SPREAD.iter().enumerate() {
        // SAFETY: each table is 64 bytes long; the stores are as the caller promises.
        unsafe {
            let part = _mm512_permutex2var_epi8(red, _mm512_loadu_si512(red_green.as_ptr().cast()), green);
            let blues = _mm512_loadu_si512(blues.as_ptr().cast());
            let part = _mm512_mask_permutexvar_epi8(part, *is_blue, blues, blue);
            _mm512_storeu_si512(output.add(index * 64).cast(), part);
        }
    }
}

/// Red, green and blue of 32 pixels, not yet limited to a byte. The steps are explained in the file for AVX2.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512vbmi")]
fn convert_half([y, cb, cr]: [__m512i; 3]) -> [__m512i; 3] {
    let center = _mm512_set1_epi16(128);
    let (cb, cr) = (_mm512_sub_epi16(cb, center), _mm512_sub_epi16(cr, center));
    let one = _mm512_set1_epi16(1);
    let (blue_twice, red_twice) = (_mm512_add_epi16(cb, cb), _mm512_add_epi16(cr, cr));
    let red = _mm512_mulhi_epi16(red_twice, _mm512_set1_epi16(RED_CR));
    let red = _mm512_srai_epi16::<1>(_mm512_add_epi16(red, one));
    let blue = _mm512_mulhi_epi16(blue_twice, _mm512_set1_epi16(BLUE_CB));
    let blue = _mm512_srai_epi16::<1>(_mm512_add_epi16(blue, one));
    let factors = _mm512_set1_epi32(i32::from(GREEN_CR) << 16 | i32::from(GREEN_CB) & 0xFFFF);
    let round = _mm512_set1_epi32(32_768);
    let [low, high] = [_mm512_unpacklo_epi16(cb, cr), _mm512_unpackhi_epi16(cb, cr)]
        .map(|pair| _mm512_srai_epi32::<16>(_mm512_add_epi32(_mm512_madd_epi16(pair, factors), round)));
    let green = _mm512_packs_epi32(low, high);
    [
        _mm512_add_epi16(_mm512_add_epi16(y, cr), red),
        _mm512_add_epi16(_mm512_sub_epi16(y, cr), green),
        _mm512_add_epi16(_mm512_add_epi16(y, blue_twice), blue),
    ]
}
