//! Streams that are inflated from front to back.

use std::io::{BufReader, Read as _, Write as _};

use forebay_record::{Compression, InflateReader, ShardCompressor};

use crate::compression::records;

/// The last block of a frame fills the reader's buffer to the brim: the frame is over then, with nothing left to come.
#[test]
fn a_zstd_stream_may_end_where_the_buffer_does() {
    const BUFFER: usize = 128 << 10;
    for name in ["zstd-3-stream", "zstd-3-checksum-stream"] {
        for blocks in [1, 2] {
            let content = records(1, blocks * BUFFER).remove(0);
            let mut compressor = ShardCompressor::new(Vec::new(), name.parse().unwrap()).unwrap();
            compressor.write_all(&content).unwrap();
            let (frame, _) = compressor.finish().unwrap();
            // One frame, and two of them.
            for frames in [1, 2] {
                let bytes = frame.repeat(frames);
                let mut stream = InflateReader::new(&bytes[..], Compression::Zstd).unwrap();
                let (mut all, mut buffer) = (Vec::new(), vec![0; BUFFER]);
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(length) => all.extend_from_slice(&buffer[..length]),
                        Err(error) => panic!("{name}, {blocks} blocks, {frames} frames: {error}"),
                    }
                }
                assert_eq!(all, content.repeat(frames), "{name}");
                // A frame that is cut is still told from one that is over.
                let mut cut = InflateReader::new(&bytes[..bytes.len() - 1], Compression::Zstd).unwrap();
                assert!(cut.read_to_end(&mut Vec::new()).is_err(), "{name}");
            }
        }
    }
}

/// What lies in the input's buffer is used from there, what does not is put together: the same comes in any case.
#[test]
fn a_stream_comes_in_pieces_of_any_size() {
    let content: Vec<u8> = records(1, 700_000).remove(0);
    for (name, kind) in [
        ("gzip-1-stream", Compression::Gzip),
        ("zlib-1-stream", Compression::Zlib),
        ("zstd-1-stream", Compression::Zstd),
        ("lz4-stream", Compression::Lz4),
        ("snappy-stream", Compression::Snappy),
    ] {
        let mut compressor = ShardCompressor::new(Vec::new(), name.parse().unwrap()).unwrap();
        compressor.write_all(&content).unwrap();
        let (stream, _) = compressor.finish().unwrap();
        // Streams one after the other, but for the format that has only one.
        let streams = if kind == Compression::Zlib { 1 } else { 2 };
        let (bytes, expected) = (stream.repeat(streams), content.repeat(streams));
        for input_bytes in [1, 7, 5_000, 100_000, 1 << 20, 4 << 20] {
            for output_bytes in [999, 300_000, 2 << 20] {
                let input = BufReader::with_capacity(input_bytes, &bytes[..]);
                let mut reader = InflateReader::new(input, kind).unwrap();
                let (mut all, mut buffer) = (Vec::new(), vec![0; output_bytes]);
                loop {
                    match reader.read(&mut buffer).unwrap() {
                        0 => break,
                        length => all.extend_from_slice(&buffer[..length]),
                    }
                }
                assert!(all == expected, "{name} in pieces of {input_bytes} and {output_bytes} bytes");
            }
        }
    }
}
