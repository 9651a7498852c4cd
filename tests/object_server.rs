//! A small object store on the loopback for tests: as much of S3's language (and of plain HTTP) as Forebay speaks, and faults when asked for.
//!
//! It is a thread for each connection, and everything in memory. Requests are counted and kept, so that a test can say what was asked for.

#![allow(dead_code, reason = "each test crate that includes this file uses some of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

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
        self.state.lock().unwrap().objects.insert(name.to_owned(), object(bytes));
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
    Object { tag: format!("\"{hash:016x}-{}\"", bytes.len()), bytes: Arc::new(bytes) }
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
        let (answer, fault, latency) = {
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
            (answer, fault, state.latency)
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
        if last_byte_taken.is_err() || send(&mut stream, &request, &answer, fault).is_err() {
            return;
        }
    }
}

/// Sends an answer, or as much of it as comes through; an error where that is the end of the connection.
fn send(stream: &mut TcpStream, request: &Request, answer: &Answer, fault: Fault) -> std::io::Result<()> {
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
    stream.write_all(&body[..body_bytes])?;
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
            state.objects.insert(request.path.clone(), object);
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
                state.objects.insert(request.path.clone(), object);
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

/// The name, the secret and the token of keys that were given out.
fn keys_of(name: &str) -> [String; 3] {
    [name.to_owned(), format!("{name}/secret+of+it"), format!("{name}/token+of+it==")]
}

/// What the service for instances (of its second version) or for pods says; `None` for everything else.
fn give_keys(state: &mut State, request: &Request, lifetime: Duration) -> Option<Answer> {
    const ROLE: &str = "latest/meta-data/iam/security-credentials/";
    let has = |name: &str, value: &str| request.headers.get(name).is_some_and(|sent| sent == value);
    match request.path.as_str() {
        "latest/api/token" if request.method == "PUT" => {
            return Some(Answer::new("200 OK", "a-session-of-the-service"));
        }
        path if path.starts_with(ROLE) && !has("x-aws-ec2-metadata-token", "a-session-of-the-service") => {
            return Some(Answer::new("401 Unauthorized", ""));
        }
        ROLE => return Some(Answer::new("200 OK", "role")),
        "pod-keys" if has("authorization", "a-token-of-the-pod") => {}
        path if path.strip_prefix(ROLE) == Some("role") => {}
        _ => return None,
    }
    let name = format!("ASIAISSUED{:08}", state.issued.len());
    let [_, secret, token] = keys_of(&name);
    let until = SystemTime::now() + lifetime;
    state.issued.push((name.clone(), until));
    let body = format!(
        r#"{{"Code":"Success","AccessKeyId":"{name}","SecretAccessKey":"{secret}","Token":"{token}","Expiration":"{}"}}"#,
        timestamp(until)
    );
    Some(Answer::new("200 OK", body))
}

/// As RFC 3339 has it, in UTC. The date is computed by Howard Hinnant's `civil_from_days`.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let (seconds, days) = (since.as_secs() % 86_400, since.as_secs() / 86_400 + 719_468);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

fn fetch(state: &State, request: &Request) -> Answer {
    let Some(Object { bytes, tag }) = state.objects.get(&request.path) else {
        return Answer::new("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>");
    };
    if request.headers.get("if-match").is_some_and(|wanted| wanted != tag) {
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
    answer.with("ETag", tag.clone()).with("Last-Modified", "Wed, 18 Nov 2026 00:00:00 GMT")
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
            "<Contents><Key>{}</Key><LastModified>2026-11-18T00:00:00.000Z</LastModified><ETag>{tag}</ETag><Size>{}</Size></Contents>",
            escaped(key),
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
