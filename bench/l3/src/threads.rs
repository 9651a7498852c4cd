//! Strips over threads: a 2048×1024 image by one thread and by two.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Instant,
};

use forebay_l3::{DecodeOptions, Depth, EncodeOptions, Mode, Pixels, Scratch, Shape, Strips, encode};

use crate::{pictures::Picture, report::median};

/// Median seconds of one and of two threads for a mode.
pub struct Threads {
    pub mode: Mode,
    pub strips: u32,
    pub one_seconds: f64,
    pub two_seconds: f64,
}

const WIDTH: u32 = 2048;
const HEIGHT: u32 = 1024;

/// Measures the first image that is large enough, cut to size.
pub fn measure(pictures: &[Picture], repetitions: usize) -> Vec<Threads> {
    let Some(picture) = pictures.iter().find(|p| p.shape.width() >= WIDTH && p.shape.height() >= HEIGHT) else {
        return Vec::new();
    };
    let shape = Shape::new(WIDTH, HEIGHT, 3, Depth::Eight).expect("a valid shape");
    let pixels = Pixels::with_stride(shape, &picture.pixels, picture.shape.row_bytes()).expect("large enough");
    [Mode::Fast, Mode::Dense]
        .map(|mode| {
            let file = encode(&pixels, &EncodeOptions::new(mode)).expect("l3 encodes");
            let strips = Strips::open(&file, DecodeOptions::default()).expect("l3 opens");
            let [one_seconds, two_seconds] = [1, 2].map(|threads| seconds(&strips, shape, threads, repetitions));
            Threads { mode, strips: strips.count(), one_seconds, two_seconds }
        })
        .into()
}

/// Where threads wait for each other without sleeping: waking a thread takes a good part of the time that is measured.
struct Gate {
    threads: usize,
    waiting: AtomicUsize,
    round: AtomicUsize,
}

impl Gate {
    fn wait(&self) {
        let round = self.round.load(Ordering::SeqCst);
        if self.waiting.fetch_add(1, Ordering::SeqCst) + 1 == self.threads {
            self.waiting.store(0, Ordering::SeqCst);
            self.round.fetch_add(1, Ordering::SeqCst);
        } else {
            while self.round.load(Ordering::SeqCst) == round {
                std::hint::spin_loop();
            }
        }
    }
}

/// The median time from when all threads are ready until all strips are decoded. The threads live through all repetitions.
fn seconds(strips: &Strips<'_>, shape: Shape, threads: usize, repetitions: usize) -> f64 {
    let strip_bytes = strips.header().strip_rows as usize * shape.row_bytes();
    let mut out = vec![0u8; shape.bytes()];
    let parts: Vec<Mutex<&mut [u8]>> = out.chunks_mut(strip_bytes).map(Mutex::new).collect();
    let gate = Gate { threads, waiting: AtomicUsize::new(0), round: AtomicUsize::new(0) };
    let next = AtomicU32::new(0);
    let work = || {
        let mut scratch = Scratch::default();
        let mut times = Vec::new();
        for _ in 0..repetitions {
            gate.wait();
            next.store(0, Ordering::SeqCst);
            gate.wait();
            let start = Instant::now();
            loop {
                let strip = next.fetch_add(1, Ordering::Relaxed);
                let Some(part) = parts.get(strip as usize) else { break };
                let mut part = part.lock().expect("no thread has failed");
                strips.decode_strip_into(strip, &mut scratch, &mut part, shape.row_bytes()).expect("l3 decodes");
            }
            gate.wait();
            times.push(start.elapsed().as_secs_f64());
        }
        times
    };
    let times = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let times = work();
        for other in others {
            other.join().expect("no thread has failed");
        }
        times
    });
    median(&times)
}
