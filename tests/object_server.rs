//! A small object store on the loopback for tests: as much of S3's language (and of plain HTTP) as Forebay speaks, and faults when asked for.
//!
//! It is a thread for each connection, and everything in memory. Requests are counted and kept, so that a test can say what was asked for.

#![allow(dead_code, unused_imports, reason = "each test crate that includes this file uses some of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use keys::{give_keys, keys_of};

pub(crate) use keys::timestamp;

#[path = "object_server/keys.rs"]
mod keys;

/// How often of a thousand a request goes wrong, in each way. What is written is written nevertheless, unless it says otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// `503 Slow Down`, and nothing is done.
    pub(crate) unavailable: u64,
    /// The connection is reset before anything is done.
    pub(crate) reset: u64,
    /// It is reset after what was asked for was done, of what changes something.
    pub(crate) lost: u64,
    /// Half of the answer comes, and then the end of the connection.
    pub(crate) truncated: u64,
    /// Half of the body comes, and then nothing for this long; nothing at all where there is no body.
    pub(crate) stalled: u64,
    /// Nothing comes for this long, and then the answer.
    pub(crate) late: u64,
    pub(crate) stall: Duration,
    /// `409 Conflict`, and nothing is done, of what is written only if it is not there.
    pub(crate) conflict: u64,
}

#[derive(Clone)]
struct Object {
    bytes: Arc<Vec<u8>>,
    tag: String,
    /// How often it was replaced: each time it is a second younger.
    replaced: u32,
}

/// What a server says of versions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Versions {
    /// Entity tags, of which each is of one version.
    #[default]
    Strong,
    /// Weak ones, which may not be asked for.
    Weak,
    /// Only the time of the last change.
    Times,
    /// The same, and it does not look at conditions.
    TimesOnly,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    uploads: BTreeMap<u64, BTreeMap<u64, Vec<u8>>>,
    forgets_uploads: bool,
    is_read_only: bool,
    requests: Vec<String>,
    faults: Faults,
    drawn: u64,
    latency: Duration,
    /// How fast bodies come; as fast as they can where it is not said.
    bytes_per_second: Option<u64>,
    versions: Versions,
    /// Requests that wait for their answer, and how many did at the most.
    in_flight: (usize, usize),
    /// Every other one is refused, if there is one.
    key: Option<String>,
    /// How long keys live that the service of an instance or pod gives out, and those that it gave: their names, and until when they are taken.
    lifetime: Option<Duration>,
    issued: Vec<(String, SystemTime)>,
}

/// A server that runs until it is dropped.
pub(crate) struct ObjectServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
}

static UPLOADS: AtomicU64 = AtomicU64::new(1);

/// How many objects a page of a listing has: few, so that tests see several pages.
const PAGE: usize = 7;

impl ObjectServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (state, stopped) = (Arc::new(Mutex::new(State::default())), Arc::new(AtomicBool::new(false)));
        let (shared, stop) = (Arc::clone(&state), Arc::clone(&stopped));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { continue };
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, state, stopped }
    }

    /// `http://127.0.0.1:…`
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state.lock().unwrap().faults = faults;
    }

    /// How long every answer takes to begin.
    pub(crate) fn set_latency(&self, latency: Duration) {
        self.state.lock().unwrap().latency = latency;
    }

    /// How fast bodies come.
    pub(crate) fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.state.lock().unwrap().bytes_per_second = Some(bytes_per_second);
    }

    pub(crate) fn set_versions(&self, versions: Versions) {
        self.state.lock().unwrap().versions = versions;
    }

    /// How many requests were under way at the same time, at the most.
    pub(crate) fn in_flight_max(&self) -> usize {
        self.state.lock().unwrap().in_flight.1
    }

    /// Refuses everybody whose access key is not this one.
    pub(crate) fn require_key(&self, key: &str) {
        self.state.lock().unwrap().key = Some(key.to_owned());
    }

    /// Refuses whatever changes something.
    pub(crate) fn refuse_writes(&self) {
        self.state.lock().unwrap().is_read_only = true;
    }

    /// Is the service as well that gives the keys of its role to an instance, and those of a pod at `/pod-keys`. Only these are taken, until they expire.
    pub(crate) fn issue_keys(&self, lifetime: Duration) {
        self.state.lock().unwrap().lifetime = Some(lifetime);
    }

    /// Every name, secret and token that was given out.
    pub(crate) fn issued(&self) -> Vec<[String; 3]> {
        self.state.lock().unwrap().issued.iter().map(|(name, _)| keys_of(name)).collect()
    }

    /// Puts an object there; its name begins with the bucket's.
    pub(crate) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.state.lock().unwrap().insert(name, object(bytes));
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Vec<u8>>> {
        self.state.lock().unwrap().objects.get(name).map(|object| Arc::clone(&object.bytes))
    }

    /// Every object whose name begins so, by what follows.
    pub(crate) fn below(&self, prefix: &str) -> BTreeMap<String, Arc<Vec<u8>>> {
        let state = self.state.lock().unwrap();
        let below = |(name, object): (&String, &Object)| {
            Some((name.strip_prefix(prefix)?.to_owned(), Arc::clone(&object.bytes)))
        };
        state.objects.iter().filter_map(below).collect()
    }

    /// Parts of objects that were never made whole.
    pub(crate) fn unfinished_uploads(&self) -> usize {
        self.state.lock().unwrap().uploads.len()
    }

    /// Knows nothing of objects that were sent in parts when they are to be made whole: a rule of a bucket may remove them.
    pub(crate) fn forget_uploads(&self) {
        self.state.lock().unwrap().forgets_uploads = true;
    }

    /// The requests so far, `GET /bucket/key bytes=0-9`, and none of them any more.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn object(bytes: Vec<u8>) -> Object {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for &byte in &bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    Object { tag: format!("\"{hash:016x}-{}\"", bytes.len()), bytes: Arc::new(bytes), replaced: 0 }
}

impl State {
    fn insert(&mut self, name: &str, mut object: Object) {
        object.replaced = self.objects.get(name).map_or(0, |before| before.replaced + 1);
        self.objects.insert(name.to_owned(), object);
    }
}

impl Object {
    /// When it was changed, as headers have it.
    fn modified(&self) -> String {
        format!("Wed, 18 Nov 2026 00:{:02}:{:02} GMT", self.replaced / 60, self.replaced % 60)
    }
}

struct Request {
    method: String,
    /// Decoded, without the slash in front.
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Looks at the next request, and takes all of it but its last byte: a connection that is closed while something is unread is reset.
fn read_request(mut stream: &TcpStream, seen: &mut [u8]) -> Option<Request> {
    let end = loop {
        let there = stream.peek(seen).ok().filter(|there| *there > 0)?;
        if let Some(end) = seen[..there].windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        // The rest of it is on its way.
        std::thread::sleep(Duration::from_millis(1));
    };
    let head = String::from_utf8_lossy(&seen[..end]).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next()?.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let pair =
        |line: &str| Some((line.split_once(':')?.0.to_ascii_lowercase(), line.split_once(':')?.1.trim().to_owned()));
    let headers: BTreeMap<String, String> = lines.filter_map(pair).collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut bytes = vec![0; end + 4 + length];
    let before_last = bytes.len() - 1;
    stream.read_exact(&mut bytes[..before_last]).ok()?;
    stream.peek(&mut bytes[before_last..]).ok().filter(|there| *there > 0)?;
    let body = bytes.split_off(end + 4);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query = query.split('&').filter(|part| !part.is_empty()).map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(name), decoded(value))
    });
    let query = query.collect();
    Some(Request { method, path: decoded(path.trim_start_matches('/')), query, headers, body })
}

impl Request {
    /// Whether it changes something.
    fn writes(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD")
    }
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

struct Answer {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// For a HEAD, what the body would have.
    length: usize,
}

impl Answer {
    fn new(status: &'static str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self { status, headers: Vec::new(), length: body.len(), body }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

#[derive(Clone, Copy)]
enum Fault {
    None,
    Unavailable,
    Conflict,
    Reset,
    Lost,
    Truncated,
    Stalled(Duration),
    Late(Duration),
}

fn serve(mut stream: TcpStream, state: &Mutex<State>) {
    let mut seen = vec![0; 64 << 10];
    while let Some(request) = read_request(&stream, &mut seen) {
        let (answer, fault, latency, bytes_per_second) = {
            let mut state = state.lock().unwrap();
            let range = request.headers.get("range").cloned().unwrap_or_default();
            state.requests.push(format!("{} /{} {range}", request.method, request.path).trim_end().to_owned());
            let fault = draw(&mut state, &request);
            let answer = match fault {
                Fault::Unavailable => Answer::new("503 Slow Down", "<Error><Code>SlowDown</Code></Error>"),
                Fault::Conflict => {
                    Answer::new("409 Conflict", "<Error><Code>ConditionalRequestConflict</Code></Error>")
                }
                Fault::Reset => Answer::new("", ""),
                _ => answer(&mut state, &request),
            };
            state.in_flight.0 += 1;
            state.in_flight.1 = state.in_flight.1.max(state.in_flight.0);
            (answer, fault, state.latency, state.bytes_per_second)
        };
        if !latency.is_zero() {
            std::thread::sleep(latency);
        }
        state.lock().unwrap().in_flight.0 -= 1;
        if matches!(fault, Fault::Reset | Fault::Lost) {
            return;
        }
        let last_byte_taken = stream.read_exact(&mut [0]);
        if let Fault::Late(time) = fault {
            std::thread::sleep(time);
        }
        let sent = send(&mut stream, &request, &answer, (fault, bytes_per_second));
        if last_byte_taken.is_err() || sent.is_err() {
            return;
        }
    }
}

/// Sends an answer, or as much of it as comes through; an error where that is the end of the connection.
fn send(
    stream: &mut TcpStream,
    request: &Request,
    answer: &Answer,
    (fault, bytes_per_second): (Fault, Option<u64>),
) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\n", answer.status, answer.length);
    for (name, value) in &answer.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    let body = if request.method == "HEAD" { &[] } else { &answer.body[..] };
    let (head_bytes, body_bytes) = match fault {
        Fault::Truncated | Fault::Stalled(_) if !body.is_empty() => (head.len(), body.len() / 2),
        Fault::Truncated => (head.len() / 2, 0),
        Fault::Stalled(_) => (0, 0),
        _ => (head.len(), body.len()),
    };
    stream.write_all(&head.as_bytes()[..head_bytes])?;
    match bytes_per_second {
        None => stream.write_all(&body[..body_bytes])?,
        Some(bytes_per_second) => {
            for piece in body[..body_bytes].chunks(32 << 10) {
                stream.write_all(piece)?;
                std::thread::sleep(Duration::from_secs_f64(piece.len() as f64 / bytes_per_second as f64));
            }
        }
    }
    match fault {
        Fault::Stalled(time) => std::thread::sleep(time),
        Fault::Truncated => {}
        _ => return Ok(()),
    }
    Err(std::io::ErrorKind::ConnectionAborted.into())
}

/// What goes wrong with a request, if anything; always with the same ones. Looking whether an object is there is only turned away.
fn draw(state: &mut State, request: &Request) -> Fault {
    let Faults { unavailable, reset, lost, truncated, stalled, late, stall, conflict } = state.faults;
    if unavailable + reset + lost + truncated + stalled + late + conflict == 0 {
        return Fault::None;
    }
    state.drawn += 1;
    let mut drawn = state.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    drawn = (drawn ^ (drawn >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let drawn = (drawn >> 32) % 1000;
    let mut below = 0;
    for (share, fault) in [
        (unavailable, Fault::Unavailable),
        (reset, Fault::Reset),
        (truncated, Fault::Truncated),
        (stalled, Fault::Stalled(stall)),
        (late, Fault::Late(stall)),
        (lost, Fault::Lost),
        (conflict, Fault::Conflict),
    ] {
        below += share;
        if drawn < below {
            let happens = match fault {
                Fault::Unavailable => true,
                Fault::Lost => request.writes(),
                Fault::Conflict => request.headers.contains_key("if-none-match"),
                _ => request.method != "HEAD",
            };
            return if happens { fault } else { Fault::None };
        }
    }
    Fault::None
}

fn answer(state: &mut State, request: &Request) -> Answer {
    if let Some(given) = state.lifetime.and_then(|lifetime| give_keys(state, request, lifetime)) {
        return given;
    }
    let sent = |name: &str| request.headers.get(name).map_or("", String::as_str);
    if state.key.as_ref().is_some_and(|key| !sent("authorization").contains(key.as_str())) {
        // A real store repeats what it was sent, too.
        let said = format!("{} {} {:?}", sent("authorization"), sent("x-amz-security-token"), request.query);
        return Answer::new("403 Forbidden", format!("<Error><Code>InvalidAccessKeyId</Code>{said}</Error>"));
    }
    let is_good = |(name, until): &(String, SystemTime)| {
        let token = &keys_of(name)[2];
        sent("authorization").contains(name.as_str())
            && sent("x-amz-security-token") == token
            && SystemTime::now() < *until
    };
    if state.lifetime.is_some() && !state.issued.iter().any(is_good) {
        return Answer::new("400 Bad Request", "<Error><Code>ExpiredToken</Code></Error>");
    }
    if state.is_read_only && request.writes() {
        return Answer::new("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>");
    }
    let has = |name: &str| request.query.contains_key(name);
    let upload = || request.query.get("uploadId").and_then(|id| id.parse::<u64>().ok());
    match request.method.as_str() {
        "GET" if has("list-type") => list(state, request),
        "GET" | "HEAD" => fetch(state, request),
        "PUT" if has("partNumber") => {
            let number = request.query["partNumber"].parse().unwrap();
            match upload().and_then(|id| state.uploads.get_mut(&id)) {
                Some(parts) => {
                    let tag = object(request.body.clone()).tag;
                    parts.insert(number, request.body.clone());
                    Answer::new("200 OK", "").with("ETag", tag)
                }
                None => Answer::new("404 Not Found", "<Error><Code>NoSuchUpload</Code></Error>"),
            }
        }
        "PUT" => {
            if request.headers.contains_key("if-none-match") && state.objects.contains_key(&request.path) {
                return Answer::new("412 Precondition Failed", "<Error><Code>PreconditionFailed</Code></Error>");
            }
            let object = object(request.body.clone());
            let tag = object.tag.clone();
            state.insert(&request.path, object);
            Answer::new("200 OK", "").with("ETag", tag)
        }
        "POST" if has("uploads") => {
            let id = UPLOADS.fetch_add(1, Ordering::Relaxed);
            state.uploads.insert(id, BTreeMap::new());
            let (bucket, key) = request.path.split_once('/').unwrap_or((&request.path, ""));
            let body = format!(
                "<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId>\
                 </InitiateMultipartUploadResult>"
            );
            Answer::new("200 OK", body)
        }
        "POST" if has("uploadId") => match upload().and_then(|id| state.uploads.remove(&id)) {
            Some(parts) if !state.forgets_uploads => {
                let object = object(parts.into_values().flatten().collect());
                let body = format!(
                    "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
                    object.tag.replace('"', "&quot;")
                );
                state.insert(&request.path, object);
                Answer::new("200 OK", body)
            }
            _ => Answer::new("404 Not Found", "<Error><Code>NoSuchUpload</Code></Error>"),
        },
        "DELETE" if has("uploadId") => {
            upload().map(|id| state.uploads.remove(&id));
            Answer::new("204 No Content", "")
        }
        "DELETE" => {
            state.objects.remove(&request.path);
            Answer::new("204 No Content", "")
        }
        _ => Answer::new("405 Method Not Allowed", ""),
    }
}

fn fetch(state: &State, request: &Request) -> Answer {
    let Some(object) = state.objects.get(&request.path) else {
        return Answer::new("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>");
    };
    let (bytes, modified) = (&object.bytes, object.modified());
    let tag = match state.versions {
        Versions::Strong => Some(object.tag.clone()),
        Versions::Weak => Some(format!("W/{}", object.tag)),
        Versions::Times | Versions::TimesOnly => None,
    };
    // A weak tag matches nothing.
    let matches = |wanted: &String| state.versions == Versions::Strong && *wanted == object.tag;
    // Times of the same day are in order as text, too.
    let fails = request.headers.get("if-match").is_some_and(|wanted| !matches(wanted))
        || request.headers.get("if-unmodified-since").is_some_and(|since| modified > *since);
    if fails && state.versions != Versions::TimesOnly {
        return Answer::new("412 Precondition Failed", "");
    }
    let range = request.headers.get("range").and_then(|range| {
        let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((start.parse::<usize>().ok()?, end.parse::<usize>().ok()?.min(bytes.len().saturating_sub(1))))
    });
    let answer = match range {
        Some((start, end)) if start <= end => Answer::new("206 Partial Content", &bytes[start..=end])
            .with("Content-Range", format!("bytes {start}-{end}/{}", bytes.len())),
        Some(_) => return Answer::new("416 Range Not Satisfiable", ""),
        None if request.method == "HEAD" => Answer { length: bytes.len(), ..Answer::new("200 OK", "") },
        None => Answer::new("200 OK", &bytes[..]),
    };
    let answer = tag.into_iter().fold(answer, |answer, tag| answer.with("ETag", tag));
    answer.with("Last-Modified", modified)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A page of a listing.
fn list(state: &State, request: &Request) -> Answer {
    let get = |name: &str| request.query.get(name).map_or("", String::as_str);
    let bucket = format!("{}/", request.path.trim_end_matches('/'));
    let (prefix, delimiter, after) = (get("prefix"), get("delimiter"), get("continuation-token"));
    let mut folders = BTreeSet::new();
    let mut body = String::new();
    let (mut listed, mut last, mut more) = (0, String::new(), false);
    for (name, object) in &state.objects {
        let Some(key) = name.strip_prefix(&bucket).filter(|key| key.starts_with(prefix) && (*key > after)) else {
            continue;
        };
        if let Some(end) = key[prefix.len()..].find(delimiter).filter(|_| !delimiter.is_empty()) {
            folders.insert(key[..=prefix.len() + end].to_owned());
            continue;
        }
        if listed == PAGE {
            more = true;
            break;
        }
        listed += 1;
        key.clone_into(&mut last);
        let tag = object.tag.replace('"', "&quot;");
        let _ = write!(
            body,
            "<Contents><Key>{}</Key><LastModified>2026-11-18T00:{:02}:{:02}.000Z</LastModified><ETag>{tag}</ETag><Size>{}</Size></Contents>",
            escaped(key),
            object.replaced / 60,
            object.replaced % 60,
            object.bytes.len()
        );
    }
    for folder in folders {
        let _ = write!(body, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(&folder));
    }
    if more {
        let _ = write!(body, "<NextContinuationToken>{}</NextContinuationToken>", escaped(&last));
    }
    let body = format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>{body}</ListBucketResult>");
    Answer::new("200 OK", body).with("Content-Type", "application/xml")
}
