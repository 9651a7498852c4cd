//! Both ways of looking entries up, whichever this processor would choose.

use super::{Active, LANES, Plane, SLOTS, activity, symbols};
use crate::kernel::{
    Level,
    predict::avx2::{read, write},
    rans::{entry, scalar},
};

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

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn read_by<const GATHERS: bool>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[u8; LANES],
    count: usize,
    active: &Active,
) -> [u8; LANES] {
    let tables = tables.map(|table| 4 * table);
    let mut values = [0; LANES];
    // SAFETY: both arrays have 64 bytes.
    unsafe {
        let tables = [read(tables.as_ptr()), read(tables.as_ptr().add(32))];
        let symbols = symbols::<GATHERS>(entries, data, plane, tables, count, active).expect("there are words");
        write(values.as_mut_ptr(), symbols[0]);
        write(values.as_mut_ptr().add(32), symbols[1]);
    }
    values
}

#[test]
fn both_lookups_are_the_definition() {
    if !Level::Avx2.is_available() {
        return;
    }
    let (mut next, entries) = (numbers(), entries());
    let data: Vec<u8> = (0..100_000).map(|_| next() as u8).collect();
    let states = std::array::from_fn(|_| (1 << 15) + next() * 100 % (1 << 30));
    let mut planes = [(); 3].map(|()| Plane { states, words: 0, escapes: 0 });
    for round in 0..300 {
        let count = if round % 3 == 0 { 1 + next() as usize % LANES } else { LANES };
        let active = activity(count % LANES);
        let tables: [u8; LANES] = std::array::from_fn(|_| (next() % 3) as u8);
        let mut expected = [0; LANES];
        scalar::decode_plane(&entries, &data, &mut planes[0], &tables[..count], &mut expected[..count]).unwrap();
        // SAFETY: this machine was seen to have these instructions.
        let found = unsafe {
            [
                read_by::<true>(&entries, &data, &mut planes[1], &tables, count, &active),
                read_by::<false>(&entries, &data, &mut planes[2], &tables, count, &active),
            ]
        };
        for (found, plane) in found.iter().zip(&planes[1..]) {
            assert_eq!(found[..count], expected[..count], "round {round}, {count} symbols");
            assert_eq!((plane.states, plane.words), (planes[0].states, planes[0].words), "round {round}");
        }
    }
}
