//! Both ways of looking entries up, whichever this processor would choose.

use super::{
    LANES, Plane, SLOTS,
    avx2::{self, activity},
    avx512, entry, scalar,
};
use crate::kernel::{Level, predict};

/// Numbers of no pattern.
fn numbers() -> impl FnMut() -> u32 {
    let mut seed = 1u32;
    move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    }
}

/// Three tables: frequencies that double, 128 symbols of eight slots each, and one symbol alone.
fn entries() -> Vec<u32> {
    let doubling = (0..SLOTS as u32).map(|slot| {
        let symbol = (slot + 1).ilog2().min(9);
        let first = (1 << symbol) - 1;
        entry(symbol as u8, (SLOTS as u32 - first).min(1 << symbol), slot - first)
    });
    // The last symbol would have one slot too many.
    let doubling = doubling.take(SLOTS - 1).chain([entry(10, 1, 0)]);
    let even = (0..SLOTS as u32).map(|slot| entry((slot / 8) as u8, 8, slot % 8));
    let alone = (0..SLOTS as u32).map(|slot| entry(77, SLOTS as u32, slot));
    doubling.chain(even).chain(alone).collect()
}

/// Reads `count` symbols of a plane. A kernel's functions that do so are safe to call where the instructions are there.
type Read =
    unsafe fn(entries: &[u32], data: &[u8], plane: &mut Plane, tables: &[u8; LANES], count: usize) -> [u8; LANES];

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn by_avx2<const GATHERS: bool>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[u8; LANES],
    count: usize,
) -> [u8; LANES] {
    use predict::avx2::{read, write};
    let (active, mut values) = (activity(count % LANES), [0; LANES]);
    // SAFETY: both arrays have 64 bytes.
    unsafe {
        let tables = [avx2::four_times(read(tables.as_ptr())), avx2::four_times(read(tables.as_ptr().add(32)))];
        let symbols =
            avx2::symbols::<GATHERS, 2>(entries, data, plane, tables, count, &active).expect("there are words");
        write(values.as_mut_ptr(), symbols[0]);
        write(values.as_mut_ptr().add(32), symbols[1]);
    }
    values
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn by_avx512<const GATHERS: bool>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[u8; LANES],
    count: usize,
) -> [u8; LANES] {
    use predict::avx512::{load, write};
    let mut values = [0; LANES];
    let tables = avx512::four_times(load(tables));
    let symbols = avx512::symbols_of::<GATHERS, 2>(entries, data, plane, tables, count).expect("there are words");
    // SAFETY: the array has 64 bytes.
    unsafe { write(values.as_mut_ptr(), symbols) };
    values
}

#[test]
fn both_lookups_are_the_definition() {
    let ways: [(Level, Read); 4] = [
        (Level::Avx2, by_avx2::<true>),
        (Level::Avx2, by_avx2::<false>),
        (Level::Avx512, by_avx512::<true>),
        (Level::Avx512, by_avx512::<false>),
    ];
    let ways: Vec<Read> = ways.into_iter().filter(|(level, _)| level.is_available()).map(|(_, read)| read).collect();
    let (mut next, entries) = (numbers(), entries());
    let data: Vec<u8> = (0..100_000).map(|_| next() as u8).collect();
    let states = std::array::from_fn(|_| (1 << 15) + next() * 100 % (1 << 30));
    let mut defined = Plane { states, words: 0, escapes: 0 };
    let mut planes = vec![defined.clone(); ways.len()];
    for round in 0..300 {
        let count = if round % 3 == 0 { 1 + next() as usize % LANES } else { LANES };
        let tables: [u8; LANES] = std::array::from_fn(|_| (next() % 3) as u8);
        let mut expected = [0; LANES];
        scalar::decode_plane(&entries, &data, &mut defined, &tables[..count], &mut expected[..count]).unwrap();
        for (read, plane) in ways.iter().zip(&mut planes) {
            // SAFETY: this machine was seen to have these instructions.
            let found = unsafe { read(&entries, &data, plane, &tables, count) };
            assert_eq!(found[..count], expected[..count], "round {round}, {count} symbols");
            assert_eq!((plane.states, plane.words), (defined.states, defined.words), "round {round}");
        }
    }
}
