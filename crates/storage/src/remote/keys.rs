//! The keys that requests are signed with: renewed during a run, and never shown.
//!
//! What the role of an instance, a pod or a service account is given expires, and the client asks for the next ones by itself. Those in `~/.aws` are
//! replaced by whoever signs on: the files are looked at again and again, and a request that is refused is sent once more if its keys were
//! replaced since. Those that a program prints are in `aws_process.rs`.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::aws::{AmazonS3, AwsCredential};
use object_store::azure::AzureCredential;
use object_store::gcp::GcpCredential;
use object_store::path::Path;
use object_store::{
    CopyOptions, CredentialProvider, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::aws_profile::{Profile, Stamp};
use super::failure::keep_secret;

/// How long keys of a profile are used before its files are looked at again.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Keys that the client fetches itself: noted before they are used.
#[derive(Debug)]
pub(super) struct Noted<C>(pub(super) Arc<dyn CredentialProvider<Credential = C>>);

/// What may be noted.
pub(super) trait Secret: fmt::Debug + Send + Sync {
    /// Has it never be shown.
    fn keep(&self);
}

#[async_trait]
impl<C: Secret> CredentialProvider for Noted<C> {
    type Credential = C;

    async fn get_credential(&self) -> Result<Arc<C>> {
        let keys = self.0.get_credential().await?;
        keys.keep();
        Ok(keys)
    }
}

impl Secret for AwsCredential {
    fn keep(&self) {
        [Some(&self.key_id), Some(&self.secret_key), self.token.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|key| keep_secret(key));
    }
}

impl Secret for GcpCredential {
    fn keep(&self) {
        keep_secret(&self.bearer);
    }
}

impl Secret for AzureCredential {
    fn keep(&self) {
        match self {
            // Only given, and noted where it is.
            Self::AccessKey(_) => {}
            Self::SASToken(pairs) => {
                let signatures = pairs.iter().filter(|(name, _)| name == "sig");
                signatures.for_each(|(_, signature)| keep_secret(signature));
            }
            Self::BearerToken(token) => keep_secret(token),
        }
    }
}

/// The keys of a profile, as its files have them now.
pub(super) struct ProfileKeys {
    profile: Profile,
    state: Mutex<State>,
}

struct State {
    keys: Arc<AwsCredential>,
    /// How the files looked when the keys were read, and when that was looked at.
    stamp: Stamp,
    looked: Instant,
}

impl ProfileKeys {
    /// `None` where the profile has no keys.
    pub(super) fn of(profile: &Profile) -> Option<Self> {
        let (stamp, looked) = (profile.stamp(), Instant::now());
        let keys = Arc::new(profile.keys()?);
        Some(Self { profile: profile.clone(), state: Mutex::new(State { keys, stamp, looked }) })
    }

    fn current(&self) -> Arc<AwsCredential> {
        let mut state = self.lock();
        if state.looked.elapsed() >= LOOK_AFTER {
            state.looked = Instant::now();
            let stamp = self.profile.stamp();
            if stamp != state.stamp {
                self.read(&mut state, stamp);
            }
        }
        Arc::clone(&state.keys)
    }

    /// Whether there are other keys by now than those that were refused.
    fn are_replaced(&self, refused: &AwsCredential) -> bool {
        let mut state = self.lock();
        if *state.keys == *refused {
            let stamp = self.profile.stamp();
            self.read(&mut state, stamp);
        }
        *state.keys != *refused
    }

    /// Reads the keys from the files. While somebody writes them, there may be none, and the keys stay the same.
    fn read(&self, state: &mut State, stamp: Stamp) {
        if let Some(keys) = self.profile.keys() {
            (state.keys, state.stamp) = (Arc::new(keys), stamp);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ProfileKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProfileKeys").finish_non_exhaustive()
    }
}

#[async_trait]
impl CredentialProvider for ProfileKeys {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        Ok(self.current())
    }
}

/// A store with the keys of a profile.
#[derive(Debug)]
pub(super) struct Renewed {
    pub(super) store: AmazonS3,
    pub(super) keys: Arc<ProfileKeys>,
}

impl Renewed {
    /// Does `work`, and once more where it is refused with keys that were replaced meanwhile.
    async fn again<T, F: Future<Output = Result<T>>>(&self, work: impl Fn() -> F) -> Result<T> {
        let used = self.keys.current();
        match work().await {
            Err(error) if is_refused(&error) && self.keys.are_replaced(&used) => work().await,
            done => done,
        }
    }
}

/// Whether it may be for the keys. S3 answers 400 to a token that has expired, and to a HEAD without saying so.
fn is_refused(error: &Error) -> bool {
    let by_status = || {
        let said = error.to_string();
        ["400", "401", "403"].iter().any(|status| said.contains(&format!("status code: {status}")))
    };
    matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. }) || by_status()
}

impl fmt::Display for Renewed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(formatter)
    }
}

// Pages of listings, parts of uploads and removals are not sent again: they take the keys of their time, which were looked at a second ago at most.
#[async_trait]
impl ObjectStore for Renewed {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.again(|| self.store.put_opts(at, payload.clone(), options.clone())).await
    }

    async fn put_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.again(|| self.store.put_multipart_opts(at, options.clone())).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.again(|| self.store.get_opts(at, options.clone())).await
    }

    fn delete_stream(&self, all: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.store.delete_stream(all)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.again(|| self.store.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.again(|| self.store.copy_opts(from, to, options.clone())).await
    }
}
