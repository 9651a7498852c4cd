//! Batcher: workers put samples into batches, the consumer takes whole batches out, in order.
//!
//! A field that has the same shape in every sample is one buffer per batch, cut into slots; a worker gets the slots of its
//! sample, its last step writes into them, and the full batch is the joined slots: no copy. Other tensors have buffers of
//! their own. Where a step makes many samples of one, finished samples are put in line instead.
//!
//! What they take is charged to the memory budget before it is allocated, under the lock that is taken anyway: a batch when
//! it is opened, what a worker takes beyond its own part when it asks, and values of no fixed size one by one. The sample
//! that the consumer waits for never waits (see [`crate::memory`]). A batch that was handed over counts until the next one is
//! asked for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::sync::{Condvar, Guard, Mutex};
use bytes::BytesMut;
use forebay_codec::{Tensor, TensorSpec};
use forebay_pipeline::{FieldType, Sample, Schema, StepError};

use super::Next;
use super::activity::Activity;
use super::batch::{Batch, Column, close_up};
use super::batch_steps::BatchSteps;
use super::collator::Collator;
use super::ids::Turn;
use super::pool::{Idle, Pool};
use crate::error::{Error, Result};
use crate::memory::{Charge, Shares};

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

pub(super) struct Batcher {
    pub(super) schema: Schema,
    shape: Shape,
    /// The fields that have slots: index in the schema, and spec. `None` where samples are put in line.
    pub(super) dense: Option<Vec<(usize, TensorSpec)>>,
    state: Mutex<State>,
    space: Condvar,
    finished: Condvar,
    pub(super) pool: Arc<Pool>,
    pub(super) shares: Shares,
    activity: Arc<Activity>,
    /// What is done to whole batches.
    steps: BatchSteps,
}

#[derive(Default)]
struct State {
    /// The next batch that the consumer gets.
    deliver: u64,
    open: BTreeMap<u64, Open>,
    finished: BTreeMap<u64, (Batch, Charge)>,
    /// Samples that are done, but not all before them are.
    early: BTreeMap<Turn, Vec<Charged>>,
    /// The oldest turn that is not done, and the next one to put in line.
    oldest: Turn,
    /// Which of the turns from the oldest on are done; not used where samples are put in line.
    done: VecDeque<bool>,
    /// Samples in line, and the number of the next batch that is cut off them.
    line: VecDeque<Charged>,
    line_batch: u64,
    /// What is charged to the memory budget now, and was at most.
    charged: Charge,
    charged_peak: u64,
    /// What the batch takes that was handed over last.
    in_hand: Charge,
    /// How many batches are being cut off the line.
    joining: usize,
    /// How many workers wait for space.
    workers_waiting: usize,
    failure: Option<Error>,
    stopped: bool,
}

/// A finished sample, and what it takes.
pub(super) type Charged = (Sample, Charge);

/// So many bytes of texts and bytes of each sample are charged when its batch is opened, so that labels and names need not
/// be charged one by one.
pub(super) const SMALL_BYTES: u64 = 256;

/// A batch that is being filled.
struct Open {
    /// What it takes, and will take when those who wait for memory have it.
    promised: u64,
    charge: Charge,
    slots: Vec<Option<Slot>>,
    outcomes: Vec<Option<Outcome>>,
    missing: usize,
}

/// The slots of one sample's tensors in its batch: one for each dense field.
pub(super) struct Slot {
    pub(super) pieces: Vec<BytesMut>,
}

/// What became of a sample.
pub(super) enum Outcome {
    /// Its key, its number (as its random steps have it), and the fields that are not dense, in the order of the schema.
    Filled(Arc<str>, u64, Vec<Rest>),
    Skipped,
}

/// A value that is not in a slot.
pub(super) enum Rest {
    Int(i64),
    Text(Arc<str>),
    Bytes(bytes::Bytes),
    Tensor(Tensor),
}

impl Batcher {
    pub(super) fn new(
        schema: Schema,
        shape: Shape,
        shares: Shares,
        idle: Idle,
        activity: Arc<Activity>,
        steps: BatchSteps,
    ) -> Self {
        let fixed = |(index, (_, kind)): (usize, &(String, FieldType))| kind.fixed_spec().map(|spec| (index, spec));
        let dense = (!shape.expands).then(|| schema.fields.iter().enumerate().filter_map(fixed).collect());
        let Shares { pool_bytes, batch_bytes, ahead_bytes, .. } = shares;
        let batches_bytes = (batch_bytes + ahead_bytes) as usize;
        Self {
            schema,
            shape,
            dense,
            state: Mutex::new(State::default()),
            space: Condvar::new(),
            finished: Condvar::new(),
            pool: Arc::new(Pool::new(idle, pool_bytes as usize, batches_bytes, batch_bytes as usize)),
            shares,
            activity,
            steps,
        }
    }

    /// What a batch of `samples` takes when it is opened.
    fn opening_bytes(&self, samples: u64) -> u64 {
        let dense = self.dense.iter().flatten().map(|(_, spec)| spec.bytes() as u64);
        dense.fold(SMALL_BYTES, u64::saturating_add).saturating_mul(samples)
    }

    /// Refuses batches that will never fit into the budget.
    pub(super) fn check(&self) -> Result<()> {
        let bytes = self.opening_bytes(self.shape.batch_size);
        if self.dense.is_some() && bytes > self.shares.batch_bytes { Err(self.batch_too_large(bytes)) } else { Ok(()) }
    }

    fn batch_too_large(&self, bytes: u64) -> Error {
        let Shares { batch_bytes, memory_bytes, .. } = self.shares;
        let size = self.shape.batch_size;
        Error::Limit {
            problem: format!(
                "a batch of {size} samples of `{}` takes {bytes} bytes or more, but a memory budget of {memory_bytes} bytes has {batch_bytes} for one",
                self.schema
            ),
            remedy: "make batches or samples smaller, or raise `memory` (`--memory`)".to_owned(),
        }
    }

    /// Whether the consumer waits for the sample of `turn` before all others, and has given back what it had.
    fn is_awaited(&self, state: &State, turn: Turn) -> bool {
        let next = match self.dense {
            Some(_) => turn.in_batch(self.shape.batch_size).0 == state.deliver,
            None => state.finished.is_empty() && state.joining == 0,
        };
        turn == state.oldest && next && state.in_hand.front == 0
    }

    /// Waits until the sample of `turn`, which takes `has` bytes, may take `more`.
    pub(super) fn charge(&self, turn: Turn, has: u64, more: u64) -> Result<Charge, StepError> {
        self.check_sample(has, more)?;
        self.charge_locked(&mut self.state.lock(), turn, more)
    }

    /// The same for what the sample will have in its batch.
    pub(super) fn charge_batch(&self, turn: Turn, has: u64, more: u64) -> Result<Charge, StepError> {
        self.check_sample(has, more)?;
        let (number, _) = turn.in_batch(self.shape.batch_size);
        let mut state = self.state.lock();
        let promised = state.open.get_mut(&number).map_or(0, |open| {
            open.promised = open.promised.saturating_add(more);
            open.promised
        });
        if promised > self.shares.batch_bytes {
            drop(state);
            self.fail(self.batch_too_large(promised));
            return Err(StepError::Stopped);
        }
        let charge = self.charge_locked(&mut state, turn, more)?;
        if let Some(open) = state.open.get_mut(&number) {
            open.charge += charge;
        }
        Ok(charge)
    }

    fn check_sample(&self, has: u64, more: u64) -> Result<(), StepError> {
        let bytes = has.saturating_add(more);
        if bytes > self.shares.sample_bytes { Err(self.shares.too_large(bytes)) } else { Ok(()) }
    }

    fn charge_locked(&self, state: &mut Guard<'_, State>, turn: Turn, more: u64) -> Result<Charge, StepError> {
        loop {
            if state.stopped {
                return Err(StepError::Stopped);
            }
            if self.is_awaited(state, turn) {
                let taken = state.take(Charge { front: more, ahead: 0 });
                debug_assert!(state.charged.front <= self.shares.batch_bytes + self.shares.sample_bytes);
                self.pool.settle(state.charged.bytes());
                return Ok(taken);
            }
            if state.charged.ahead + more <= self.shares.ahead_bytes {
                let taken = state.take(Charge { front: 0, ahead: more });
                self.pool.settle(state.charged.bytes());
                return Ok(taken);
            }
            self.wait_for_space(state);
        }
    }

    fn wait_for_space(&self, state: &mut Guard<'_, State>) {
        state.workers_waiting += 1;
        self.activity.batch_wait.timed(|| self.space.wait(state));
        state.workers_waiting -= 1;
    }

    /// Lets those who wait look again, after something changed that they may wait for.
    fn notify_space(&self, state: &State) {
        if state.workers_waiting > 0 {
            self.space.notify_all();
        }
    }

    /// Gives back what was charged.
    pub(super) fn release(&self, charge: Charge) {
        if charge.bytes() > 0 {
            let mut state = self.state.lock();
            state.give(charge);
            self.notify_space(&state);
        }
    }

    /// How many bytes were charged at most, and are now.
    pub(super) fn memory_bytes(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.charged_peak, state.charged.bytes())
    }

    /// Whether everything was stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Waits for space for the sample of `turn` and gives its sink; `None` if everything was stopped.
    pub(super) fn claim(&self, turn: Turn) -> Option<Collator<'_>> {
        let mut state = self.state.lock();
        if self.dense.is_none() {
            // Neither too many batches ready, nor too far ahead of a sample that takes long.
            let ahead_max = self.shape.batches_max * self.shape.batch_size;
            while !state.stopped
                && (state.finished.len() as u64 >= self.shape.batches_max || turn.0 > state.oldest.0 + ahead_max)
            {
                self.wait_for_space(&mut state);
            }
            return (!state.stopped).then(|| Collator::new(self, turn, None));
        }
        let (number, within) = turn.in_batch(self.shape.batch_size);
        while !state.stopped && !self.is_open(&mut state, number) {
            self.wait_for_space(&mut state);
        }
        if state.stopped {
            return None;
        }
        let open = state.open.get_mut(&number)?;
        let slot = open.slots[within].take();
        debug_assert!(slot.is_some(), "a turn is claimed once");
        Some(Collator::new(self, turn, slot))
    }

    /// Whether batch number `number` is open, or could be opened now.
    fn is_open(&self, state: &mut State, number: u64) -> bool {
        if state.open.contains_key(&number) {
            return true;
        }
        let bytes = self.opening_bytes(self.expected(number));
        let is_awaited = number == state.deliver && state.in_hand.front == 0;
        let fits = state.charged.ahead + bytes <= self.shares.ahead_bytes;
        if number >= state.deliver + self.shape.batches_max || !(is_awaited || fits) {
            return false;
        }
        let charge = if is_awaited { Charge { front: bytes, ahead: 0 } } else { Charge { front: 0, ahead: bytes } };
        match self.open(number, charge) {
            Ok(open) => {
                // Only now: what it needs would be the first to go.
                state.take(charge);
                self.pool.settle(state.charged.bytes());
                state.open.insert(number, open);
                true
            }
            Err(error) => {
                state.failure.get_or_insert(error);
                state.stopped = true;
                self.finished.notify_all();
                self.notify_space(state);
                false
            }
        }
    }

    /// How many samples batch number `number` has if none is skipped.
    fn expected(&self, number: u64) -> u64 {
        self.shape.batch_size.min(self.shape.samples - number * self.shape.batch_size)
    }

    fn open(&self, number: u64, charge: Charge) -> Result<Open> {
        let samples = self.expected(number) as usize;
        let mut slots: Vec<Option<Slot>> = (0..samples).map(|_| Some(Slot { pieces: Vec::new() })).collect();
        for (_, spec) in self.dense.iter().flatten() {
            let mut rest = self.pool.take(samples * spec.bytes()).map_err(|error| out_of_memory(&error))?;
            for slot in slots.iter_mut().flatten() {
                slot.pieces.push(rest.split_to(spec.bytes()));
            }
        }
        Ok(Open {
            promised: charge.bytes(),
            charge,
            slots,
            outcomes: (0..samples).map(|_| None).collect(),
            missing: samples,
        })
    }

    /// Puts the slot of `turn` back, and finishes its batch if it was the last. `work` is no longer taken; of a sample that was
    /// skipped, what it has in its batch is not, either.
    pub(super) fn fill(&self, turn: Turn, slot: Slot, outcome: Outcome, work: Charge, output: Charge) {
        let (number, within) = turn.in_batch(self.shape.batch_size);
        let mut state = self.state.lock();
        state.give(work);
        state.mark_done(turn);
        self.notify_space(&state);
        let Some(open) = state.open.get_mut(&number) else { return };
        let skipped = if let Outcome::Skipped = outcome { output } else { Charge::default() };
        open.promised -= skipped.bytes();
        open.charge.front -= skipped.front;
        open.charge.ahead -= skipped.ahead;
        open.slots[within] = Some(slot);
        open.outcomes[within] = Some(outcome);
        open.missing -= 1;
        let is_full = open.missing == 0;
        state.give(skipped);
        if !is_full {
            return;
        }
        let open = state.open.remove(&number).expect("looked up above");
        drop(state);
        let charge = open.charge;
        let (mut batch, first) = self.join(number, open);
        self.steps.run(&mut batch, first);
        self.state.lock().finished.insert(number, (batch, charge));
        self.finished.notify_all();
    }

    /// Joins the slots of a full batch; what was skipped is closed up. Gives the number of the first sample, too.
    fn join(&self, number: u64, open: Open) -> (Batch, Option<u64>) {
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
        for (index, (name, kind)) in self.schema.fields.iter().enumerate() {
            let column = match (dense.iter().find(|(dense, _)| *dense == index), kind) {
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
        let (mut keys, mut first) = (Vec::with_capacity(filled.len()), None);
        for outcome in open.outcomes.into_iter().flatten() {
            let Outcome::Filled(key, number, rest) = outcome else { continue };
            keys.push(key);
            first.get_or_insert(number);
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
        (Batch { number, keys, columns, pool: Some(Arc::clone(&self.pool)) }, first)
    }

    /// Puts finished samples in line, and cuts batches off the front of the line. `work` is no longer taken.
    pub(super) fn line_up(&self, turn: Turn, samples: Vec<Charged>, work: Charge) {
        let mut state = self.state.lock();
        state.give(work);
        state.early.insert(turn, samples);
        loop {
            let next = state.oldest;
            let Some(samples) = state.early.remove(&next) else { break };
            state.line.extend(samples);
            state.oldest = next.next();
        }
        let size = self.shape.batch_size as usize;
        let at_end = state.oldest.0 == self.shape.samples;
        let mut cut = Vec::new();
        while state.line.len() >= size || (at_end && !state.line.is_empty() && !self.shape.drop_last) {
            let count = size.min(state.line.len());
            cut.push((state.line_batch, state.line.drain(..count).collect::<Vec<_>>()));
            state.line_batch += 1;
        }
        let left: u64 = state.line.iter().map(|(_, charge)| charge.bytes()).sum();
        if at_end {
            // What is left is dropped with the last batch.
            let mut dropped = Charge::default();
            state.line.drain(..).for_each(|(_, charge)| dropped += charge);
            state.give(dropped);
        }
        // Batches that are about to be there count as such: the sample after them is not awaited yet.
        state.joining += cut.len();
        self.notify_space(&state);
        drop(state);
        if !at_end && left > self.shares.batch_bytes {
            return self.fail(self.batch_too_large(left));
        }
        let finished = !cut.is_empty() || at_end;
        // Joined without the lock: fields that are alike are copied into one buffer.
        for (number, samples) in cut {
            let mut charge = Charge::default();
            let first = samples.first().map(|(sample, _)| sample.index);
            let samples = samples.into_iter().map(|(sample, of_sample)| {
                charge += of_sample;
                sample
            });
            match Batch::of_samples(number, samples.collect(), &self.schema, &self.pool) {
                Ok(mut batch) => {
                    self.steps.run(&mut batch, first);
                    let mut state = self.state.lock();
                    state.finished.insert(number, (batch, charge));
                    state.joining -= 1;
                }
                Err(error) => return self.fail(out_of_memory(&error)),
            }
        }
        if finished {
            self.finished.notify_all();
        }
    }

    /// The next batch in order, if it is there before the deadline.
    pub(super) fn deliver(&self, deadline: Option<Instant>) -> Next {
        let mut state = self.state.lock();
        let in_hand = std::mem::take(&mut state.in_hand);
        if in_hand.bytes() > 0 {
            state.give(in_hand);
            self.pool.hand_over(state.charged.bytes(), 0);
            self.notify_space(&state);
        }
        loop {
            if let Some(failure) = state.failure.take() {
                return Next::Batch(Err(failure));
            }
            if state.stopped || self.is_over(&state) {
                return Next::End;
            }
            let number = state.deliver;
            if let Some((batch, charge)) = state.finished.remove(&number) {
                state.deliver += 1;
                state.in_hand = charge;
                self.pool.hand_over(state.charged.bytes(), charge.bytes());
                self.notify_space(&state);
                drop(state);
                return Next::Batch(Ok(batch));
            }
            match deadline {
                None => self.activity.consumer_wait.timed(|| self.finished.wait(&mut state)),
                Some(deadline) if Instant::now() >= deadline => return Next::NotYet,
                Some(deadline) => {
                    self.activity.consumer_wait.timed(|| self.finished.wait_until(&mut state, deadline));
                }
            }
        }
    }

    fn is_over(&self, state: &State) -> bool {
        if self.dense.is_none() {
            return state.oldest.0 == self.shape.samples && state.deliver == state.line_batch;
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
        self.space.notify_all();
        self.finished.notify_all();
    }

    /// Lets everybody who waits go home.
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.space.notify_all();
        self.finished.notify_all();
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.pool.end();
    }
}

impl State {
    fn take(&mut self, charge: Charge) -> Charge {
        self.charged += charge;
        self.charged_peak = self.charged_peak.max(self.charged.bytes());
        charge
    }

    fn give(&mut self, charge: Charge) {
        self.charged.front -= charge.front;
        self.charged.ahead -= charge.ahead;
    }

    /// Notes that the sample of `turn` is done, and moves on to the oldest that is not.
    fn mark_done(&mut self, turn: Turn) {
        let within = (turn.0 - self.oldest.0) as usize;
        if self.done.len() <= within {
            self.done.resize(within + 1, false);
        }
        self.done[within] = true;
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.oldest = self.oldest.next();
        }
    }
}

/// Memory could not be had.
pub(super) fn out_of_memory(error: &forebay_codec::Error) -> Error {
    let problem = error.to_string();
    let (problem, _) = problem.split_once('\n').unwrap_or((&problem, ""));
    Error::Limit {
        problem: format!("a batch cannot be made: {problem}"),
        remedy: "make batches or samples smaller, or set a smaller `memory` (`--memory`), so that less is made ahead"
            .to_owned(),
    }
}
