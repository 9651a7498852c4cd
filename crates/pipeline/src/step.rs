//! The step: one named transformation, and the kinds of work a step can be.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_codec::{TensorSpec, memory};

use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::{Sample, SampleView, ValueView};
use crate::sample_changes::SampleChanges;
use crate::schema::{FieldType, Schema};
use crate::scope::Scope;
use crate::steps::{Call, StepSpec};

/// One named transformation.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it is called in messages, unique in its pipeline: `decode`, `random_crop`.
    pub name: String,
    /// What a data set is called that is kept after this step: `decoded`, `resized`.
    pub stage: String,
    /// The fields it works on. A random step draws once per sample, so that a picture and its mask are cut alike.
    pub fields: Vec<String>,
    /// What it does.
    pub action: Action,
    /// Its parameters as a pipeline file has them; `None` for a step made in code.
    pub spec: Option<StepSpec>,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Action {
    /// One value becomes another.
    Transform(Arc<dyn Transform>),
    /// Fields of a sample are changed, added or taken away.
    SampleTransform(Arc<dyn SampleTransform>),
    /// One sample becomes any number of samples.
    FlatMap(Arc<dyn FlatMap>),
    /// The samples of a batch change together, once all are there. Such steps come last.
    BatchTransform(Arc<dyn BatchTransform>),
    /// The samples of a shard become others, one after another in order. Such steps are always done once, in a build.
    ShardTransform(Arc<dyn ShardTransform>),
}

impl Action {
    /// Whether its parameters make sense.
    pub fn check(&self) -> Result<(), BadParameter> {
        match self {
            Self::Transform(transform) => transform.check(),
            Self::SampleTransform(transform) => transform.check(),
            Self::FlatMap(flat_map) => flat_map.check(),
            Self::BatchTransform(mix) => mix.check(),
            Self::ShardTransform(pack) => pack.check(),
        }
    }

    /// Whether it draws random numbers, and so must run every epoch.
    pub fn is_random(&self) -> bool {
        match self {
            Self::Transform(transform) => transform.is_random(),
            Self::SampleTransform(transform) => transform.is_random(),
            Self::FlatMap(_) | Self::ShardTransform(_) => false,
            Self::BatchTransform(_) => true,
        }
    }

    /// Whether it can run at all; `false` for a function that only another program has.
    pub fn can_run(&self) -> bool {
        match self {
            Self::SampleTransform(transform) => transform.can_run(),
            Self::Transform(_) | Self::FlatMap(_) | Self::BatchTransform(_) | Self::ShardTransform(_) => true,
        }
    }

    /// What it reads beside its samples, if it does.
    pub fn files(&self) -> Option<&dyn StepFiles> {
        match self {
            Self::Transform(transform) => transform.files(),
            Self::SampleTransform(transform) => transform.files(),
            Self::FlatMap(flat_map) => flat_map.files(),
            Self::BatchTransform(_) | Self::ShardTransform(_) => None,
        }
    }

    /// Whether it makes other samples of those that it takes, so that nobody knows how many there will be.
    pub fn changes_count(&self) -> bool {
        matches!(self, Self::FlatMap(_) | Self::ShardTransform(_))
    }

    /// Whether it moves pixels about.
    pub(crate) fn is_geometric(&self) -> bool {
        match self {
            Self::Transform(transform) => transform.is_geometric(),
            Self::FlatMap(flat_map) => flat_map.is_geometric(),
            Self::SampleTransform(transform) => transform.is_geometric(),
            Self::BatchTransform(_) | Self::ShardTransform(_) => false,
        }
    }

    /// Why masks, boxes and key points must not be left out of its fields, if so.
    pub(crate) fn riders_left(&self) -> Option<&'static str> {
        match self {
            Self::Transform(transform) => transform.riders_left(),
            Self::FlatMap(_) | Self::SampleTransform(_) if self.is_geometric() => Some(FOLLOWS_IF_NAMED),
            _ => None,
        }
    }

    /// The step as the type `T`, if it is a transform of it.
    pub(crate) fn transform_as<T: Transform>(&self) -> Option<&T> {
        match self {
            Self::Transform(transform) => (&**transform as &dyn Any).downcast_ref(),
            Self::SampleTransform(_) | Self::FlatMap(_) | Self::BatchTransform(_) | Self::ShardTransform(_) => None,
        }
    }
}

/// What a step that moves pixels wants of masks, boxes and key points.
pub(crate) const FOLLOWS_IF_NAMED: &str =
    "that field to go with its image: add it to the step's `fields`, after the image, or `drop` it before";

/// What a step needs of its input and does not find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs(pub String);

/// A parameter that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadParameter {
    /// Which, as a pipeline file spells it.
    pub parameter: &'static str,
    /// What it is.
    pub found: String,
    /// What it must be.
    pub expected: &'static str,
}

impl BadParameter {
    /// `Ok` if `valid`, otherwise a complaint about `parameter`.
    pub fn unless(
        valid: bool,
        parameter: &'static str,
        found: &dyn fmt::Debug,
        expected: &'static str,
    ) -> Result<(), Self> {
        if valid {
            return Ok(());
        }
        let found = format!("{found:?}");
        // An option is spelt as its value, or not at all.
        let given = found.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')'));
        let found = if found == "None" { "not given" } else { given.unwrap_or(&found) };
        Err(Self { parameter, found: found.to_owned(), expected })
    }
}

/// The files that a step reads beside its samples: a vocabulary, a table. They are the pipeline's, not the data's.
pub trait StepFiles {
    /// The parameters that are paths, and the paths.
    fn paths(&self) -> Vec<(&'static str, &str)>;

    /// The files at these paths.
    fn named(&self) -> Result<Vec<PathBuf>, StepError> {
        Ok(self.paths().into_iter().map(|(_, path)| path.into()).collect())
    }

    /// Reads them, so that what is missing or damaged is found before a run starts. What it gives is kept as long as the run,
    /// and the step finds it there.
    fn prepare(&self) -> Result<Arc<dyn Any + Send + Sync>, StepError>;
}

/// A transformation of one value into another: a picture out of a file, the text of a page.
pub trait Transform: Any + fmt::Debug + Send + Sync {
    /// Whether it draws random numbers.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether its parameters make sense; asked when a pipeline is made.
    fn check(&self) -> Result<(), BadParameter> {
        Ok(())
    }

    /// Whether it moves pixels about. Such a step works on masks and boxes, too, if their picture comes first in `fields`.
    fn is_geometric(&self) -> bool {
        false
    }

    /// Why masks, boxes and key points of the same sample must not be left out of `fields`, and what to do instead; `None` if they may.
    fn riders_left(&self) -> Option<&'static str> {
        None
    }

    /// What it reads beside its samples, if it does.
    fn files(&self) -> Option<&dyn StepFiles> {
        None
    }

    /// The type it gives for a type it takes, or what it needs instead.
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs>;

    /// Does it: opens `input`, says what it takes beside ([`Output::working`]), and puts the value into `output`, which gives a
    /// tensor the memory where it will stay ([`Output::tensor`]): the slot of a batch, if no step follows.
    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError>;
}

/// A transformation of a whole sample: fields are changed, added or taken away.
pub trait SampleTransform: fmt::Debug + Send + Sync {
    /// Whether it draws random numbers.
    fn is_random(&self) -> bool {
        false
    }

    /// Whether it can run at all.
    fn can_run(&self) -> bool {
        true
    }

    /// Whether its parameters make sense; asked when a pipeline is made.
    fn check(&self) -> Result<(), BadParameter> {
        Ok(())
    }

    /// What it reads beside its samples, if it does.
    fn files(&self) -> Option<&dyn StepFiles> {
        None
    }

    /// The same with its function, if it needs one and `find` has it.
    fn resolved(&self, find: &dyn Fn(&str) -> Option<Arc<dyn Call>>) -> Option<Arc<dyn SampleTransform>> {
        let _ = find;
        None
    }

    /// Whether it moves pixels about, as [`Transform::is_geometric`].
    fn is_geometric(&self) -> bool {
        false
    }

    /// The fields that a sample has after it, or what it needs and does not find.
    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs>;

    /// Does it: says which fields change to what, and which go. All others stay.
    fn run(
        &self,
        fields: &[String],
        sample: &SampleView<'_>,
        changes: &mut SampleChanges<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError>;
}

/// A transformation of one sample into any number of samples: the windows of a signal, the tiles of a picture.
pub trait FlatMap: fmt::Debug + Send + Sync {
    /// Whether its parameters make sense; asked when a pipeline is made.
    fn check(&self) -> Result<(), BadParameter> {
        Ok(())
    }

    /// What it reads beside its samples, if it does.
    fn files(&self) -> Option<&dyn StepFiles> {
        None
    }

    /// The type it gives for a type it takes, or what it needs instead.
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs>;

    /// Whether it moves pixels about, as [`Transform::is_geometric`].
    fn is_geometric(&self) -> bool {
        false
    }

    /// Gives each new sample to `parts`, in order. Keys must stay unique. The first of `fields` decides what is made of the others.
    fn flat_map(&self, sample: &Sample, fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError>;
}

/// What becomes of a sample that is made into several.
pub struct Parts<'a> {
    /// To be asked before so many bytes more are taken.
    pub reserve: &'a mut dyn FnMut(usize) -> Result<(), StepError>,
    /// Takes a new sample.
    pub emit: &'a mut dyn FnMut(Sample),
    /// Buffers of samples that are through, to be used again.
    pub spare: &'a mut Vec<Vec<u8>>,
}

impl Parts<'_> {
    /// A buffer of so many bytes for a new sample, all of which are to be written: what is in it is left over.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Result<Vec<u8>, StepError> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        memory::grow(&mut buffer, bytes)?;
        buffer.truncate(bytes);
        Ok(buffer)
    }
}

/// A transformation of the samples of a batch together, in place: pictures that are mixed with each other.
pub trait BatchTransform: fmt::Debug + Send + Sync {
    /// Whether its parameters make sense; asked when a pipeline is made.
    fn check(&self) -> Result<(), BadParameter> {
        Ok(())
    }

    /// The fields that a sample has after it, or what it needs and does not find. Its own must be tensors of a fixed shape.
    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs>;

    /// Does it to the columns of its fields, in their order. `random` follows from seed, epoch and the batch's samples.
    fn run(&self, columns: &mut [BatchColumn<'_>], random: &mut Random);
}

/// A field of all samples of a batch: tensors of one shape, one after another.
pub struct BatchColumn<'a> {
    /// What each is.
    pub spec: TensorSpec,
    /// All of them.
    pub data: &'a mut [u8],
}

/// A transformation of the samples of a shard into others: documents that are packed into windows. What it makes of a shard follows from the
/// shard's samples and their order alone, so that a build gives the same on any number of threads, and after any interruption.
pub trait ShardTransform: fmt::Debug + Send + Sync {
    /// Whether its parameters make sense; asked when a pipeline is made.
    fn check(&self) -> Result<(), BadParameter> {
        Ok(())
    }

    /// The fields that a sample has after it, or what it needs and does not find.
    fn output_schema(&self, fields: &[String], input: &Schema) -> Result<Schema, Needs>;

    /// A shard begins.
    fn begin(&self) -> Box<dyn ShardState>;
}

/// What a [`ShardTransform`] holds of a shard between two samples.
pub trait ShardState: Send {
    /// Takes a sample, and gives each new one that is whole to `parts`. Asks for memory before it holds anything of the sample, so that
    /// one that does not fit can be left out.
    fn push(&mut self, fields: &[String], sample: &SampleView<'_>, parts: &mut Parts<'_>) -> Result<(), StepError>;

    /// The shard ends: gives what is left.
    fn finish(&mut self, fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError>;

    /// How many bytes it holds.
    fn bytes(&self) -> usize;
}
