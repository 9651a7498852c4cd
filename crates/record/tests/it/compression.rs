//! Compressed shards: read whole by any reader of their format, and by blocks or by records by us.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use bytes::Bytes;
use forebay_record::{
    Blocks, CompressedBlock, Compression, Dictionary, Error, ErrorLocation, Index, InflateReader, Options, Origin,
    Reader, RecordCompressor, Scope, ShardCompression, ShardCompressor, Sizes, Writer, inflate_block, inflate_record,
    records_in_block,
};
use proptest::prelude::*;

/// A compressed shard of these records.
fn compress(records: &[Vec<u8>], compression: ShardCompression) -> (Vec<u8>, Index, Blocks) {
    let mut writer = Writer::new(ShardCompressor::new(Vec::new(), compression).unwrap());
    let mut index = Index::new();
    for record in records {
        index.push(writer.write(record).unwrap()).unwrap();
        writer.output().end_record().unwrap();
    }
    let (shard, blocks) = writer.finish().unwrap().finish().unwrap();
    (shard, index, blocks)
}

/// What a block inflates to.
fn inflated(shard: &[u8], block: &CompressedBlock, compression: ShardCompression) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; block.inflated_length as usize];
    inflate_block(shard, block, compression, "shard", &mut out).map(|()| out)
}

/// What a record inflates to, without a dictionary.
fn inflated_record(compressed: &[u8], length: u64, compression: ShardCompression) -> Result<Vec<u8>, Error> {
    inflate_record(compressed, length, compression, None, ErrorLocation::default, |length| Ok(vec![0; length]))
}

/// Records that compress a little: of 64 values, and with a run in each.
pub(crate) fn records(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    let mut state = 1_u32;
    let mut next = |at: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if at % 100 < 20 { 7 } else { (state >> 24) as u8 & 0x3f }
    };
    (0..count).map(|_| (0..bytes).map(&mut next).collect()).collect()
}

/// A parameter that changes nothing is refused; each of those that are not changes what is written.
#[test]
fn what_can_be_said_changes_something() {
    // Repetitions near and far, of which levels and windows find more or fewer.
    let near = records(300, 1_000);
    let far = near.iter().chain(&near).map(|record| [&record[..], &record[..400]].concat());
    let content: Vec<Vec<u8>> = far.collect();
    let written = |name: &str| compress(&content, named(name)).0;
    for (name, other) in [
        ("gzip", "gzip-1"),
        ("gzip", "gzip-6-filtered"),
        ("gzip", "gzip-6-huffman-only"),
        ("gzip", "gzip-6-rle"),
        ("gzip", "gzip-6-fixed"),
        ("gzip", "gzip-6-window-9"),
        ("gzip", "gzip-6-memory-1"),
        ("gzip-6-filtered", "gzip-6-filtered-window-10"),
        ("gzip-1-fixed", "gzip-2-fixed"),
        ("gzip-6-fixed", "gzip-6-fixed-window-10"),
        ("gzip-6-rle", "gzip-6-rle-memory-1"),
        ("gzip-6-huffman-only", "gzip-6-huffman-only-memory-1"),
        ("zlib-6-rle", "zlib-6-rle-window-12"),
        ("zstd-3", "zstd-9"),
        ("zstd-fast-1", "zstd-fast-7"),
        ("zstd-3", "zstd-3-btultra2"),
        ("zstd-3", "zstd-3-window-10"),
        ("zstd-3-stream", "zstd-3-long-stream"),
        ("zstd-3", "zstd-3-checksum"),
        ("lz4", "lz4-fast-100"),
        ("lz4", "lz4-hc-2"),
        ("lz4-hc-2", "lz4-hc-12"),
    ] {
        assert!(written(name) != written(other), "`{name}` and `{other}` give the same");
    }
}

/// One name of everything that can be said.
const NAMES: [&str; 26] = [
    "gzip",
    "gzip-1",
    "gzip-9-fixed",
    "gzip-6-window-9-memory-1",
    "zlib",
    "zlib-9",
    "zlib-6-filtered",
    "zlib-6-huffman-only",
    "zlib-6-rle",
    "zlib-1-fixed",
    "zlib-6-rle-window-12-memory-9",
    "zstd-3",
    "zstd-fast-7",
    "zstd-fast-1-fast",
    "zstd-1-dfast-checksum",
    "zstd-5-greedy",
    "zstd-3-lazy-window-10",
    "zstd-3-lazy2",
    "zstd-3-btlazy2",
    "zstd-3-btopt-window-20-long-checksum",
    "zstd-3-btultra",
    "zstd-19-btultra2",
    "lz4",
    "lz4-fast-100",
    "lz4-hc-12",
    "snappy",
];

fn named(name: &str) -> ShardCompression {
    name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn names_are_read_as_they_are_written() {
    for name in NAMES {
        assert_eq!(named(name).to_string(), name);
        let wide = |scope: &str| {
            if name == "gzip" || name == "zlib" { format!("{name}-6-{scope}") } else { format!("{name}-{scope}") }
        };
        for scope in ["record", "stream"] {
            assert_eq!(named(&wide(scope)).to_string(), wide(scope));
        }
        assert_eq!(named(&wide("block")), named(name));
    }
    for (name, written) in [
        ("gzip-6", "gzip"),
        ("gzip-record", "gzip-6-record"),
        ("zlib-rle", "zlib-6-rle"),
        ("zlib-6-memory-9-window-12-rle", "zlib-6-rle-window-12-memory-9"),
        ("zlib-6-window-15-memory-8", "zlib"),
        ("zstd", "zstd-3"),
        ("zstd-fast", "zstd-3-fast"),
        ("zstd-3-checksum-long", "zstd-3-long-checksum"),
        ("zstd-dictionary-record", "zstd-3-dictionary-record"),
        ("zstd-19-dictionary-window-17-record", "zstd-19-window-17-dictionary-record"),
        ("zstd-9-workers-4-long-stream", "zstd-9-long-workers-4-stream"),
        ("lz4-fast-1", "lz4"),
    ] {
        assert_eq!(named(name).to_string(), written);
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    for (name, problem) in [
        ("", "hint: `gzip`, `zlib`, `zstd`, `lz4` or `snappy`"),
        ("lzw", "hint: `gzip`, `zlib`, `zstd`, `lz4` or `snappy`"),
        ("gzip-0", "the level is from 1 to 9, not `0`"),
        ("gzip-10", "the level is from 1 to 9, not `10`"),
        ("gzip-06", "the level is from 1 to 9, not `06`"),
        ("gzip-", "`` says nothing to it; it takes a level from 1 to 9, then one of `filtered`"),
        ("zlib-a", "`a` says nothing to it"),
        ("zlib-6-rle-fixed", "the strategy is given twice"),
        ("zlib-6-huffman", "`huffman` says nothing to it"),
        ("zlib-6-window-8", "the window's bits is from 9 to 15, not `8`"),
        ("zlib-6-window", "`window` needs a number: the window's bits, from 9 to 15, as in `window-9`"),
        ("zlib-6-memory-10", "the memory level is from 1 to 9, not `10`"),
        ("zlib-3-filtered", "`filtered` changes nothing below level 4"),
        ("zlib-9-rle", "do the same at every level; write level 6"),
        ("gzip-6-rle-window-12", "`huffman-only` and `rle` give the same with any window; omit it"),
        ("gzip-6-huffman-only-window-9-stream", "`huffman-only` and `rle` give the same with any window; omit it"),
        ("zlib-6-btopt", "`btopt` says nothing to it"),
        ("zlib-6-record-rle", "`record` says nothing to it"),
        ("zstd-0", "the level is from 1 to 22, not `0`"),
        ("zstd-23", "the level is from 1 to 22, not `23`"),
        ("zstd--3", "`` says nothing to it; it takes a level from 1 to 22 or `fast-1` to `fast-7`"),
        ("zstd-fast-8", "the fast level is from 1 to 7, not `8`"),
        ("zstd-3-window-28", "the window's logarithm is from 10 to 27, not `28`"),
        ("zstd-3-window-9", "the window's logarithm is from 10 to 27, not `9`"),
        ("zstd-3-rle", "`rle` says nothing to it"),
        ("zstd-3-long-long", "`long` is given twice"),
        ("zstd-3-dictionary", "add `record`"),
        ("zstd-3-dictionary-stream", "add `record`"),
        ("zstd-3-window-16-dictionary-record", "a window below 17 does not reach back over all of a dictionary"),
        ("zstd-3-dictionary-dictionary-record", "`dictionary` is given twice"),
        ("zlib-6-dictionary-record", "`dictionary` says nothing to it"),
        ("zstd-3-workers-2", "add `stream`"),
        ("zstd-3-workers-2-record", "add `stream`"),
        ("zstd-3-workers-65-stream", "the number of workers is from 1 to 64, not `65`"),
        ("lz4-9", "`9` says nothing to it; it takes `fast-1` to `fast-65537` or `hc-2` to `hc-12`"),
        ("lz4-hc-13", "the level of `hc` is from 2 to 12, not `13`"),
        ("lz4-hc", "`hc` needs a number"),
        ("lz4-fast-65538", "the acceleration is from 1 to 65537"),
        ("snappy-3", "`3` says nothing to it; it takes nothing but `block`, `record` or `stream`"),
    ] {
        let error = name.parse::<ShardCompression>().unwrap_err().to_string();
        assert!(error.contains(problem), "{name}: {error}");
    }
}

#[test]
fn a_compressed_shard_is_one_stream_to_others() {
    let records = records(400, 7_000);
    for scope in ["block", "stream"] {
        for name in NAMES {
            let (shard, index, blocks) = compress(&records, named(&format!("{name}-{scope}")));
            // An acceleration of 100 passes over the runs.
            let saves = name != "lz4-fast-100";
            assert!(!saves || shard.len() < records.len() * 7_000, "{name} saves something: {}", shard.len());
            let (several, one) = (blocks.entries().len() > 3, blocks.entries().len() == 1);
            assert!(if scope == "block" { several } else { one }, "{name}-{scope}: {} blocks", blocks.entries().len());
            let reader = Reader::new(&shard[..], "shard", Options::default()).unwrap();
            assert_eq!(reader.compression().map(str::to_lowercase).as_deref(), name.split('-').next());
            let read: Vec<_> = reader.map(Result::unwrap).collect();
            assert!(read.iter().map(|record| &record.data[..]).eq(records.iter().map(|record| &record[..])), "{name}");
            assert!(read.iter().map(|record| record.location).eq(index.iter()));
        }
    }
}

/// What the program makes of `input`; `None`, with a word of why, where it is not there.
fn run(program: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("skipped: {}: {error}", program[0]);
            return None;
        }
    };
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    let feed = std::thread::spawn(move || _ = stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    assert!(output.status.success(), "{program:?}: {}", output.status);
    Some(output.stdout)
}

/// The established tools inflate what is written, with the checksums that there are.
#[test]
fn the_tools_of_each_format_read_it() {
    const ZLIB: &str = "import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))";
    const GZIP: &str = "import sys, gzip; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
    let records = records(200, 9_000);
    let mut plain = Writer::new(Vec::new());
    for record in &records {
        plain.write(record).unwrap();
    }
    let plain = plain.finish().unwrap();
    for name in NAMES {
        let tools: &[&[&str]] = match name.split('-').next().unwrap() {
            "gzip" => &[&["gzip", "-dc"], &["python3", "-c", GZIP]],
            "zlib" => &[&["python3", "-c", ZLIB]],
            "zstd" => &[&["zstd", "-dcq"]],
            "lz4" => &[&["lz4", "-dcq"]],
            // There is no such program, and no module in Python itself.
            _ => &[],
        };
        for scope in ["block", "stream"] {
            let (shard, ..) = compress(&records, named(&format!("{name}-{scope}")));
            for tool in tools {
                assert!(run(tool, &shard).is_none_or(|inflated| inflated == plain), "{name}-{scope}: {}", tool[0]);
            }
        }
        let mut by_record = RecordCompressor::new(named(&format!("{name}-record")), None).unwrap();
        let compressed = by_record.compress(&records[0]).unwrap();
        for tool in tools {
            assert!(run(tool, compressed).is_none_or(|inflated| inflated == records[0]), "{name}-record: {}", tool[0]);
        }
    }
}

#[test]
fn each_block_inflates_on_its_own() {
    let records = records(300, 9_000);
    for name in NAMES {
        let compression = named(name);
        let (shard, index, blocks) = compress(&records, compression);
        blocks.check_within(shard.len() as u64, "shard").unwrap();
        let text = blocks.to_text();
        assert_eq!(Blocks::parse(text.as_bytes(), compression.algorithm, "shard.blocks").unwrap(), blocks);
        let mut seen = 0;
        // Backwards, so that nothing can come from the block before.
        for block in blocks.entries().iter().rev() {
            let compressed = &shard[block.offset as usize..block.end() as usize];
            let frames = inflated(compressed, block, compression).unwrap();
            let inside = |entry: &forebay_record::Location| {
                entry.offset >= block.inflated_offset && entry.end() <= block.inflated_end()
            };
            let locations: Vec<_> = index.iter().filter(inside).collect();
            let first = index.iter().position(|entry| entry == locations[0]).unwrap();
            let base = Origin { shard: "shard", record: first as u64, offset: block.inflated_offset };
            for (number, record) in records_in_block(&frames.into(), locations.into_iter(), base, true).enumerate() {
                assert_eq!(record.unwrap(), records[first + number]);
                seen += 1;
            }
        }
        assert_eq!(seen, records.len(), "no record lies in two blocks");
    }
}

#[test]
fn blocks_that_cover_a_range_are_found() {
    let (_, index, blocks) = compress(&records(300, 9_000), named("gzip"));
    for record in index.iter() {
        let [block] = blocks.covering(record.offset..record.end()) else { panic!("a record lies in one block") };
        assert!(block.inflated_offset <= record.offset && record.end() <= block.inflated_end());
    }
    assert_eq!(blocks.covering(0..index.end()), blocks.entries());
    assert!(blocks.covering(index.end()..u64::MAX).is_empty());
}

#[test]
fn a_damaged_list_of_blocks_is_refused() {
    let with = |text: &str, name: &str| Blocks::parse(text.as_bytes(), named(name).algorithm, "a.blocks");
    let parse = |text: &str| with(text, "gzip").unwrap_err().to_string();
    assert!(parse("10 20 0").contains("`a.blocks`: line 1: expected `offset length"), "{}", parse("10 20 0"));
    assert!(parse("10 20 0 30 5").contains("four decimal numbers"));
    assert!(parse("10 20 0 x").contains("four decimal numbers"));
    assert!(parse("10 20 0 40\n20 20 40 40").contains("line 2: expected an offset of at least `30`"));
    assert!(parse("10 20 0 40\n30 20 41 40").contains("inflated offset of `40`"));
    assert!(parse("10 20 0 99999999").contains("cannot inflate to `99999999`"));
    assert!(parse("10 99999999 0 9999999999").contains("cannot inflate to `9999999999`"), "more than any block has");
    assert!(parse("18446744073709551615 1 0 1").contains("does not fit into 64 bits"));
    // What one format cannot give another can.
    assert!(with("0 20 0 600000", "zstd").is_ok() && with("0 20 0 600000", "lz4").is_err());
    assert!(with("0 20 0 5000", "lz4").is_ok() && with("0 20 0 5000", "snappy").is_err());
    let blocks = with("10 20 0 40\n", "gzip").unwrap();
    assert!(blocks.check_within(29, "a").unwrap_err().to_string().contains("the shard at `29`"));
}

/// No algorithm gives more than is said of it, so that no sound shard is refused.
#[test]
fn nothing_inflates_more_than_its_algorithm_can() {
    let zeros = vec![vec![0; 8 << 20]];
    for name in NAMES {
        for scope in ["block", "stream"] {
            let compression = named(&format!("{name}-{scope}"));
            let (shard, _, blocks) = compress(&zeros, compression);
            let text = blocks.to_text();
            Blocks::parse(text.as_bytes(), compression.algorithm, "a")
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let block = blocks.entries()[0];
            inflated(&shard[block.offset as usize..block.end() as usize], &block, compression).unwrap();
        }
        let compression = named(&format!("{name}-record"));
        let mut records = RecordCompressor::new(compression, None).unwrap();
        let compressed = records.compress(&zeros[0]).unwrap();
        assert_eq!(inflated_record(compressed, 8 << 20, compression).unwrap(), zeros[0], "{name}");
    }
}

#[test]
fn a_record_that_promises_too_much_is_refused_before_there_is_memory_for_it() {
    for name in NAMES {
        let compression = named(&format!("{name}-record"));
        let mut records = RecordCompressor::new(compression, None).unwrap();
        let compressed = records.compress(b"a short record").unwrap().to_vec();
        let error = |length| inflated_record(&compressed, length, compression).unwrap_err().to_string();
        assert!(error(u64::from(u32::MAX)).contains("cannot inflate to 4294967295"), "{}", error(u64::from(u32::MAX)));
        for length in [0, 13, 15, 100] {
            assert!(error(length).contains("the compressed record is damaged: "), "{name}: {}", error(length));
        }
    }
}

/// Small records that have much in common, as rows of a table have.
fn rows(count: usize) -> Vec<Vec<u8>> {
    let row = |number: usize| {
        let (name, city) = (["Anna", "Bert", "Carla", "Dora"][number % 4], ["Berlin", "Potsdam"][number / 3 % 2]);
        format!(
            "{{\"identifier\": {number}, \"name\": \"{name}\", \"city\": \"{city}\", \"score\": {}}}",
            number * 7919 % 1000
        )
    };
    (0..count).map(|number| row(number).into_bytes()).collect()
}

/// With every level and every strategy a dictionary makes small records smaller, and only it makes them readable again.
#[test]
fn a_dictionary_helps_at_every_level() {
    let rows = rows(2000);
    let dictionary = Dictionary::train(rows.iter().map(|row| &row[..])).unwrap();
    assert_eq!(Dictionary::train(rows.iter().map(|row| &row[..])).unwrap().bytes(), dictionary.bytes());
    let read = Dictionary::parse(dictionary.bytes().clone(), "a.dictionary").unwrap();
    let levels = (1..=22).map(|level| format!("zstd-{level}")).chain((1..=7).map(|level| format!("zstd-fast-{level}")));
    let strategies = NAMES.iter().filter(|name| name.starts_with("zstd") && !name.contains("window-10"));
    for name in levels.chain(strategies.map(|name| (*name).to_owned())) {
        let compression = named(&format!("{name}-dictionary-record"));
        let mut with = RecordCompressor::new(compression, Some(&dictionary)).unwrap();
        let mut without = RecordCompressor::new(named(&format!("{name}-record")), None).unwrap();
        let (mut small, mut large) = (0, 0);
        for row in rows.iter().step_by(100) {
            let compressed = with.compress(row).unwrap();
            small += compressed.len();
            large += without.compress(row).unwrap().len();
            let inflate = |dictionary| {
                let length = row.len() as u64;
                inflate_record(compressed, length, compression, dictionary, ErrorLocation::default, |length| {
                    Ok(vec![0; length])
                })
            };
            assert_eq!(inflate(Some(&read)).unwrap(), *row);
            assert!(inflate(None).unwrap_err().to_string().contains("the compressed record is damaged"));
        }
        assert!(small * 2 < large, "{name}: {small} bytes with a dictionary, {large} without");
    }
    assert!(RecordCompressor::new(named("zstd-3-dictionary-record"), None).is_err());
}

/// The program reads what was compressed with a dictionary, if it is given that.
#[test]
fn the_program_reads_what_a_dictionary_made() {
    let rows = rows(2000);
    let dictionary = Dictionary::train(rows.iter().map(|row| &row[..])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.dictionary");
    std::fs::write(&path, dictionary.bytes()).unwrap();
    let mut compressor = RecordCompressor::new(named("zstd-3-dictionary-record"), Some(&dictionary)).unwrap();
    let compressed = compressor.compress(&rows[7]).unwrap();
    let inflated = run(&["zstd", "-dcq", "-D", path.to_str().unwrap()], compressed);
    assert!(inflated.is_none_or(|inflated| inflated == rows[7]));
}

#[test]
fn what_is_no_dictionary_is_refused() {
    let rows = rows(2000);
    let dictionary = Dictionary::train(rows.iter().map(|row| &row[..])).unwrap();
    for bytes in [Bytes::new(), Bytes::from_static(b"content"), dictionary.bytes().slice(..12)] {
        let error = Dictionary::parse(bytes, "a.dictionary").unwrap_err().to_string();
        assert!(error.contains("`a.dictionary`") && error.contains("not a Zstandard dictionary"), "{error}");
    }
    let error = Dictionary::train([&b"a record"[..]]).unwrap_err().to_string();
    assert!(error.contains("cannot train a dictionary on 1 records of 8 bytes"), "{error}");
}

/// What workers make of a stream does not depend on how many there are, nor on when they are done.
#[test]
fn workers_give_the_same_bytes() {
    let records = records(2500, 10_000);
    let shard = |workers: usize| compress(&records, named(&format!("zstd-1-window-18-workers-{workers}-stream"))).0;
    let first = shard(1);
    for workers in [2, 3, 3, 8] {
        assert!(shard(workers) == first, "{workers} workers");
    }
    let read = Reader::new(&first[..], "shard", Options::default()).unwrap();
    assert!(read.map(|record| record.unwrap().data).eq(records.iter().map(|record| &record[..])));
    assert!(run(&["zstd", "-dcq"], &first).is_none_or(|inflated| inflated.len() == records.len() * 10_016));
}

#[test]
fn sizes_are_read_as_they_are_written() {
    let mut sizes = Sizes::new();
    for size in [3, 0, 70_000] {
        sizes.push(size).unwrap();
    }
    let read = Sizes::parse(&sizes.to_bytes(), "a.sizes").unwrap();
    assert_eq!(read, sizes);
    assert_eq!((read.len(), read.get(2), read.get(3)), (3, Some(70_000), None));
    assert!(sizes.push(1 << 32).is_err());
    assert!(Sizes::parse(&[1, 2, 3, 4, 5], "a.sizes").unwrap_err().to_string().contains("expected 4 bytes per record"));
}

/// Content of several kinds: noise, runs, text, and mixtures of them.
fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3000),
        (any::<u8>(), 0_usize..100_000).prop_map(|(byte, count)| vec![byte; count]),
        prop::collection::vec(prop_oneof![Just("the "), Just("record "), Just("of "), Just("42\n")], 0..4000)
            .prop_map(|words| words.concat().into_bytes()),
        (1_usize..60_000).prop_map(|bytes| records(1, bytes).remove(0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn records_come_back(records in prop::collection::vec(content(), 0..8), name in prop::sample::select(&NAMES[..])) {
        for scope in [Scope::Block, Scope::Stream] {
            let compression = ShardCompression { scope, ..named(name) };
            let (shard, index, blocks) = compress(&records, compression);
            let mut all = Vec::new();
            for block in blocks.entries() {
                let compressed = &shard[block.offset as usize..block.end() as usize];
                all.extend(inflated(compressed, block, compression).unwrap());
            }
            prop_assert_eq!(all.len() as u64, index.end());
            let base = Origin { shard: "shard", record: 0, offset: 0 };
            let all = all.into();
            for (record, expected) in records_in_block(&all, index.iter(), base, true).zip(&records) {
                prop_assert_eq!(&record.unwrap()[..], &expected[..]);
            }
            let read: Vec<Bytes> =
                Reader::new(&shard[..], "shard", Options::default()).unwrap().map(|record| record.unwrap().data).collect();
            prop_assert_eq!(&read, &records);
        }
        let compression = ShardCompression { scope: Scope::Record, ..named(name) };
        let mut compressor = RecordCompressor::new(compression, None).unwrap();
        for record in &records {
            let compressed = compressor.compress(record).unwrap();
            prop_assert_eq!(&inflated_record(compressed, record.len() as u64, compression).unwrap(), record);
        }
    }

    /// A shard that is cut, or has a flipped bit: what comes before that comes, and then an error with a name. By blocks, everything comes
    /// but the block that was hit.
    #[test]
    fn everything_before_the_damage_comes(
        name in prop::sample::select(&NAMES[..]),
        bytes in 50_usize..5_000,
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        cut: bool,
    ) {
        let written = records(1_200_000 / bytes, bytes);
        for scope in [Scope::Block, Scope::Stream] {
            let compression = ShardCompression { scope, ..named(name) };
            let (shard, index, blocks) = compress(&written, compression);
            let at = at.index(shard.len());
            let mut damaged = shard.clone();
            if cut { damaged.truncate(at) } else { damaged[at] ^= 1 << bit }
            // What can be made of the bytes before.
            let kind = Compression::of(&shard[..12.min(shard.len())]);
            let mut before = Vec::new();
            let _ = InflateReader::new(&shard[..at], kind).and_then(|mut stream| stream.read_to_end(&mut before));
            let whole = index.iter().take_while(|location| location.end() <= before.len() as u64).count();
            let options = Options { compression: kind, ..Options::default() };
            let (mut read, mut error) = (0, None);
            match Reader::new(&damaged[..], "shard", options) {
                Ok(reader) => for record in reader {
                    match record {
                        Ok(record) => {
                            prop_assert_eq!(&record.data[..], &written[read][..]);
                            read += 1;
                        }
                        Err(found) => error = Some(found.to_string()),
                    }
                }
                Err(found) => error = Some(found.to_string()),
            }
            prop_assert!(read >= whole, "{name}: {read} of {whole} records before byte {at}");
            // A shard may be cut between two frames, and those of Snappy have no end: only its size in the manifest shows that.
            let has_end = match kind {
                Compression::Gzip | Compression::Zlib => true,
                Compression::Zstd | Compression::Lz4 => scope == Scope::Stream,
                _ => false,
            };
            prop_assert!(error.is_some() || read == written.len() || at == 0 || cut && !has_end, "{name}: loss in silence");
            for block in blocks.entries().iter().filter(|_| scope == Scope::Block) {
                let range = block.offset as usize..block.end() as usize;
                let hit = if cut { at < range.end } else { range.contains(&at) };
                if !hit {
                    prop_assert!(inflated(&damaged[range.clone()], block, compression).is_ok());
                }
            }
        }
    }

    #[test]
    fn damage_never_panics_and_never_gives_more(
        name in prop::sample::select(&NAMES[..]),
        at in any::<prop::sample::Index>(),
        value: u8,
        cut in any::<prop::sample::Index>(),
    ) {
        for scope in [Scope::Block, Scope::Stream] {
            let compression = ShardCompression { scope, ..named(name) };
            let (mut shard, _, blocks) = compress(&records(3, 2_000), compression);
            let block = blocks.entries()[0];
            let offset = block.offset as usize + at.index(block.length as usize);
            shard[offset] = value;
            let end = block.offset as usize + cut.index(block.length as usize + 1);
            // Wrong bytes may inflate to the right length: the records' checksums find that.
            let _ = inflated(&shard[block.offset as usize..end], &block, compression);
            // From front to back, too: whatever comes out is a record that was written.
            let written = records(3, 2_000);
            let options = Options { on_damage: forebay_record::OnDamage::Skip, ..Options::default() };
            for record in Reader::new(&shard[..end], "shard", options).unwrap() {
                prop_assert!(written.contains(&record.unwrap().data.to_vec()));
            }
        }
        let compression = ShardCompression { scope: Scope::Record, ..named(name) };
        let mut compressor = RecordCompressor::new(compression, None).unwrap();
        let mut compressed = compressor.compress(&records(1, 2_000)[0]).unwrap().to_vec();
        let offset = at.index(compressed.len());
        compressed[offset] = value;
        compressed.truncate(cut.index(compressed.len() + 1));
        if let Ok(record) = inflated_record(&compressed, 2_000, compression) {
            prop_assert_eq!(record.len(), 2_000);
        }
    }
}
