//! Connecting to a store: what the environment says of it, as other tools read it.

use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, HeaderValue, ObjectStore, RetryConfig};

use super::aws_process::ProcessKeys;
use super::aws_profile::Profile;
use super::failure::{keep_secret, of_store};
use super::gate::{Gate, IN_FLIGHT_MAX};
use super::keys::{Noted, ProfileKeys, Renewed};
use super::location::Location;
use crate::url::Kind;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time without data after which a request is retried. The total time of a request is unlimited, since a large one takes long.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
const RETRIES_MAX: usize = 10;
/// No retry begins after this.
const RETRY_TIMEOUT: Duration = Duration::from_mins(2);

/// The client of the store of `location`. Throttling by the store is reported to `gate`.
pub(super) fn connect(location: &Location, gate: &Arc<Gate>) -> io::Result<Arc<dyn ObjectStore>> {
    let connector = Watched { gate: Arc::clone(gate) };
    let (base, options, retry) = (location.base.as_str(), client_options(), retry());
    let connected = match location.kind {
        Kind::S3 => {
            let builder = AmazonS3Builder::new().with_client_options(options).with_retry(retry);
            // Objects are removed one at a time, which every store of the kind understands.
            return s3(location, builder.with_http_connector(connector).with_disable_bulk_delete(true).with_url(base));
        }
        Kind::Google => {
            let builder = GoogleCloudStorageBuilder::new().with_client_options(options).with_retry(retry);
            google(location, builder.with_http_connector(connector).with_url(base))
        }
        Kind::Azure => {
            let builder = MicrosoftAzureBuilder::new().with_client_options(options).with_retry(retry);
            azure(location, builder.with_http_connector(connector).with_url(base))
        }
        Kind::Http => {
            let options = options.with_allow_http(base.starts_with("http://"));
            let builder = HttpBuilder::new().with_client_options(options).with_retry(retry);
            builder.with_http_connector(connector).with_url(base).build().map(|store| Arc::new(store) as _)
        }
    };
    connected.map_err(|error| of_store(&error))
}

fn s3(location: &Location, mut builder: AmazonS3Builder) -> io::Result<Arc<dyn ObjectStore>> {
    let is_key = |(name, _): &(String, String)| name == "aws_access_key_id";
    let keys_are_set = location.settings.0.iter().any(is_key);
    let profile = (!keys_are_set).then(|| Profile::of(&location.settings));
    let from_profile = profile.as_ref().map(Profile::settings).unwrap_or_default();
    let mut allow_http = false;
    for (key, value) in from_profile.into_iter().chain(settings(location, "aws_")) {
        let Ok(key) = key.parse() else { continue };
        // Whoever names an endpoint without encryption means it.
        allow_http |=
            matches!(key, AmazonS3ConfigKey::Endpoint | AmazonS3ConfigKey::S3Endpoint) && value.starts_with("http://");
        builder = builder.with_config(key, value);
    }
    if allow_http {
        builder = builder.with_allow_http(true);
    }
    let build = |builder: AmazonS3Builder| builder.build().map_err(|error| of_store(&error));
    // Of public data nobody has to know who reads them.
    let is_public = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature).is_some_and(|value| is_true(&value));
    let Some(profile) = profile.filter(|_| !is_public) else { return Ok(Arc::new(build(builder)?)) };
    if let Some(keys) = ProfileKeys::of(&profile) {
        let keys = Arc::new(keys);
        let store = build(builder.with_credentials(Arc::clone(&keys) as _))?;
        return Ok(Arc::new(Renewed { store, keys }));
    }
    if let Some(keys) = ProcessKeys::of(&profile) {
        return Ok(Arc::new(build(builder.with_credentials(Arc::new(keys)))?));
    }
    // Whoever names a profile does not mean the role that the machine may have.
    if let Some(refusal) = profile.refusal() {
        return Err(refusal);
    }
    let fetched = Noted(Arc::clone(build(builder.clone())?.credentials()));
    Ok(Arc::new(build(builder.with_credentials(Arc::new(fetched)))?))
}

fn google(location: &Location, mut builder: GoogleCloudStorageBuilder) -> object_store::Result<Arc<dyn ObjectStore>> {
    for (key, value) in settings(location, "google_") {
        if let Ok(key) = key.parse() {
            builder = builder.with_config(key, value);
        }
    }
    let fetched = Noted(Arc::clone(builder.clone().build()?.credentials()));
    Ok(Arc::new(builder.with_credentials(Arc::new(fetched)).build()?))
}

fn azure(location: &Location, mut builder: MicrosoftAzureBuilder) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut allow_http = false;
    for (key, value) in settings(location, "azure_") {
        let Ok(key) = key.parse() else { continue };
        allow_http |= matches!(key, AzureConfigKey::Endpoint) && value.starts_with("http://");
        builder = builder.with_config(key, value);
    }
    if allow_http {
        builder = builder.with_allow_http(true);
    }
    let fetched = Noted(Arc::clone(builder.clone().build()?.credentials()));
    Ok(Arc::new(builder.with_credentials(Arc::new(fetched)).build()?))
}

fn client_options() -> ClientOptions {
    let options = ClientOptions::new()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_read_timeout(READ_TIMEOUT)
        .with_pool_max_idle_per_host(IN_FLIGHT_MAX);
    options.with_user_agent(HeaderValue::from_static(concat!("forebay/", env!("CARGO_PKG_VERSION"))))
}

fn retry() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(10), base: 2.0 };
    RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT }
}

/// What the environment says of stores now: the variables of each kind that are not empty, with names in lower case.
pub(super) fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let of_stores = |(name, value): &(String, String)| {
        ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix)) && !value.is_empty()
    };
    let mut found: Vec<(String, String)> = std::env::vars_os().filter_map(text).filter(of_stores).collect();
    for (name, _) in &mut found {
        name.make_ascii_lowercase();
    }
    // The same environment variables give the same settings, in any order.
    found.sort_unstable();
    found
}

/// What is set for `location` with names that begin so. None of the values that may be a credential is ever shown.
fn settings(location: &Location, prefix: &str) -> Vec<(String, String)> {
    let of_store = location.settings.0.iter().filter(|(name, _)| name.starts_with(prefix));
    of_store
        .inspect(|(name, value)| {
            if is_secret(name) {
                keep_secret(value);
            }
        })
        .cloned()
        .collect()
}

/// Whether a setting of this name holds a credential (and not the location of one, or the encryption to use).
pub(super) fn is_secret(name: &str) -> bool {
    let named = ["key", "secret", "token", "sas", "password"].iter().any(|part| name.contains(part));
    named && !["_file", "_path", "_uri", "_endpoint", "_enabled"].iter().any(|end| name.ends_with(end))
}

/// As the client reads it.
fn is_true(value: &str) -> bool {
    ["1", "true", "on", "yes", "y"].contains(&value.to_ascii_lowercase().as_str())
}

/// Makes clients whose answers are watched.
#[derive(Debug)]
struct Watched {
    gate: Arc<Gate>,
}

impl HttpConnector for Watched {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(WatchedClient { client, gate: Arc::clone(&self.gate) }))
    }
}

#[derive(Debug)]
struct WatchedClient {
    client: HttpClient,
    gate: Arc<Gate>,
}

#[async_trait]
impl HttpService for WatchedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_small = has_small_answer(&request);
        let response = self.client.execute(request).await.map_err(to_send_again)?;
        if matches!(response.status().as_u16(), 429 | 503) {
            self.gate.slow_down();
        }
        if !is_small && response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = body.bytes().await.map_err(|error| HttpError::new(HttpErrorKind::Request, Lost(error)))?;
        Ok(HttpResponse::from_parts(head, body.into()))
    }
}

/// Whether the answer is anything but the bytes of an object (which a refusal is, too), so that it can be taken whole here: where such an answer breaks
/// off, the client would not ask again.
fn has_small_answer(request: &HttpRequest) -> bool {
    let is_listing = |query: &str| query.contains("list-type=") || query.contains("comp=list");
    match request.method().as_str() {
        "HEAD" => false,
        "GET" => request.uri().query().is_some_and(is_listing),
        _ => true,
    }
}

/// Marks an error as one that the client tries again. It would do so only where it knows that doing a thing twice does no harm: not where an object is
/// made unless it is there, or removed, or an upload is begun. Of what is asked for here, nothing does: whoever writes looks at what is there when
/// the store says that something has the name, and an upload that nobody knows of is nothing but space for a day.
fn to_send_again(error: HttpError) -> HttpError {
    match error.kind() {
        HttpErrorKind::Timeout | HttpErrorKind::Interrupted => HttpError::new(HttpErrorKind::Request, Lost(error)),
        _ => error,
    }
}

/// An error of a connection, which says no more than it did.
#[derive(Debug)]
struct Lost(HttpError);

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(source) => fmt::Display::fmt(source, formatter),
            None => fmt::Display::fmt(&self.0, formatter),
        }
    }
}

impl StdError for Lost {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source().and_then(StdError::source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_names() {
        for secret in ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "azure_storage_sas_key"] {
            assert!(is_secret(secret), "{secret}");
        }
        for open in ["aws_region", "aws_endpoint_url", "aws_web_identity_token_file", "aws_endpoint", "aws_allow_http"]
        {
            assert!(!is_secret(open), "{open}");
        }
    }
}
