//! Parts of a build, and what somebody else does while they run.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use forebay_engine::build::{BuildOptions, Prepared};
use forebay_engine::data::Reach;
use forebay_pipeline::Pipeline;
use forebay_storage::{DroppedCache, Entry, EntryKind, File, Folder, Lock, Result, Status, Storage, Upload, Walk};

use crate::object_server::ObjectServer;
use crate::parts::{content, finish, run_part};
use crate::support::{SMALL, build, local, options, photo, photos, pipeline};

/// What a storage is asked to do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    Read,
    Create,
    Commit,
    WriteNew,
    Remove,
    RemoveFolder,
}

type Meanwhile<'a> = Box<dyn FnOnce() + Send + 'a>;

/// A storage in which something else happens right before it does `asked` with the first file whose path contains `name`.
#[derive(Clone)]
struct Interrupted {
    inner: Arc<dyn Storage>,
    asked: Asked,
    name: &'static str,
    meanwhile: Arc<Mutex<Option<Meanwhile<'static>>>>,
}

impl Interrupted {
    fn new(
        inner: &Arc<dyn Storage>,
        (asked, name): (Asked, &'static str),
        meanwhile: impl FnOnce() + Send + 'static,
    ) -> Arc<Self> {
        let meanwhile = Arc::new(Mutex::new(Some(Box::new(meanwhile) as Meanwhile<'static>)));
        Arc::new(Self { inner: Arc::clone(inner), asked, name, meanwhile })
    }

    fn before(&self, asked: Asked, path: &Path) {
        if asked == self.asked && path.to_string_lossy().contains(self.name) {
            let meanwhile = self.meanwhile.lock().unwrap().take();
            if let Some(meanwhile) = meanwhile {
                meanwhile();
            }
        }
    }

    fn happened(&self) -> bool {
        self.meanwhile.lock().unwrap().is_none()
    }
}

impl fmt::Debug for Interrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interrupted")
    }
}

impl Storage for Interrupted {
    fn name(&self) -> &'static str {
        "interrupted"
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.inner.open(path)
    }

    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Bytes> {
        self.before(Asked::Read, path);
        self.inner.read_file(path, limit_bytes)
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        self.inner.status(path)
    }

    fn is_taken(&self, path: &Path) -> Result<bool> {
        self.inner.is_taken(path)
    }

    fn kind(&self, path: &Path) -> Result<Option<EntryKind>> {
        self.inner.kind(path)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        self.inner.entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        self.inner.walk(root, wanted)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.before(Asked::Create, path);
        let upload = self.inner.create(path)?;
        Ok(Box::new(InterruptedUpload { upload, path: path.to_owned(), storage: self.clone() }))
    }

    fn create_shared(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.before(Asked::Create, path);
        let upload = self.inner.create_shared(path)?;
        Ok(Box::new(InterruptedUpload { upload, path: path.to_owned(), storage: self.clone() }))
    }

    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        self.before(Asked::WriteNew, path);
        self.inner.write_new(path, content)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.before(Asked::Remove, path);
        self.inner.remove(path)
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        self.inner.make_folder(path)
    }

    fn own_folder(&self, path: &Path) -> Result<()> {
        self.inner.own_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> Result<()> {
        self.before(Asked::RemoveFolder, path);
        self.inner.remove_folder(path)
    }

    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.inner.lock(path)
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        self.inner.drop_cache(paths)
    }
}

struct InterruptedUpload {
    upload: Box<dyn Upload>,
    path: PathBuf,
    storage: Interrupted,
}

impl Write for InterruptedUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.upload.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

impl Upload for InterruptedUpload {
    fn commit(self: Box<Self>) -> Result<()> {
        self.storage.before(Asked::Commit, &self.path);
        self.upload.commit()
    }
}

/// A build of `photos` into `output`, as a scheduler would run it.
#[derive(Clone)]
struct Job {
    pipeline: Pipeline,
    photos: PathBuf,
    output: Folder,
}

impl Job {
    fn prepare(&self) {
        let options = BuildOptions { overwrite: true, ..options(4) };
        build(&self.pipeline, "resized", &self.photos, local()).prepare(self.output.clone(), &options).unwrap();
    }

    fn run_parts(&self) {
        for part in ["1/2", "2/2"] {
            run_part(&self.pipeline, "resized", (&self.photos, local()), &self.output, part).unwrap();
        }
    }

    fn finish(&self) {
        // Where the manifest is there already, there is nothing to do.
        let source = self.pipeline.source();
        if Prepared::find(self.output.clone(), source, self.photos.as_path(), Reach::Root).unwrap().is_some() {
            finish(&self.pipeline, "resized", &self.photos, &self.output).unwrap();
        }
    }

    /// What a plain build gives.
    fn expected(&self) -> BTreeMap<String, Vec<u8>> {
        let whole = tempfile::tempdir().unwrap();
        build(&self.pipeline, "resized", &self.photos, local()).run(whole.path(), &options(4), &()).unwrap();
        content(&whole.path().into())
    }
}

/// The files at the ends of a part, and of what it does with them.
const MOMENTS: [(Asked, &str); 5] = [
    (Asked::Read, ".jpg"),
    (Asked::Create, "shard-00002.tfrecord.idx"),
    (Asked::Commit, "shard-00002.tfrecord.crc"),
    (Asked::Commit, "shard-00000.tfrecord"),
    (Asked::WriteNew, "shard-00002"),
];

/// A folder of this machine and one in a bucket, which is called so.
fn outputs(server: &ObjectServer, here: &Path, name: &str) -> [Folder; 2] {
    [(&here.join(name)).into(), Folder::new(crate::remote::connected(server), format!("s3://bucket/{name}"))]
}

/// What a part reads from and writes to, of which one is `storage`.
fn source_and_output(reads: bool, storage: &Arc<Interrupted>, output: &Folder) -> (Arc<dyn Storage>, Folder) {
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    if reads { (storage, output.clone()) } else { (local(), Folder::new(storage, output.path())) }
}

#[test]
fn a_part_of_a_build_that_was_replaced_leaves_nothing_in_the_other_one() {
    // As many pictures of the same names and sizes, so that the shards have the same sizes, too.
    let (old, new, pipeline) = (photos(20), photos(20), pipeline(SMALL));
    for number in 0..20 {
        let class = ["ant", "bee", "cat"][number % 3];
        std::fs::write(new.path().join(class).join(format!("{number:04}.jpg")), photo(number + 35)).unwrap();
    }
    let (server, here) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let mut cases = 0;
    for moment in MOMENTS {
        for is_built in [false, true] {
            cases += 1;
            for output in outputs(&server, here.path(), &format!("replaced-{cases}")) {
                let what = format!("{moment:?}, built: {is_built}, {}", output.path().display());
                let job = |photos: &Path| Job {
                    pipeline: pipeline.clone(),
                    photos: photos.to_owned(),
                    output: output.clone(),
                };
                let (stale, other) = (job(old.path()), job(new.path()));
                stale.prepare();
                let meanwhile = other.clone();
                let replace = move || {
                    meanwhile.prepare();
                    if is_built {
                        meanwhile.run_parts();
                    }
                };
                let reads = moment.0 == Asked::Read;
                let inner = if reads { local() } else { Arc::clone(output.storage()) };
                let storage = Interrupted::new(&inner, moment, replace);
                let (source, into) = source_and_output(reads, &storage, &output);
                let said = run_part(&pipeline, "resized", (old.path(), source), &into, "1/2");
                assert!(storage.happened(), "{what}");
                let said = said.expect_err(&what).to_string();
                assert!(said.contains("another build was prepared in"), "{what}: {said}");
                other.run_parts();
                other.finish();
                assert!(content(&output) == other.expected(), "{what}: other bytes");
            }
        }
    }
}

#[test]
fn who_comes_too_late_finds_the_data_set_finished() {
    let (photos, pipeline) = (photos(20), pipeline(SMALL));
    let (server, here) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    for (number, moment) in MOMENTS.into_iter().enumerate() {
        for output in outputs(&server, here.path(), &format!("late-{number}")) {
            let what = format!("{moment:?}, {}", output.path().display());
            let job = Job { pipeline: pipeline.clone(), photos: photos.path().to_owned(), output: output.clone() };
            job.prepare();
            let meanwhile = job.clone();
            let finish = move || {
                meanwhile.run_parts();
                meanwhile.finish();
            };
            let reads = moment.0 == Asked::Read;
            let inner = if reads { local() } else { Arc::clone(output.storage()) };
            let storage = Interrupted::new(&inner, moment, finish);
            let (source, into) = source_and_output(reads, &storage, &output);
            let report = run_part(&pipeline, "resized", (photos.path(), source), &into, "1/2").expect(&what);
            assert!(storage.happened() && (report.shards, report.samples) == (2, 10), "{what}: {report:?}");
            assert!(content(&output) == job.expected(), "{what}: {:?}", content(&output).keys());
        }
    }
}

#[test]
fn of_two_who_finish_both_are_done() {
    let (photos, pipeline) = (photos(20), pipeline(SMALL));
    let (server, here) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let moments = [
        (Asked::Read, "build.json"),
        (Asked::Read, "listing.jsonl"),
        (Asked::Read, "shard-00000"),
        (Asked::Read, "shard-00003"),
        (Asked::Create, "dataset.json"),
        (Asked::Commit, "dataset.json"),
        (Asked::Remove, "build.json"),
        (Asked::Remove, "shard-00002"),
        (Asked::RemoveFolder, ".forebay-build"),
    ];
    for (number, moment) in moments.into_iter().enumerate() {
        for output in outputs(&server, here.path(), &format!("finished-{number}")) {
            let what = format!("{moment:?}, {}", output.path().display());
            let job = Job { pipeline: pipeline.clone(), photos: photos.path().to_owned(), output: output.clone() };
            job.prepare();
            job.run_parts();
            let meanwhile = job.clone();
            let storage = Interrupted::new(output.storage(), moment, move || meanwhile.finish());
            let into = Folder::new(Arc::clone(&storage) as Arc<dyn Storage>, output.path());
            let found = Prepared::find(into.clone(), pipeline.source(), photos.path(), Reach::Root).expect(&what);
            if found.is_some() {
                finish(&pipeline, "resized", photos.path(), &into).expect(&what);
            }
            assert!(storage.happened(), "{what}");
            assert!(content(&output) == job.expected(), "{what}: {:?}", content(&output).keys());
        }
    }
}

#[test]
fn a_damaged_note_is_replaced_and_a_whole_one_is_not() {
    let (photos, elsewhere, pipeline) = (photos(20), photos(20), pipeline(SMALL));
    // Another machine has other files of the same names and sizes.
    let changed = elsewhere.path().join("ant/0003.jpg");
    let mut bytes = std::fs::read(&changed).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&changed, bytes).unwrap();
    let (server, here) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    for output in outputs(&server, here.path(), "damaged") {
        let what = output.path().display();
        let run = |photos: &Path, storage: Arc<dyn Storage>| {
            run_part(&pipeline, "concatenated", (photos, storage), &output, "1/4")
        };
        build(&pipeline, "concatenated", photos.path(), local()).prepare(output.clone(), &options(4)).unwrap();
        run(photos.path(), local()).unwrap();
        let notes = output.folder(".forebay-build");
        let is_note = |entry: &Entry| entry.path.to_string_lossy().contains("shard-00000");
        let find = || notes.storage().entries(notes.path()).unwrap().into_iter().find(is_note).unwrap().path;
        let whole = notes.storage().read_file(&find(), 1 << 20).unwrap();
        for damaged in [&whole[..whole.len() / 2], b"not this", b""] {
            notes.storage().write_file(&find(), damaged).unwrap();
            assert_eq!(run(photos.path(), local()).unwrap().shards_reused, 0, "{what}");
            assert!(notes.storage().read_file(&find(), 1 << 20).unwrap() == whole, "{what}");
        }
        notes.storage().remove(&find()).unwrap();
        let (other, into, theirs) = (pipeline.clone(), output.clone(), elsewhere.path().to_owned());
        let meanwhile = move || {
            run_part(&other, "concatenated", (&theirs, local()), &into, "1/4").unwrap();
        };
        let said = run(photos.path(), Interrupted::new(&local(), (Asked::Read, ".jpg"), meanwhile));
        let said = said.unwrap_err().to_string();
        let is_said = said.contains("shard 0 was built before with other bytes") && said.contains("remove that note");
        assert!(is_said, "{what}: {said}");
    }
}
