//! 32 pixels at a time.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_mulhi_epi16,
    _mm256_or_si256, _mm256_packs_epi32, _mm256_packus_epi16, _mm256_permute2x128_si256, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srai_epi16, _mm256_srai_epi32,
    _mm256_storeu_si256, _mm256_sub_epi16, _mm256_unpackhi_epi8, _mm256_unpackhi_epi16, _mm256_unpacklo_epi8,
    _mm256_unpacklo_epi16,
};

use super::{BLUE_CB, GREEN_CB, GREEN_CR, RED_CR, scalar};

const STEP: usize = 32;

/// For each of three 16-byte parts of 16 pixels and each channel: which samples go where. 0x80 makes a zero.
static SPREAD: [[[u8; 32]; 3]; 3] = {
    let mut spread = [[[0x80; 32]; 3]; 3];
    let mut byte = 0;
    while byte < 48 {
        let (part, at) = (byte / 16, byte % 16);
        spread[part][byte % 3][at] = (byte / 3) as u8;
        spread[part][byte % 3][at + 16] = (byte / 3) as u8;
        byte += 1;
    }
    spread
};

#[target_feature(enable = "avx2")]
pub(super) fn convert(y: &[u8], cb: &[u8], cr: &[u8], output: &mut [u8]) {
    let count = output.len() / 3;
    if count < STEP {
        return scalar::convert(y, cb, cr, output);
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
#[target_feature(enable = "avx2")]
unsafe fn convert_step(y: *const u8, cb: *const u8, cr: *const u8, output: *mut u8) {
    // SAFETY: as the caller promises.
    let [y, cb, cr] = unsafe { [y, cb, cr].map(|row| _mm256_loadu_si256(row.cast())) };
    let zero = _mm256_setzero_si256();
    let low = convert_half([y, cb, cr].map(|row| _mm256_unpacklo_epi8(row, zero)));
    let high = convert_half([y, cb, cr].map(|row| _mm256_unpackhi_epi8(row, zero)));
    let channels: [__m256i; 3] = std::array::from_fn(|channel| _mm256_packus_epi16(low[channel], high[channel]));
    let parts = SPREAD.each_ref().map(|spread| {
        // SAFETY: each table is 32 bytes long.
        let [red, green, blue] = std::array::from_fn(|channel| unsafe {
            _mm256_shuffle_epi8(channels[channel], _mm256_loadu_si256(spread[channel].as_ptr().cast()))
        });
        _mm256_or_si256(_mm256_or_si256(red, green), blue)
    });
    let whole = [
        _mm256_permute2x128_si256::<0x20>(parts[0], parts[1]),
        _mm256_permute2x128_si256::<0x30>(parts[2], parts[0]),
        _mm256_permute2x128_si256::<0x31>(parts[1], parts[2]),
    ];
    for (index, part) in whole.into_iter().enumerate() {
        // SAFETY: as the caller promises.
        unsafe { _mm256_storeu_si256(output.add(index * 32).cast(), part) };
    }
}

/// Red, green and blue of 16 pixels, not yet limited to a byte.
#[inline]
#[target_feature(enable = "avx2")]
fn convert_half([y, cb, cr]: [__m256i; 3]) -> [__m256i; 3] {
    let center = _mm256_set1_epi16(128);
    let (cb, cr) = (_mm256_sub_epi16(cb, center), _mm256_sub_epi16(cr, center));
    let one = _mm256_set1_epi16(1);
    // Twice the value times the factor, shifted by 16, then rounded by one more bit: the same as rounding at once.
    let (blue_twice, red_twice) = (_mm256_add_epi16(cb, cb), _mm256_add_epi16(cr, cr));
    let red = _mm256_mulhi_epi16(red_twice, _mm256_set1_epi16(RED_CR));
    let red = _mm256_srai_epi16::<1>(_mm256_add_epi16(red, one));
    let blue = _mm256_mulhi_epi16(blue_twice, _mm256_set1_epi16(BLUE_CB));
    let blue = _mm256_srai_epi16::<1>(_mm256_add_epi16(blue, one));
    let factors = _mm256_set1_epi32(i32::from(GREEN_CR) << 16 | i32::from(GREEN_CB) & 0xFFFF);
    let round = _mm256_set1_epi32(32_768);
    let [low, high] = [_mm256_unpacklo_epi16(cb, cr), _mm256_unpackhi_epi16(cb, cr)]
        .map(|pair| _mm256_srai_epi32::<16>(_mm256_add_epi32(_mm256_madd_epi16(pair, factors), round)));
    let green = _mm256_packs_epi32(low, high);
    [
        _mm256_add_epi16(_mm256_add_epi16(y, cr), red),
        _mm256_add_epi16(_mm256_sub_epi16(y, cr), green),
        _mm256_add_epi16(_mm256_add_epi16(y, blue_twice), blue),
    ]
}
