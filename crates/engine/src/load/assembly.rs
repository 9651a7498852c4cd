//! Assembly: workers put samples into batches, the consumer takes whole batches out, in order.
//!
//! A field that has the same shape in every sample is one buffer per batch, cut into slots; a worker gets the slots of its
//! sample, its last step writes into them, and the full batch is the joined slots: no copy. Other tensors have buffers of
//! their own. Where a step makes many samples of one, finished samples are put in line instead.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::sync::{Condvar, Mutex};
use bytes::BytesMut;
use forebay_codec::{Tensor, TensorSpec};
use forebay_pipeline::{FieldType, Sample, SampleView, Schema, Sink, ValueView};

use super::Next;
use super::batch::{Batch, Column, Pool};
use crate::error::{Error, Result};

/// How batches are put together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) samples: u64,
    pub(super) batch_size: u64,
    pub(super) drop_last: bool,
    /// How many batches may be open or waiting for the consumer.
    pub(super) batches_max: u64,
    /// Whether one sample may become several.
    pub(super) expands: bool,
}

pub(super) struct Assembly {
    schema: Schema,
    shape: Shape,
    /// The fields that have slots: place in the schema, and spec. `None` where samples are put in line.
    dense: Option<Vec<(usize, TensorSpec)>>,
    state: Mutex<State>,
    room: Condvar,
    finished: Condvar,
    pool: Arc<Pool>,
}

#[derive(Default)]
struct State {
    /// The next batch that the consumer gets.
    deliver: u64,
    open: BTreeMap<u64, Open>,
    finished: BTreeMap<u64, Batch>,
    /// Samples that are done, but not all before them are.
    early: BTreeMap<u64, Vec<Sample>>,
    /// The next place to put in line, samples in line, and the number of the next batch that is cut off them.
    line_place: u64,
    line: VecDeque<Sample>,
    line_batch: u64,
    failure: Option<Error>,
    stopped: bool,
}

/// A batch that is being filled.
struct Open {
    slots: Vec<Option<Slot>>,
    outcomes: Vec<Option<Outcome>>,
    missing: usize,
}

/// The places of one sample's tensors in its batch: one for each dense field.
pub(super) struct Slot {
    pieces: Vec<BytesMut>,
}

/// What became of a sample.
enum Outcome {
    /// Its key, and the fields that are not dense, in the order of the schema.
    Filled(Arc<str>, Vec<Rest>),
    Skipped,
}

/// A value that is not in a slot.
enum Rest {
    Int(i64),
    Text(Arc<str>),
    Bytes(bytes::Bytes),
    Tensor(Tensor),
}

impl Assembly {
    pub(super) fn new(schema: Schema, shape: Shape) -> Self {
        let fixed = |(place, (_, kind)): (usize, &(String, FieldType))| kind.fixed_spec().map(|spec| (place, spec));
        let dense = (!shape.expands).then(|| schema.fields.iter().enumerate().filter_map(fixed).collect());
        Self {
            schema,
            shape,
            dense,
            state: Mutex::new(State::default()),
            room: Condvar::new(),
            finished: Condvar::new(),
            pool: Arc::new(Pool::default()),
        }
    }

    /// Waits for room for the sample at `place` and gives its sink; `None` if everything was stopped.
    pub(super) fn claim(&self, place: u64) -> Option<Assembler<'_>> {
        let mut state = self.state.lock();
        let Some(dense) = &self.dense else {
            // Neither too many batches ready, nor too far ahead of a sample that takes long.
            let ahead_max = self.shape.batches_max * self.shape.batch_size;
            while !state.stopped
                && (state.finished.len() as u64 >= self.shape.batches_max || place > state.line_place + ahead_max)
            {
                self.room.wait(&mut state);
            }
            return (!state.stopped).then(|| Assembler::new(self, place, None));
        };
        let number = place / self.shape.batch_size;
        while !state.stopped && number >= state.deliver + self.shape.batches_max {
            self.room.wait(&mut state);
        }
        if state.stopped {
            return None;
        }
        let open = state.open.entry(number).or_insert_with(|| self.open(number, dense));
        let slot = open.slots[(place % self.shape.batch_size) as usize].take();
        debug_assert!(slot.is_some(), "a place is claimed once");
        Some(Assembler::new(self, place, slot))
    }

    /// How many samples batch number `number` has if none is skipped.
    fn expected(&self, number: u64) -> u64 {
        self.shape.batch_size.min(self.shape.samples - number * self.shape.batch_size)
    }

    fn open(&self, number: u64, dense: &[(usize, TensorSpec)]) -> Open {
        let samples = self.expected(number) as usize;
        let mut slots: Vec<Option<Slot>> = (0..samples).map(|_| Some(Slot { pieces: Vec::new() })).collect();
        for (_, spec) in dense {
            let mut rest = self.pool.take(samples * spec.bytes());
            for slot in slots.iter_mut().flatten() {
                slot.pieces.push(rest.split_to(spec.bytes()));
            }
        }
        Open { slots, outcomes: (0..samples).map(|_| None).collect(), missing: samples }
    }

    /// Puts the slot of `place` back, and finishes its batch if it was the last.
    fn fill(&self, place: u64, slot: Slot, outcome: Outcome) {
        let number = place / self.shape.batch_size;
        let within = (place % self.shape.batch_size) as usize;
        let mut state = self.state.lock();
        let Some(open) = state.open.get_mut(&number) else { return };
        open.slots[within] = Some(slot);
        open.outcomes[within] = Some(outcome);
        open.missing -= 1;
        if open.missing > 0 {
            return;
        }
        let open = state.open.remove(&number).expect("looked up above");
        drop(state);
        let batch = self.join(number, open);
        self.state.lock().finished.insert(number, batch);
        self.finished.notify_all();
    }

    /// Joins the slots of a full batch; what was skipped is closed up.
    fn join(&self, number: u64, open: Open) -> Batch {
        let dense = self.dense.as_deref().unwrap_or_default();
        let mut buffers: Vec<Option<BytesMut>> = dense.iter().map(|_| None).collect();
        for slot in open.slots.into_iter().flatten() {
            for (buffer, piece) in buffers.iter_mut().zip(slot.pieces) {
                match buffer {
                    Some(buffer) => buffer.unsplit(piece),
                    None => *buffer = Some(piece),
                }
            }
        }
        let filled: Vec<bool> =
            open.outcomes.iter().map(|outcome| matches!(outcome, Some(Outcome::Filled(..)))).collect();
        let mut columns: Vec<(Arc<str>, Column)> = Vec::with_capacity(self.schema.fields.len());
        let mut buffers = buffers.into_iter();
        for (place, (name, kind)) in self.schema.fields.iter().enumerate() {
            let column = match (dense.iter().find(|(dense, _)| *dense == place), kind) {
                (Some((_, spec)), _) => {
                    let data = close_up(buffers.next().flatten().unwrap_or_default(), &filled, spec.bytes());
                    Column::Dense { spec: *spec, data }
                }
                (None, FieldType::Int) => Column::Ints(Vec::new()),
                (None, FieldType::Text | FieldType::Json) => Column::Texts(Vec::new()),
                (None, FieldType::Tensor { .. }) => Column::Ragged(Vec::new()),
                (None, FieldType::Bytes) => Column::Bytes(Vec::new()),
            };
            columns.push((name.as_str().into(), column));
        }
        let mut keys = Vec::with_capacity(filled.len());
        for outcome in open.outcomes.into_iter().flatten() {
            let Outcome::Filled(key, rest) = outcome else { continue };
            keys.push(key);
            let others = columns.iter_mut().filter(|(_, column)| !matches!(column, Column::Dense { .. }));
            for ((_, column), value) in others.zip(rest) {
                match (column, value) {
                    (Column::Ints(numbers), Rest::Int(number)) => numbers.push(number),
                    (Column::Texts(texts), Rest::Text(text)) => texts.push(text),
                    (Column::Bytes(all), Rest::Bytes(bytes)) => all.push(bytes),
                    (Column::Ragged(tensors), Rest::Tensor(tensor)) => tensors.push(tensor),
                    _ => unreachable!("a value is of its field's type"),
                }
            }
        }
        Batch { number, keys, columns, pool: Some(Arc::clone(&self.pool)) }
    }

    /// Puts finished samples in line, and cuts batches off the front of the line.
    fn line_up(&self, place: u64, samples: Vec<Sample>) {
        let mut state = self.state.lock();
        state.early.insert(place, samples);
        loop {
            let next = state.line_place;
            let Some(samples) = state.early.remove(&next) else { break };
            state.line.extend(samples);
            state.line_place += 1;
        }
        let size = self.shape.batch_size as usize;
        let at_end = state.line_place == self.shape.samples;
        let mut cut = Vec::new();
        while state.line.len() >= size || (at_end && !state.line.is_empty() && !self.shape.drop_last) {
            let count = size.min(state.line.len());
            cut.push((state.line_batch, state.line.drain(..count).collect::<Vec<_>>()));
            state.line_batch += 1;
        }
        drop(state);
        self.room.notify_all();
        let finished = !cut.is_empty() || at_end;
        // Joined without the lock: fields that are alike are copied into one buffer.
        for (number, samples) in cut {
            let batch = Batch::of_samples(number, samples, &self.schema, &self.pool);
            self.state.lock().finished.insert(number, batch);
        }
        if finished {
            self.finished.notify_all();
        }
    }

    /// The next batch in order, if it is there before the deadline.
    pub(super) fn deliver(&self, deadline: Option<Instant>) -> Next {
        let mut state = self.state.lock();
        loop {
            if let Some(failure) = state.failure.take() {
                return Next::Batch(Err(failure));
            }
            if state.stopped || self.is_over(&state) {
                return Next::End;
            }
            let number = state.deliver;
            if let Some(batch) = state.finished.remove(&number) {
                state.deliver += 1;
                drop(state);
                self.room.notify_all();
                return Next::Batch(Ok(batch));
            }
            match deadline {
                None => self.finished.wait(&mut state),
                Some(deadline) if Instant::now() >= deadline => return Next::NotYet,
                Some(deadline) => self.finished.wait_until(&mut state, deadline),
            }
        }
    }

    fn is_over(&self, state: &State) -> bool {
        if self.dense.is_none() {
            return state.line_place == self.shape.samples && state.deliver == state.line_batch;
        }
        let whole = self.shape.samples / self.shape.batch_size;
        let partial = !self.shape.drop_last && !self.shape.samples.is_multiple_of(self.shape.batch_size);
        state.deliver >= whole + u64::from(partial)
    }

    /// Ends everything with an error (the first one counts), which the consumer gets next.
    pub(super) fn fail(&self, error: Error) {
        let mut state = self.state.lock();
        if !state.stopped && state.failure.is_none() {
            state.failure = Some(error);
        }
        state.stopped = true;
        drop(state);
        self.room.notify_all();
        self.finished.notify_all();
    }

    /// Lets everybody who waits go home.
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.room.notify_all();
        self.finished.notify_all();
    }
}

/// Moves the samples that are there together, so that those that were skipped leave no gap.
fn close_up(mut data: BytesMut, filled: &[bool], sample_bytes: usize) -> BytesMut {
    let mut to = 0;
    for from in (0..filled.len()).filter(|&place| filled[place]) {
        if from != to {
            data.copy_within(from * sample_bytes..(from + 1) * sample_bytes, to * sample_bytes);
        }
        to += 1;
    }
    data.truncate(to * sample_bytes);
    data
}

/// Takes one sample from a worker.
pub(super) struct Assembler<'a> {
    assembly: &'a Assembly,
    place: u64,
    slot: Option<Slot>,
    /// Tensors that have no slot: place in the schema, spec, and the buffer that they were written to.
    loose: Vec<(usize, TensorSpec, BytesMut)>,
    rest: Vec<(Arc<str>, Vec<Rest>)>,
    done: Vec<Sample>,
    /// A field that came as something else than the schema says.
    unfit: Option<(String, TensorSpec)>,
}

impl<'a> Assembler<'a> {
    fn new(assembly: &'a Assembly, place: u64, slot: Option<Slot>) -> Self {
        Self { assembly, place, slot, loose: Vec::new(), rest: Vec::new(), done: Vec::new(), unfit: None }
    }

    /// Whether what came fits the schema. A ready step always does; one made in code may break its word.
    pub(super) fn check(&self) -> Result<()> {
        let Some((field, found)) = &self.unfit else { return Ok(()) };
        Err(Error::Usage {
            problem: format!("field `{field}` came as {found}, but the pipeline promised `{}`", self.assembly.schema),
            remedy: "correct the step's `output_type` or what it writes".to_owned(),
        })
    }

    /// The sample is done.
    pub(super) fn finish(mut self) {
        match self.slot.take() {
            None => self.assembly.line_up(self.place, std::mem::take(&mut self.done)),
            Some(slot) => {
                let outcome = self.rest.pop().map_or(Outcome::Skipped, |(key, rest)| Outcome::Filled(key, rest));
                self.assembly.fill(self.place, slot, outcome);
            }
        }
    }

    /// The sample is left out.
    pub(super) fn skip(mut self) {
        match self.slot.take() {
            None => self.assembly.line_up(self.place, Vec::new()),
            Some(slot) => self.assembly.fill(self.place, slot, Outcome::Skipped),
        }
    }

    /// The room for a tensor of `field`: its slot, or a buffer of its own; `None` if it is not what the schema says.
    fn room(&mut self, field: &str, spec: &TensorSpec) -> Option<&mut [u8]> {
        let slot = self.slot.as_mut()?;
        let place = self.assembly.schema.fields.iter().position(|(name, _)| name == field)?;
        let dense = self.assembly.dense.as_deref()?;
        if let Some(number) = dense.iter().position(|(dense, _)| *dense == place) {
            return (dense[number].1 == *spec).then_some(&mut slot.pieces[number]);
        }
        if !self.assembly.schema.fields[place].1.holds(spec) {
            return None;
        }
        self.loose.retain(|(loose, ..)| *loose != place);
        self.loose.push((place, *spec, self.assembly.pool.take(spec.bytes())));
        self.loose.last_mut().map(|(.., buffer)| &mut buffer[..])
    }
}

impl Sink for Assembler<'_> {
    fn place(&mut self, field: &str, spec: &TensorSpec) -> Option<&mut [u8]> {
        self.room(field, spec)
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        if self.slot.is_none() {
            self.done.push(sample.to_sample());
            return;
        }
        // What no online step touched goes into its place as it was stored.
        for (field, value) in sample.fields {
            if let ValueView::Tensor(view) = value {
                match self.room(field, &view.spec) {
                    Some(room) => room.copy_from_slice(view.data),
                    None => self.unfit = Some(((*field).to_owned(), view.spec)),
                }
            }
        }
        let mut rest = Vec::new();
        for (place, (name, _)) in self.assembly.schema.fields.iter().enumerate() {
            if let Some(loose) = self.loose.iter().position(|(loose, ..)| *loose == place) {
                let (_, spec, buffer) = self.loose.swap_remove(loose);
                rest.extend(Tensor::new(spec, buffer.freeze()).map(Rest::Tensor));
                continue;
            }
            let Some((_, value)) = sample.fields.iter().find(|(field, _)| field == name) else { continue };
            match *value {
                ValueView::Tensor(_) => {}
                ValueView::Int(number) => rest.push(Rest::Int(number)),
                ValueView::Text(text) => rest.push(Rest::Text(text.into())),
                ValueView::Bytes(bytes) => rest.push(Rest::Bytes(bytes::Bytes::copy_from_slice(bytes))),
            }
        }
        self.rest.push((sample.key.into(), rest));
    }
}
