//! Keys of stores: renewed while a run goes on, and never shown.

use std::path::Path;
use std::time::{Duration, Instant};

use forebay_error::ErrorKind;
use forebay_storage::{RemoteStorage, Storage};

use crate::object_server::ObjectServer;
use crate::remote::connected;
use crate::support::pattern;

pub(crate) const PATH: &str = "s3://bucket/folder/file";

/// A storage that finds no keys in the environment, nor in the home of whoever runs the tests.
pub(crate) fn without_keys(server: &ObjectServer, home: &Path, settings: &[(&str, &str)]) -> RemoteStorage {
    assert!(std::env::var_os("AWS_ACCESS_KEY_ID").is_none(), "the keys of the environment would be used");
    let (endpoint, config, credentials) = (server.endpoint(), home.join("config"), home.join("credentials"));
    let own = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()),
    ];
    RemoteStorage::new().with_settings(own.into_iter().chain(settings.iter().copied()))
}

/// Reads for several lifetimes of keys, in several threads; what came is compared.
fn read_on(server: &ObjectServer, storage: &RemoteStorage) {
    const LIFETIME: Duration = Duration::from_secs(1);
    let content = pattern(300_000);
    server.put("bucket/folder/file", content.clone());
    server.issue_keys(LIFETIME);
    let begun = Instant::now();
    let file = storage.open(Path::new(PATH)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                for round in 0.. {
                    let offset = (thread * 33_331 + round * 7_777) % 200_000;
                    assert!(file.read(offset as u64, 100_000).unwrap() == content[offset..][..100_000]);
                    if begun.elapsed() > 3 * LIFETIME {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
    storage.write_file(Path::new("s3://bucket/folder/other"), b"written with the third or fourth").unwrap();
    assert!(server.issued().len() >= 3, "{} keys in three lifetimes", server.issued().len());
}

/// Looks that a refusal says nothing of these.
pub(crate) fn refused_without(storage: &RemoteStorage, path: &str, secrets: &[&str]) {
    let path = Path::new(path);
    let errors = [
        storage.open(path).err(),
        storage.read_file(path, 10).err(),
        storage.entries(path).err(),
        storage.write_file(path, b"x").err(),
        storage.write_new(path, b"x").err(),
        storage.remove(path).err(),
        storage.walk(path, &|_| true).next().unwrap().err(),
    ];
    for error in errors {
        let error = error.unwrap();
        let said = format!("{error} {error:?}");
        assert!(!secrets.iter().any(|secret| said.contains(secret)), "{said}");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{said}");
        assert!(said.contains("hint: check the credentials"), "{said}");
    }
    let shown = format!("{storage:?}");
    assert!(!secrets.iter().any(|secret| shown.contains(secret)), "{shown}");
}

#[test]
fn keys_of_an_instance_are_renewed() {
    let (server, home) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let storage = without_keys(&server, home.path(), &[("AWS_METADATA_ENDPOINT", &server.endpoint())]);
    read_on(&server, &storage);
    // What was fetched is as secret as what was given.
    server.require_key("AKIASOMEBODYELSE");
    server.issue_keys(Duration::from_mins(10));
    refused_without(&storage, PATH, &["ASIAISSUED", "secret+of+it", "token+of+it"]);
}

#[test]
fn keys_of_a_pod_are_renewed() {
    let (server, home) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let (token, url) = (home.path().join("token"), format!("{}/pod-keys", server.endpoint()));
    std::fs::write(&token, "a-token-of-the-pod").unwrap();
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token.to_str().unwrap()),
    ];
    read_on(&server, &without_keys(&server, home.path(), &pod));
}

/// What `aws configure` and those who sign on leave.
fn write_profile(home: &Path, key: &str) {
    let keys = format!(
        "[lab]\naws_access_key_id = {key}\naws_secret_access_key = {key}+secret\naws_session_token = {key}+token\n"
    );
    std::fs::write(home.join("credentials"), format!("[default]\naws_access_key_id = AKIADEFAULT00001\n{keys}"))
        .unwrap();
}

#[test]
fn keys_of_a_profile_are_read_again() {
    let (server, home) = (ObjectServer::start(), tempfile::tempdir().unwrap());
    let content = pattern(100_000);
    server.put("bucket/folder/file", content.clone());
    write_profile(home.path(), "ASIAFIRST0000001");
    server.require_key("ASIAFIRST0000001");
    let storage = without_keys(&server, home.path(), &[("AWS_PROFILE", "lab")]);
    let file = storage.open(Path::new(PATH)).unwrap();
    let read = || file.read(10, 90_000).map(|bytes| assert!(bytes == content[10..][..90_000]));
    read().unwrap();

    // Refused with the old ones, the request is sent once more, however soon they are replaced.
    for round in 2..6 {
        let key = format!("ASIAROUND000000{round}");
        write_profile(home.path(), &key);
        server.require_key(&key);
        server.take_requests();
        read().unwrap();
        assert_eq!(server.take_requests().len(), 2, "in round {round}");
        read().unwrap();
        assert_eq!(server.take_requests().len(), 1);
        storage.write_file(Path::new("s3://bucket/folder/other"), b"x").unwrap();
    }

    // After a second they are looked at before anything is refused.
    write_profile(home.path(), "ASIALATER0000001");
    server.require_key("ASIALATER0000001");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(storage.walk(Path::new("s3://bucket/folder"), &|_| true).count(), 2);

    // Without new ones a refusal is one, and so it is while the file is being written.
    server.require_key("ASIANEXT00000001");
    server.take_requests();
    assert!(read().is_err());
    assert_eq!(server.take_requests().len(), 1, "nothing has changed");
    std::fs::write(home.path().join("credentials"), "[lab]\naws_access_key_id = ASIANEXT00000001\n").unwrap();
    assert!(read().is_err());
    refused_without(&storage, PATH, &["ASIALATER", "ASIANEXT", "+secret", "+token"]);
    write_profile(home.path(), "ASIANEXT00000001");
    read().unwrap();
}

#[test]
fn keys_of_every_kind_are_in_no_message() {
    let server = ObjectServer::start();
    server.require_key("AKIASOMEBODYELSE");
    let endpoint = server.endpoint();
    let key = "FwoGZXIvYXdzEBYaDGZvcmViYXktdGVzdC10b2tlbg==";
    let s3 = connected(&server).with_settings([("AWS_SESSION_TOKEN", key)]);
    refused_without(&s3, PATH, &[key, "FwoGZXIv", "AKIATEST", "wJalrXUtnFEMI", "Signature="]);

    let azure = [("AZURE_STORAGE_ACCOUNT_NAME", "forebaytests"), ("AZURE_STORAGE_ENDPOINT", endpoint.as_str())];
    let by_key = RemoteStorage::new().with_settings(azure).with_settings([("AZURE_STORAGE_ACCOUNT_KEY", key)]);
    refused_without(&by_key, "az://bucket/folder/file", &[key, "FwoGZXIv", "SharedKey "]);
    let sas = "sv=2022-11-02&sp=r&sig=C7%2BZeEOWbrxPA3R0Cw%2Fw1EZz0%2B4KBvQexeKZKe";
    let by_signature = RemoteStorage::new().with_settings(azure).with_settings([("AZURE_STORAGE_SAS_KEY", sas)]);
    refused_without(&by_signature, "az://bucket/folder/file", &[sas, "C7%2BZeEO", "C7+ZeEO", "sig="]);

    let google = [("GOOGLE_BASE_URL", endpoint.as_str()), ("GOOGLE_ALLOW_HTTP", "true"), ("GOOGLE_BEARER_TOKEN", key)];
    let by_token = RemoteStorage::new().with_settings(google);
    refused_without(&by_token, "gs://bucket/folder/file", &[key, "FwoGZXIv", "Bearer "]);
    // A key that cannot be read is an error of its own.
    let json = r#"{"private_key":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\n-----END PRIVATE KEY-----","private_key_id":"0123456789abcdef0123456789abcdef","client_email":"a@b.c"}"#;
    let by_file = RemoteStorage::new().with_settings([("GOOGLE_SERVICE_ACCOUNT_KEY", json)]);
    let error = by_file.open(Path::new("gs://bucket/file")).err().unwrap();
    let said = format!("{error} {error:?} {by_file:?}");
    assert!(!said.contains("MIIEvQIBADAN") && !said.contains("0123456789abcdef"), "{said}");
}
