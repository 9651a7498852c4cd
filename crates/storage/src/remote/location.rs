//! The location of an object, by its URL.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use object_store::path::Path as Key;

use crate::url::{Kind, kind_of, split};
use crate::{Error, Result};

/// An object, or a folder of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) kind: Kind,
    /// The store: `s3://bucket`.
    pub(super) base: String,
    /// Its name there, or what the names of all in the folder begin with.
    pub(super) key: Key,
    /// What is set for stores.
    pub(super) settings: Settings,
}

/// Settings of stores, by the names of the environment's variables in lower case: they may be credentials, so that nothing shows them.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Settings(pub(super) Arc<Vec<(String, String)>>);

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Location {
    pub(super) fn parse(path: &Path) -> Result<Self> {
        let refused = |problem: String, hint: &'static str| Error::Url { url: path.to_path_buf(), problem, hint };
        let text = path.to_str().ok_or_else(|| refused("it is not UTF-8 text".to_owned(), "check the URL"))?;
        let (scheme, rest) = split(text).ok_or_else(|| refused("it has no scheme".to_owned(), USE_KNOWN))?;
        let kind = kind_of(scheme)
            .ok_or_else(|| refused(format!("Forebay knows no store with scheme `{scheme}`"), USE_KNOWN))?;
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(refused("it names no bucket or host".to_owned(), "write it like `s3://bucket/folder`"));
        }
        // `abfs://container@account.dfs.core.windows.net` is no secret; everything else before an `@` is.
        if host.contains('@') && (kind != Kind::Azure || host.contains(':')) {
            return Err(refused("it has a user or password in it".to_owned(), SET_CREDENTIALS));
        }
        if host.contains('?') || rest.split_once('?').is_some_and(|(_, query)| kind == Kind::Http || is_signed(query)) {
            return Err(refused("it has a query, which may be a signature".to_owned(), SET_CREDENTIALS));
        }
        let parts: Vec<&str> = key.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let key = parts.join("/");
        // What a browser shows of a URL is encoded; the names in a bucket are not.
        let key = if kind == Kind::Http { Key::from_url_path(&key) } else { Key::parse(&key) };
        let key = key.map_err(|error| refused(error.to_string(), "name the object as the store lists it"))?;
        Ok(Self { kind, base: format!("{scheme}://{host}"), key, settings: Settings::default() })
    }

    /// Whether the store can say what it holds.
    pub(super) fn can_be_listed(&self) -> bool {
        self.kind != Kind::Http
    }
}

/// Whether what follows the first `?` in the name of an object is rather the query of a URL that was signed: names in a bucket may have a `?`.
fn is_signed(query: &str) -> bool {
    query.split(['?', '&', ';']).any(|part| {
        let name = part.split('=').next().unwrap_or_default().to_ascii_lowercase();
        SIGNED.contains(&name.as_str()) || SIGNED_BY.iter().any(|prefix| name.starts_with(prefix))
    })
}

/// What parameters of signed URLs are called, and how those begin that providers name after themselves.
const SIGNED: [&str; 9] = [
    "sig",
    "signature",
    "awsaccesskeyid",
    "googleaccessid",
    "ossaccesskeyid",
    "key-pair-id",
    "policy",
    "token",
    "access_token",
];
const SIGNED_BY: [&str; 4] = ["x-amz-", "x-goog-", "x-oss-", "x-cos-"];

const USE_KNOWN: &str = "use `s3://bucket/…`, `gs://bucket/…`, `az://container/…` or `https://host/…`; a file of this machine is named by \
                         its path";
const SET_CREDENTIALS: &str = "URLs are stored in profiles, plans and messages: set credentials in the environment instead \
                               (docs/how-to/object-storage.md)";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Kind, String, String) {
        let Location { kind, base, key, .. } = Location::parse(Path::new(text)).unwrap();
        (kind, base, key.to_string())
    }

    #[test]
    fn urls_are_taken_apart() {
        let s3 = |key: &str| (Kind::S3, "s3://bucket".to_owned(), key.to_owned());
        assert_eq!(parsed("s3://bucket"), s3(""));
        assert_eq!(parsed("s3://bucket/"), s3(""));
        assert_eq!(parsed("s3://bucket/photos/a b#1%.jpg"), s3("photos/a b#1%.jpg"));
        assert_eq!(parsed("s3:/bucket/./photos//x/"), s3("photos/x"));
        let joined = Path::new("s3://bucket/photos").join("cats/1.jpg");
        let collected: std::path::PathBuf = joined.components().collect();
        assert_eq!(parsed(joined.to_str().unwrap()), parsed(collected.to_str().unwrap()));
        assert_eq!(parsed("gs://b/x").0, Kind::Google);
        assert_eq!(parsed("abfs://box@account.dfs.core.windows.net/x").2, "x");
        assert_eq!(parsed("https://host:8080/a%20b.tar"), (Kind::Http, "https://host:8080".into(), "a b.tar".into()));
    }

    #[test]
    fn what_may_be_secret_is_refused_and_not_shown() {
        for url in [
            "https://me:hunter2@host/x",
            "https://host/x?X-Amz-Signature=hunter2",
            "https://host?X-Amz-Signature=hunter2",
            "https://host?hunter2",
            "https:/host/x?hunter2",
            "s3://AKIA:hunter2@bucket/x",
            "s3://bucket?x-amz-security-token=hunter2",
            "s3://bucket/x?response-content-type=a&X-Amz-Signature=hunter2",
            "s3://bucket/x?AWSAccessKeyId=AKIA&Signature=hunter2&Expires=1",
            "s3:/bucket/x?X-Amz-Credential=AKIA/x/y/aws4_request&X-Amz-Signature=hunter2",
            "gs://bucket/x?X-Goog-Signature=hunter2",
            "gs://bucket/x?GoogleAccessId=me&Signature=hunter2",
            "az://container/x?sv=2022-11-02&sr=c&sig=hunter2",
            "az://container?sv=2022-11-02&sig=hunter2",
            "azure://container/a/b?x?sig=hunter2",
            "abfs://container@account.dfs.core.windows.net/x?sv=2022-11-02&SIG=hunter2",
            "abfss://container@account.dfs.core.windows.net?sig=hunter2",
        ] {
            let said = Location::parse(Path::new(url)).unwrap_err().to_string();
            assert!(!said.contains("hunter2") && !said.contains("AKIA"), "{said}");
            assert!(said.contains("in the environment"), "{said}");
        }
        // Names may have question marks.
        for url in ["s3://bucket/what?.jpg", "gs://bucket/a?b=c&d", "az://container/is it?/x"] {
            assert!(Location::parse(Path::new(url)).is_ok(), "{url}");
        }
        assert!(Location::parse(Path::new("hdfs://name/x")).unwrap_err().to_string().contains("`hdfs`"));
        assert!(Location::parse(Path::new("s3:///x")).is_err() && Location::parse(Path::new("s3://b/../x")).is_err());
    }
}
