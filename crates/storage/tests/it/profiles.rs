//! Profiles of the AWS tools whose keys a program prints, or that have none.

use std::path::Path;
use std::time::{Duration, SystemTime};

use forebay_error::ErrorKind;
use forebay_storage::{RemoteStorage, Storage};

use crate::credentials::{PATH, without_keys};
use crate::object_server::{ObjectServer, timestamp};
use crate::support::pattern;

/// A home with a program that prints what lies in `printed`, and keeps account of how often it did.
struct Home(tempfile::TempDir);

impl Home {
    fn new(config: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let folder = home.0.path().display().to_string();
        let program = format!("sh -c \"echo run >> '{folder}/runs'; cat '{folder}/printed'\"");
        std::fs::write(home.0.path().join("config"), config.replace("PROGRAM", &program)).unwrap();
        home
    }

    fn print(&self, key: &str, lifetime: Duration) {
        let until = timestamp(SystemTime::now() + lifetime);
        let printed = format!(
            r#"{{"Version": 1, "AccessKeyId": "{key}", "SecretAccessKey": "{key}+secret", "SessionToken": "{key}+token",
                "Expiration": "{until}"}}"#
        );
        // At once, as a program prints it.
        let next = self.0.path().join("next");
        std::fs::write(&next, printed).unwrap();
        std::fs::rename(next, self.0.path().join("printed")).unwrap();
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.0.path().join("runs")).map_or(0, |runs| runs.lines().count())
    }

    /// A storage of whoever names the profile, on a machine that has a role.
    fn storage(&self, server: &ObjectServer) -> RemoteStorage {
        self.unnamed(server).with_settings([("AWS_PROFILE", "lab")])
    }

    fn unnamed(&self, server: &ObjectServer) -> RemoteStorage {
        without_keys(server, self.0.path(), &[("AWS_METADATA_ENDPOINT", &server.endpoint())])
    }
}

const LAB: &str = "[profile lab]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/x\ncredential_process = PROGRAM\n";

#[test]
fn keys_that_a_program_prints_are_renewed_before_they_expire() {
    let (server, home) = (ObjectServer::start(), Home::new(LAB));
    let content = pattern(300_000);
    server.put("bucket/folder/file", content.clone());
    let storage = home.storage(&server);
    assert_eq!(home.runs(), 0, "not before a key is needed");
    let mut all = 0;
    for (number, lifetime) in [6, 6, 7200].into_iter().enumerate() {
        let key = format!("ASIAPRINTED0000{number}");
        home.print(&key, Duration::from_secs(lifetime));
        server.require_key(&key);
        let file = storage.open(Path::new(PATH)).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (file, content) = (&file, &content);
                scope.spawn(move || {
                    for round in 0..5 {
                        let offset = thread * 33_331 + round * 1_777;
                        assert!(file.read(offset as u64, 10_000).unwrap() == content[offset..][..10_000]);
                    }
                });
            }
        });
        storage.write_file(Path::new("s3://bucket/folder/other"), b"x").unwrap();
        all += 1;
        assert_eq!(home.runs(), all, "once for everybody");
        // Half of a short life.
        if lifetime < 60 {
            std::thread::sleep(Duration::from_millis(lifetime * 500 + 100));
        }
    }
    // What was printed is as secret as what is given.
    server.require_key("AKIASOMEBODYELSE");
    crate::credentials::refused_without(&storage, PATH, &["ASIAPRINTED", "+secret", "+token"]);
}

#[test]
fn keys_are_used_to_their_end_where_there_are_no_new_ones() {
    let (server, home) = (ObjectServer::start(), Home::new(LAB));
    server.put("bucket/folder/file", pattern(1000));
    home.print("ASIALAST00000001", Duration::from_secs(4));
    server.require_key("ASIALAST00000001");
    let storage = home.storage(&server);
    let read = || storage.read_file(Path::new(PATH), 1000);
    read().unwrap();
    std::fs::write(home.0.path().join("printed"), "ASIALAST00000001+secret").unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    for _ in 0..20 {
        read().unwrap();
    }
    assert_eq!(home.runs(), 2, "what fails is left alone for a while");
    std::thread::sleep(Duration::from_millis(2100));
    let error = read().unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(said.contains("`credential_process` of profile `lab` prints no JSON"), "{said}");
    assert!(!said.contains("ASIALAST"), "{said}");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}

/// However it fails, neither its command nor what it says is repeated, and nobody else's keys are taken.
#[test]
fn a_program_that_fails_is_an_error() {
    for (command, expected) in [
        ("echo hunter22 >&2; echo hunter22; exit 3 # --password hunter22", "failed (exit status: 3)"),
        ("hunter22-is-not-there", "failed (exit status: 127)"),
        ("echo '{\"Version\": 1, \"SecretAccessKey\": \"hunter22\"}'", "prints no `AccessKeyId`"),
    ] {
        let (server, home) =
            (ObjectServer::start(), Home::new(&format!("[profile lab]\ncredential_process = {command}\n")));
        server.issue_keys(Duration::from_mins(10));
        server.put("bucket/folder/file", pattern(1000));
        let storage = home.storage(&server);
        let path = Path::new(PATH);
        let errors = [
            storage.open(path).err(),
            storage.read_file(path, 1000).err(),
            storage.write_file(path, b"x").err(),
            storage.write_new(path, b"x").err(),
            storage.walk(path, &|_| true).next().unwrap().err(),
        ];
        for error in errors {
            let error = error.unwrap();
            let said = format!("{error} {error:?}");
            assert!(said.contains(&format!("the `credential_process` of profile `lab` {expected}\nhint: ")), "{said}");
            assert!(!said.contains("hunter22"), "{said}");
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        }
        assert!(server.issued().is_empty() && server.take_requests().is_empty(), "{command}");
    }
}

/// Whoever names a profile gets its keys, or an error: never the role that the machine happens to have.
#[test]
fn a_profile_without_keys_is_an_error_where_it_is_named() {
    let add = "hint: add `credential_process = aws configure export-credentials --profile lab --format process`";
    for (config, expected, hint) in [
        ("[profile other]\nregion = x\n", "is neither in `HOME/config` nor in `HOME/credentials`", "hint: choose one"),
        (
            "[profile lab]\nsso_session = x\n",
            "has no keys in `HOME/config` that can be used: it uses single sign-on",
            add,
        ),
        ("[profile lab]\nrole_arn = x\nsource_profile = y\n", "that can be used: it assumes a role", add),
        (
            "[profile lab]\nrole_arn = x\naws_access_key_id = AKIABASE00000001\naws_secret_access_key = hunter22\n",
            "that can be used: it assumes a role",
            add,
        ),
        ("[profile lab]\naws_access_key_id = AKIAHALF00000001\n", "that can be used: it has one of two", add),
        ("[profile lab]\nregion = eu-west-1\n", "that can be used: there are none", add),
    ] {
        let (server, home) = (ObjectServer::start(), Home::new(config));
        server.put("bucket/folder/file", pattern(1000));
        let error = home.storage(&server).read_file(Path::new(PATH), 1000).unwrap_err();
        let said = error.to_string();
        let expected = expected.replace("HOME", home.0.path().to_str().unwrap());
        assert!(said.contains("profile `lab` ") && said.contains(&expected), "{said}");
        assert!(said.contains(hint) && said.contains("unset AWS_PROFILE") && !said.contains("hunter22"), "{said}");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(server.take_requests().is_empty(), "nobody is asked for other keys");
        // Public data needs none.
        let public = home.storage(&server).with_settings([("AWS_SKIP_SIGNATURE", "true")]);
        public.read_file(Path::new(PATH), 1000).unwrap();
        // The profile that nobody named is as it was: the machine may have a role.
        server.issue_keys(Duration::from_mins(10));
        home.unnamed(&server).read_file(Path::new(PATH), 1000).unwrap();
        assert_eq!(server.issued().len(), 1);
    }
    // Half of a pair is nobody's: perhaps the other half is just being written.
    let (server, home) = (ObjectServer::start(), Home::new("[default]\naws_access_key_id = AKIAHALF00000001\n"));
    server.issue_keys(Duration::from_mins(10));
    let said = home.unnamed(&server).read_file(Path::new(PATH), 1000).unwrap_err().to_string();
    assert!(said.contains("profile `default` has one key of two") && server.issued().is_empty(), "{said}");
}
