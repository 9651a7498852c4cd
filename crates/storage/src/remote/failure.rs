//! What a store or the network said, in words that help and that give nothing away.
//!
//! A store repeats parts of a request in the body of its refusal, the key's name among them; so bodies are left out, and every
//! value that was given as a credential is blotted out of what is left.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use object_store::Error as StoreError;
use object_store::client::HttpError;

use crate::error::WithHint;
use crate::per_process::PerProcess;

/// What was given as a credential, never to be shown. A process that was forked begins with none: it connects to stores itself, and notes them then.
static SECRETS: PerProcess<Mutex<Vec<String>>> = PerProcess::new();

fn secrets() -> MutexGuard<'static, Vec<String>> {
    SECRETS.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shorter one would blot out words that say something.
const SECRET_CHARACTERS_MIN: usize = 6;
/// Shorter pieces of a secret are words of a format.
const PIECE_CHARACTERS_MIN: usize = 24;
/// How much is said at most.
const SAID_CHARACTERS_MAX: usize = 300;

/// Notes a value that must never be shown, and long pieces of one that is put together: a signature in a query, a key in a JSON text.
pub(super) fn keep_secret(value: &str) {
    let mut secrets = secrets();
    let pieces = value.split(|character: char| "&=\"\\{},".contains(character) || character.is_whitespace());
    let long = pieces.filter(|piece| piece.len() >= PIECE_CHARACTERS_MIN && !piece.contains("://"));
    for secret in std::iter::once(value).chain(long) {
        if secret.len() >= SECRET_CHARACTERS_MIN && !secrets.iter().any(|known| known == secret) {
            secrets.push(secret.to_owned());
        }
    }
}

fn without_secrets(mut text: String) -> String {
    for secret in secrets().iter() {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "…");
        }
    }
    text
}

/// An error of a store.
pub(super) fn failure(kind: io::ErrorKind, said: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> io::Error {
    io::Error::new(kind, with_hint(said, hint))
}

/// What is said, for an error that the client of a store hands on.
pub(super) fn with_hint(said: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> WithHint {
    WithHint { said: without_secrets(said.into()), hint: hint.into() }
}

const CHECK_NETWORK: &str = "check the network and the endpoint, and run the command again: it was tried several times";
const CHECK_RIGHTS: &str = "check the credentials in the environment and the rights of the bucket; for public data set \
                            AWS_SKIP_SIGNATURE=true (docs/how-to/object-storage.md)";

/// The error of a request that took too long.
pub(super) fn too_slow(after: Duration) -> io::Error {
    failure(io::ErrorKind::TimedOut, format!("it did not come within {} s", after.as_secs()), CHECK_NETWORK)
}

/// What the client of a store said.
pub(super) fn of_store(error: &StoreError) -> io::Error {
    use io::ErrorKind as Kind;
    // It is about keys, and was put into words where they were sought.
    if let Some(said) = cause::<WithHint>(error) {
        return io::Error::new(Kind::PermissionDenied, said.clone());
    }
    match error {
        StoreError::NotFound { .. } => failure(
            Kind::NotFound,
            "there is no such object",
            "check the URL; the object may have been moved or deleted since it was listed",
        ),
        StoreError::PermissionDenied { .. } => {
            failure(Kind::PermissionDenied, "the store refused access", CHECK_RIGHTS)
        }
        StoreError::Unauthenticated { .. } => {
            failure(Kind::PermissionDenied, "the store does not know the credentials", CHECK_RIGHTS)
        }
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            failure(Kind::Other, "the object was replaced while it was read", "read it again once nothing writes to it")
        }
        StoreError::AlreadyExists { .. } => {
            failure(Kind::AlreadyExists, "there is such an object already", "choose another URL")
        }
        StoreError::NotSupported { source } if source.to_string().contains("Range") => no_ranges(),
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => only_read(),
        StoreError::InvalidPath { source } => {
            failure(Kind::InvalidInput, source.to_string(), "rename the object: its name is not a path")
        }
        other => generic(other),
    }
}

/// What to say of a server that cannot list, or write.
fn only_read() -> io::Error {
    let hint = "web servers are only read, and cannot be listed: name the folder of a data set or a pattern such as \
                `https://host/shard-{000..099}.tar`, or use a bucket";
    failure(io::ErrorKind::Unsupported, "the store cannot do that", hint)
}

fn no_ranges() -> io::Error {
    let hint = "use a server that answers `Range` requests, or download the files first";
    failure(io::ErrorKind::Unsupported, "the server sends only entire files, not ranges of them", hint)
}

/// Whether the store responded at all: a failure before that is a failure of the network.
pub(super) fn was_answered(error: &StoreError) -> bool {
    cause::<HttpError>(error).is_none()
}

/// The cause of an error that has this type, if there is one.
fn cause<T: StdError + 'static>(error: &StoreError) -> Option<&T> {
    let mut next = error.source();
    while let Some(inner) = next {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        next = inner.source();
    }
    None
}

fn generic(error: &StoreError) -> io::Error {
    if error.to_string().contains("<Code>ExpiredToken</Code>") {
        return failure(io::ErrorKind::PermissionDenied, "the credentials have expired", CHECK_RIGHTS);
    }
    let said = innermost(error);
    if said.contains("status code: 401") || said.contains("status code: 403") {
        return failure(io::ErrorKind::PermissionDenied, "the store refused access", CHECK_RIGHTS);
    }
    // Of an object that is missing the client says so itself; what is left is what a listing finds.
    if said.contains("status code: 404") {
        let hint = "check the name of the bucket or container, and the endpoint where it is not the provider's own \
                    (AWS_ENDPOINT_URL, AZURE_STORAGE_ENDPOINT)";
        return failure(io::ErrorKind::NotFound, "there is no such bucket", hint);
    }
    if said.contains("non-partial response") {
        return no_ranges();
    }
    // A web server that is asked for a list, which many do not know the question for.
    if said.contains("status code: 405") || said.contains("does not support this operation") {
        return only_read();
    }
    if said.contains("credential") || said.contains("metadata") {
        let hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for public data; \
                    docs/how-to/object-storage.md has the others";
        return failure(io::ErrorKind::PermissionDenied, format!("no credentials were found ({said})"), hint);
    }
    failure(io::ErrorKind::Other, said, CHECK_NETWORK)
}

/// What happened, without the request (whose URL the message around this has) and without the body of the answer.
fn innermost(error: &StoreError) -> String {
    let whole = error.to_string();
    let mut said = whole.rsplit_once(" - ").map_or(whole.as_str(), |(_, said)| said).to_owned();
    let mut source = error.source();
    let mut last = None;
    while let Some(inner) = source {
        last = Some(inner.to_string());
        source = inner.source();
    }
    // A refused connection is only named by the innermost error.
    if let Some(last) = last.filter(|last| !said.contains(last.as_str()) && !last.contains(" - ")) {
        said = format!("{said}: {last}");
    }
    let line = said.split(['\n', '\r', '<']).next().unwrap_or_default().trim().trim_end_matches(':');
    line.chars().filter(|character| !character.is_control()).take(SAID_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::has_hint;

    #[test]
    fn bodies_and_credentials_are_not_shown() {
        keep_secret("AKIAVERYSECRET");
        let body = "Error performing GET http://h/x in 1s - Server returned non-2xx status code: 400 Bad Request: \
                    <Error><AWSAccessKeyId>AKIAVERYSECRET</AWSAccessKeyId></Error>";
        let error = of_store(&StoreError::Generic { store: "S3", source: body.into() });
        assert_eq!(error.to_string().lines().next().unwrap(), "Server returned non-2xx status code: 400 Bad Request",);
        let web = |said: &str| of_store(&StoreError::Generic { store: "HTTP", source: said.to_owned().into() }).kind();
        assert_eq!(web("Server does not support this operation."), io::ErrorKind::Unsupported);
        let source = "Range request not supported by http://h/x".into();
        let ranges = of_store(&StoreError::NotSupported { source });
        assert!(ranges.to_string().starts_with("the server sends only entire files"), "{ranges}");
        let expired = body.replace("<Error>", "<Error><Code>ExpiredToken</Code>");
        let error = of_store(&StoreError::Generic { store: "S3", source: expired.into() });
        assert_eq!(error.to_string().lines().next().unwrap(), "the credentials have expired");
        keep_secret("sv=1&sig=abcdefghijklmnopqrstuvwxyz%3D");
        assert_eq!(without_secrets("of sig abcdefghijklmnopqrstuvwxyz%3D".to_owned()), "of sig …");
        let missing = body.replace("400 Bad Request", "404 Not Found");
        let error = of_store(&StoreError::Generic { store: "S3", source: missing.into() });
        assert_eq!(
            (error.kind(), error.to_string().lines().next()),
            (io::ErrorKind::NotFound, Some("there is no such bucket"))
        );
        let error = of_store(&StoreError::Generic { store: "S3", source: "bad key AKIAVERYSECRET".into() });
        assert!(error.to_string().contains("bad key …"), "{error}");
        assert!(has_hint(&error) && !has_hint(&io::ErrorKind::NotFound.into()));
    }
}
