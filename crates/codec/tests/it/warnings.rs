//! A JPEG is accepted only if libjpeg-turbo decodes it in silence, whatever harmless oddity it has beside its damage.

use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, Encoding, Orientation, PngEffort, Region, Scale, Subsampling, encode,
};
use forebay_codec::{Error, Tensor};

use crate::data;
use crate::pictures::{decode_reporting, jpeg, picture, with_orientation};

/// Where the first segment of this kind is; a thumbnail within another segment does not count.
fn marker(file: &[u8], kind: u8) -> usize {
    let mut at = 2;
    while file[at + 1] != kind {
        at += 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
    }
    at
}

/// A JFIF revision of 2.
fn with_odd_revision(mut file: Vec<u8>) -> Vec<u8> {
    let at = marker(&file, 0xE0);
    assert_eq!(&file[at + 4..at + 9], b"JFIF\0");
    file[at + 9] = 2;
    file
}

/// An Adobe segment with a color transform that does not exist, in the place of JFIF's.
fn with_odd_transform(file: &[u8]) -> Vec<u8> {
    let at = marker(file, 0xE0);
    let length = usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
    let mut out = file[..at].to_vec();
    out.extend(b"\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0\x09");
    out.extend(&file[at + 2 + length..]);
    out
}

/// Scans whose last parameters are all zero, as some old encoder wrote them.
fn with_odd_scans(mut file: Vec<u8>) -> Vec<u8> {
    let scans: Vec<usize> =
        file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, 0xDA]).map(|(at, _)| at).collect();
    for at in scans {
        let length = usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        file[at + 2 + length - 3..at + 2 + length].fill(0);
    }
    file
}

type Oddity = (&'static str, fn(Vec<u8>) -> Vec<u8>);

const ODDITIES: [Oddity; 4] = [
    ("JFIF revision", with_odd_revision),
    ("Adobe transform", |file| with_odd_transform(&file)),
    ("SOS parameters", with_odd_scans),
    ("all three", |file| with_odd_scans(with_odd_transform(&with_odd_revision(file)))),
];

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let original = picture(150, 90, 3, false, 4);
    let encoded = |progressive| encode(original.view(), &jpeg(90, Subsampling::Both, progressive)).unwrap();
    vec![("baseline", encoded(false)), ("progressive", encoded(true))]
}

#[test]
fn a_harmless_oddity_changes_no_pixel() {
    let mut decoder = Decoder::new();
    for (kind, file) in files() {
        let expected = decoder.decode(&file, &DecodeOptions::default()).unwrap();
        for (name, odd) in ODDITIES {
            // The parameters of progressive scans mean something.
            if kind == "progressive" && matches!(name, "SOS parameters" | "all three") {
                continue;
            }
            let odd = odd(file.clone());
            assert_ne!(odd, file);
            for allow_truncated in [false, true] {
                let options = DecodeOptions { allow_truncated, ..DecodeOptions::default() };
                let (found, report) = decode_reporting(&mut decoder, &odd, &options).unwrap();
                assert!(found == expected && !report.partial, "{kind}, {name}");
            }
        }
    }
}

/// Damage to the image, which is an error whatever else is odd about the file.
fn damaged(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let data = file.len() / 2;
    let mut zeros = file.to_vec();
    zeros[data..data + 400].fill(0);
    let mut noise = file.to_vec();
    noise[data..data + 400].iter_mut().enumerate().for_each(|(index, byte)| *byte = (index * 89 % 251) as u8);
    let mut tables = file.to_vec();
    tables[marker(file, 0xDA) + 6] = 0x33;
    let mut cut = file[..file.len() * 3 / 4].to_vec();
    let no_end = cut.clone();
    cut.extend([0xFF, 0xD9]);
    vec![("zeros", zeros), ("noise", noise), ("no such table", tables), ("cut", cut), ("no end", no_end)]
}

#[test]
fn a_harmless_oddity_hides_no_damage() {
    for (kind, file) in files() {
        for (damage, damaged) in damaged(&file) {
            for (name, odd) in ODDITIES {
                if kind == "progressive" && matches!(name, "SOS parameters" | "all three") {
                    continue;
                }
                let odd = odd(damaged.clone());
                for orientation in [Orientation::Normal, Orientation::Rotate90] {
                    let odd = with_orientation(&odd, 150, 90, orientation);
                    for channels in [Channels::Rgb, Channels::Gray] {
                        for scale in [Scale::Full, Scale::Half] {
                            let options = DecodeOptions { channels, scale, ..DecodeOptions::default() };
                            let error = Decoder::new().decode(&odd, &options).map(|_| ());
                            assert!(
                                matches!(error, Err(Error::Format { .. })),
                                "{kind}, {damage}, {name}, {orientation:?}: {error:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_fatal_error_after_a_warning_is_no_partial_picture() {
    let options = DecodeOptions { allow_truncated: true, ..DecodeOptions::default() };
    for (kind, file) in files() {
        // Stray bytes between two scans or before the end give a warning, and a scan without its tables a fatal error.
        let mut fatal = file[..file.len() - 2].to_vec();
        fatal.extend(b"stray");
        let scan = marker(&file, 0xDA);
        let length = usize::from(u16::from_be_bytes([file[scan + 2], file[scan + 3]]));
        fatal.extend(&file[scan..scan + 2 + length]);
        let tables = fatal.len() - length + 4;
        fatal[tables] = 0x33;
        fatal.extend(&file[scan + 2 + length..]);
        let result = decode_reporting(&mut Decoder::new(), &fatal, &options);
        assert!(matches!(result, Err(Error::Format { truncated: false, .. })), "{kind}: {result:?}");
        // Of what is merely cut off, the part that is there is given.
        let part = &file[..file.len() * 3 / 4];
        let (_, decoded) = decode_reporting(&mut Decoder::new(), part, &options).unwrap();
        assert!(decoded.partial);
    }
}

/// The image with each component in a scan of its own, made of three gray ones.
fn one_scan_a_component(planes: &[Tensor; 3]) -> Vec<u8> {
    let grays = planes.each_ref().map(|plane| encode(plane.view(), &jpeg(90, Subsampling::None, false)).unwrap());
    let frame = marker(&grays[0], 0xC0);
    let mut out = grays[0][..frame].to_vec();
    let size = &grays[0][frame + 4..frame + 9];
    out.extend([0xFF, 0xC0, 0, 17]);
    out.extend(size);
    out.extend([3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    let tables = frame + 2 + usize::from(u16::from_be_bytes([grays[0][frame + 2], grays[0][frame + 3]]));
    out.extend(&grays[0][tables..marker(&grays[0], 0xDA)]);
    for (number, gray) in grays.iter().enumerate() {
        let scan = marker(gray, 0xDA);
        let start = out.len();
        out.extend(&gray[scan..gray.len() - 2]);
        out[start + 5] = number as u8 + 1;
    }
    out.extend([0xFF, 0xD9]);
    out
}

#[test]
fn a_component_without_a_scan_is_missing_data() {
    let planes = [1, 2, 3].map(|seed| picture(40, 30, 1, false, seed));
    let file = one_scan_a_component(&planes);
    let mut decoder = Decoder::new();
    let expected = decoder.decode(&file, &DecodeOptions::default()).unwrap();
    assert_eq!(decoder.decode(&with_odd_scans(file.clone()), &DecodeOptions::default()).unwrap(), expected);
    let scans: Vec<usize> =
        file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, 0xDA]).map(|(at, _)| at).collect();
    let progressive = encode(picture(40, 30, 3, false, 1).view(), &jpeg(90, Subsampling::None, true)).unwrap();
    let first_ac = progressive.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, 0xDA]).nth(1).unwrap().0;
    // Between two scans the file ends as if it were whole: libjpeg is silent, and makes the rest gray.
    for (whole, end) in [(&file, scans[1]), (&file, scans[2])] {
        let mut cut = whole[..end].to_vec();
        cut.extend([0xFF, 0xD9]);
        let error = decoder.decode(&cut, &DecodeOptions::default()).unwrap_err();
        assert!(error.is_truncated() && error.to_string().contains("no scan holds component"), "{error}");
        let options = DecodeOptions { allow_truncated: true, ..DecodeOptions::default() };
        assert!(decode_reporting(&mut decoder, &cut, &options).unwrap().1.partial);
    }
    // What comes after the first scan of a progressive image refines it.
    let mut coarse = progressive[..first_ac].to_vec();
    coarse.extend([0xFF, 0xD9]);
    assert!(decoder.decode(&coarse, &DecodeOptions::default()).is_ok());
}

#[test]
fn a_picture_without_tables_borrows_none_from_the_one_before() {
    let optimized = encode(picture(60, 40, 3, false, 1).view(), &jpeg(30, Subsampling::None, true)).unwrap();
    let ordinary = encode(picture(60, 40, 3, false, 2).view(), &jpeg(97, Subsampling::None, true)).unwrap();
    let file = encode(picture(60, 40, 3, false, 3).view(), &jpeg(60, Subsampling::None, true)).unwrap();
    for kind in [0xDB, 0xC4] {
        let mut lost = file.clone();
        let tables: Vec<usize> =
            file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, kind]).map(|(at, _)| at).collect();
        // A comment in the place of each table.
        for at in tables {
            lost[at + 1] = 0xFE;
        }
        let results = [&optimized, &ordinary].map(|before| {
            let mut decoder = Decoder::new();
            decoder.decode(before, &DecodeOptions::default()).unwrap();
            decoder.decode(&lost, &DecodeOptions::default()).map_err(|error| error.to_string())
        });
        assert_eq!(results[0], results[1], "marker {kind:x}");
    }
}

/// The reproductions of the trial that found this, on photos.
#[test]
fn photos_with_an_oddity_and_damage_are_refused() {
    let Some(folder) = data::folder("images-jpeg") else { return };
    let mut decoder = Decoder::new();
    let (mut odd_accepted, mut refused) = (0, 0);
    for path in data::files(&folder).iter().step_by(7) {
        let Ok(bytes) = std::fs::read(path) else { continue };
        if bytes.get(6..11) != Some(b"JFIF\0") || bytes.len() < 20_000 {
            continue;
        }
        let whole = DecodeOptions::default();
        let Ok(expected) = decoder.decode(&bytes, &whole) else { continue };
        let odd = with_odd_revision(bytes.clone());
        assert!(decoder.decode(&odd, &whole).unwrap() == expected, "{}", path.display());
        odd_accepted += 1;
        let middle = bytes.len() / 2;
        let mut zeroed = odd.clone();
        zeroed[middle..middle + 2000].fill(0);
        assert!(decoder.decode(&zeroed, &whole).is_err(), "{}", path.display());
        let mut tables = odd;
        let scan = marker(&tables, 0xDA);
        tables[scan + 6] = 0x33;
        for allow_truncated in [false, true] {
            let options = DecodeOptions { allow_truncated, ..whole.clone() };
            assert!(decoder.decode(&tables, &options).is_err(), "{}", path.display());
            let turned = with_orientation(&tables, 0, 0, Orientation::Rotate90);
            assert!(decoder.decode(&turned, &options).is_err(), "{}", path.display());
        }
        refused += 1;
    }
    eprintln!("photos with an odd revision: {odd_accepted} decoded the same, {refused} refused when damaged too");
    assert!(refused > 0);
}

/// Regions go through other code of the library.
#[test]
fn damage_above_or_in_a_region_is_found() {
    for (kind, file) in files() {
        let mut bad = with_odd_revision(file);
        let middle = bad.len() / 2;
        bad[middle..middle + 400].fill(0);
        let region = Some(Region { x: 10, y: 80, width: 30, height: 10 });
        let options = DecodeOptions { region, ..DecodeOptions::default() };
        let result = Decoder::new().decode(&bad, &options).map(|_| ());
        assert!(matches!(result, Err(Error::Format { .. })), "{kind}: {result:?}");
    }
}

/// What only the end of a file shows is looked for, whichever part of the image is wanted: of a file that is refused as a whole, a
/// region is refused, too, or its pixels are those of the valid picture.
#[test]
fn a_region_of_a_damaged_file_is_refused_or_right() {
    let original = picture(150, 90, 3, false, 4);
    let png = encode(original.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap();
    let mut kinds: Vec<(String, Vec<u8>)> = vec![("png".to_owned(), png)];
    for (kind, file) in files() {
        kinds.push((format!("{kind} odd"), with_odd_revision(file.clone())));
        kinds.push((kind.to_owned(), file));
    }
    let (mut refused, mut right) = (0, 0);
    let mut decoder = Decoder::new();
    let mut state = 1_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for (kind, file) in kinds {
        for number in 0..400 {
            let mut bad = file.clone();
            let at = bad.len() / 4 + random(bad.len() / 2);
            if number % 3 == 0 {
                bad[at..at + 40].fill(0);
            } else {
                bad[at] ^= 1 << random(8);
            }
            let plain = DecodeOptions {
                scale: if number % 5 == 0 { Scale::Half } else { Scale::Full },
                channels: if number % 7 == 0 { Channels::Gray } else { Channels::Rgb },
                ..DecodeOptions::default()
            };
            if decoder.decode(&bad, &plain).is_ok() {
                continue;
            }
            let (x, y) = (random(60), random(35));
            let region = Some(Region { x, y, width: 1 + random(14), height: 1 + random(9) });
            let cut = DecodeOptions { region, ..plain };
            match decoder.decode(&bad, &cut) {
                Err(_) => refused += 1,
                Ok(found) => {
                    let valid = decoder.decode(&file, &cut).unwrap();
                    assert!(found.data() == valid.data(), "{kind} {number}: {region:?} of a file damaged at byte {at}");
                    right += 1;
                }
            }
        }
    }
    eprintln!("of regions of damaged images {refused} were refused, {right} were right");
    assert!(refused > 500, "{refused}");
}

/// A flipped bit in the first byte of a segment's marker makes the segment look like bytes that belong to none.
#[test]
fn a_segment_whose_marker_is_damaged_is_not_passed_over() {
    let file = encode(picture(60, 40, 3, false, 4).view(), &jpeg(90, Subsampling::Both, false)).unwrap();
    let file = with_orientation(&with_odd_transform(&file), 0, 0, Orientation::Rotate90);
    let mut decoder = Decoder::new();
    decoder.decode(&file, &DecodeOptions::default()).unwrap();
    let mut segments = 0;
    let mut at = 2;
    while file[at + 1] != 0xDA {
        for bit in 0..8 {
            let mut bad = file.clone();
            bad[at] ^= 1 << bit;
            let result = decoder.decode(&bad, &DecodeOptions::default()).map(|_| ());
            assert!(matches!(result, Err(Error::Format { .. })), "segment at {at}, bit {bit}: {result:?}");
        }
        segments += 1;
        at += 2 + usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
    }
    assert!(segments >= 5, "{segments}");
}

/// A progressive image without its last scans is smoothed by libjpeg-turbo, across blocks that a part does not have.
#[test]
fn a_part_of_a_progressive_picture_is_that_of_the_whole() {
    let file = encode(picture(150, 103, 3, false, 4).view(), &jpeg(90, Subsampling::Both, true)).unwrap();
    let scans: Vec<usize> =
        file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, 0xDA]).map(|(at, _)| at).collect();
    assert!(scans.len() > 3);
    let mut decoder = Decoder::new();
    for kept in 1..scans.len() {
        // Tables may stand before a scan; what follows the last one that is kept ends with the next marker.
        let mut end = scans[kept - 1]
            + 2
            + usize::from(u16::from_be_bytes([file[scans[kept - 1] + 2], file[scans[kept - 1] + 3]]));
        while file[end] != 0xFF || file[end + 1] == 0 {
            end += 1;
        }
        let short = [&file[..end], &[0xFF, 0xD9]].concat();
        let Ok(whole) = decoder.decode(&short, &DecodeOptions::default()) else { continue };
        for (x, y, width, height) in [(50, 34, 50, 35), (0, 0, 20, 20), (140, 90, 10, 13), (16, 16, 16, 16)] {
            let region = Some(Region { x, y, width, height });
            let part = decoder.decode(&short, &DecodeOptions { region, ..DecodeOptions::default() }).unwrap();
            for row in 0..height {
                let at = ((y + row) * 150 + x) * 3;
                let expected = &whole.data()[at..at + width * 3];
                assert!(
                    part.data()[row * width * 3..][..width * 3] == *expected,
                    "{kept} scans, {region:?}, row {row}"
                );
            }
        }
    }
}
