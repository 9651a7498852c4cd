//! URLs, as paths have them.
//!
//! Paths of the engine are [`Path`]s, and a URL is one too: `s3://bucket/photos` joined with `a/1.jpg` is what one expects. A path
//! that was taken apart and put together again has one slash behind the colon, which is why that is understood as well.

use std::path::Path;

/// The kinds of store, by the schemes of their URLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Amazon S3 and what speaks its language.
    S3,
    Google,
    Azure,
    /// A web server, which is only read.
    Http,
}

const SCHEMES: [(&str, Kind); 9] = [
    ("s3", Kind::S3),
    ("s3a", Kind::S3),
    ("gs", Kind::Google),
    ("az", Kind::Azure),
    ("azure", Kind::Azure),
    ("abfs", Kind::Azure),
    ("abfss", Kind::Azure),
    ("http", Kind::Http),
    ("https", Kind::Http),
];

/// Whether this path is a URL: of a store that Forebay knows, or of one that it does not.
pub fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| split(text).is_some())
}

/// The scheme of a URL, and what follows.
pub(crate) fn split(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-');
    if scheme.len() < 2 || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let known = kind_of(scheme).is_some();
    let rest = rest.strip_prefix("//").or_else(|| rest.strip_prefix('/').filter(|_| known))?;
    Some((scheme, rest))
}

pub(crate) fn kind_of(scheme: &str) -> Option<Kind> {
    SCHEMES.iter().find(|(name, _)| *name == scheme).map(|(_, kind)| *kind)
}

/// A URL without what may be a secret in it: a user and password, or a query.
pub(crate) fn without_secrets(text: &str) -> String {
    let Some((scheme, rest)) = split(text) else { return text.to_owned() };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    let (host, key) = rest.split_once('/').map_or((rest, None), |(host, key)| (host, Some(key)));
    let host = match host.rsplit_once('@') {
        Some((user, host)) if kind_of(scheme) != Some(Kind::Azure) || user.contains(':') => format!("…@{host}"),
        _ => host.to_owned(),
    };
    key.map_or_else(|| format!("{scheme}://{host}"), |key| format!("{scheme}://{host}/{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_urls() {
        for path in ["photos", "/data/s3:/x", "./s3://bucket", "C:/x", "a:b", "time 12:30/x", "s3:bucket", "1://"] {
            assert!(!is_url(Path::new(path)), "{path}");
        }
        for url in ["s3://bucket", "hdfs://name/x", "https://host/"] {
            assert!(is_url(Path::new(url)), "{url}");
        }
    }
}
