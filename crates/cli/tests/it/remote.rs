//! The program on a bucket: every command that takes a folder takes a URL.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::object_server::ObjectServer;
use crate::support::{Ran, command, files, forebay, ran, workspace};

const KEY: &str = "AKIATESTTESTTEST";
const SECRET: &str = "wJalrXUtnFEMI-K7MDENG";
/// What every command has in its environment and shows nowhere: keys, tokens and signatures of all kinds of stores.
const SECRETS: [(&str, &str); 8] = [
    ("AWS_ACCESS_KEY_ID", KEY),
    ("AWS_SECRET_ACCESS_KEY", SECRET),
    ("AWS_SESSION_TOKEN", "FwoGZXIvYXdzEBYaD"),
    ("AZURE_STORAGE_ACCOUNT_KEY", "QXp1cmVBY2NvdW50S2V5T2ZUaGVUZXN0cw=="),
    ("AZURE_STORAGE_SAS_KEY", "sv=2022-11-02&sp=r&sig=C7ZeEOWbrxPA3R0CwKw1EZz0KvQexeKZKe"),
    ("AZURE_CLIENT_SECRET", "7Q8~client-secret-of-the-tests"),
    ("GOOGLE_SERVICE_ACCOUNT_KEY", r#"{"private_key":"MIIEvQIBADANBgkqhkiG9w0","private_key_id":"f00dfeed0123cafe"}"#),
    ("GOOGLE_BEARER_TOKEN", "ya29.a0AfH6SMtoken-of-the-tests"),
];
/// And parts of them.
const PARTS: [&str; 4] = ["FwoGZXIv", "C7ZeEOWbrx", "MIIEvQIBADAN", "f00dfeed0123cafe"];

/// A command that knows the server.
fn connected(server: &ObjectServer, folder: &Path, arguments: &str) -> Command {
    let mut command = command(folder, arguments);
    let endpoint = server.endpoint();
    command.envs(SECRETS).env("AWS_ENDPOINT_URL", &endpoint).env("AWS_EC2_METADATA_DISABLED", "true");
    command.env("AZURE_STORAGE_ACCOUNT_NAME", "forebaytests").env("AZURE_STORAGE_ENDPOINT", &endpoint);
    command.env("GOOGLE_BASE_URL", &endpoint).env("GOOGLE_ALLOW_HTTP", "true");
    command
}

#[track_caller]
fn shows_no_secret(what: &dyn std::fmt::Debug, text: &str) {
    for secret in SECRETS.iter().map(|(_, secret)| *secret).chain(PARTS) {
        assert!(!text.contains(secret), "`{secret}` is in {what:?}: {text}");
    }
}

/// Runs it, and looks that nothing gives the credentials away.
#[track_caller]
fn run(server: &ObjectServer, folder: &Path, arguments: &str) -> Ran {
    let ran = ran(&mut connected(server, folder, arguments));
    for text in [&ran.stdout, &ran.stderr] {
        shows_no_secret(&arguments, text);
    }
    ran
}

/// Looks through everything that was written, here and in the bucket.
fn nothing_has_a_secret(server: &ObjectServer, folder: &Path) {
    for (path, content) in files(folder) {
        shows_no_secret(&path, &String::from_utf8_lossy(&content));
    }
    for (name, content) in server.below("") {
        shows_no_secret(&name, &String::from_utf8_lossy(&content));
    }
}

fn put_photos(server: &ObjectServer, folder: &Path) {
    for (path, content) in files(&folder.join("photos")) {
        server.put(&format!("bucket/photos/{}", path.display()), content);
    }
}

#[test]
fn profile_plan_build_load_and_inspect_a_bucket() {
    let (server, folder) = (ObjectServer::start(), workspace(20));
    let here = folder.path();
    put_photos(&server, here);
    let profile = "profile cv --data s3://bucket/photos --seconds 0 --samples 8 --runs 1 --threads 2 \
                   --strategy unprocessed --strategy concatenated --strategy resized";
    run(&server, here, profile).text();
    let plan = run(&server, here, "plan profile.json");
    assert!(plan.text().contains("Recommended strategy"), "{plan:?}");
    let built =
        run(&server, here, "build plan.json --strategy resized --shards 3 -o s3://bucket/dataset --json").json();
    assert_eq!((built["samples"].as_u64(), built["shards"].as_u64()), (Some(20), Some(3)));
    forebay(here, "build cv --data photos --strategy resized --shards 3 -o local").text();
    let local = files(&here.join("local"));
    let remote = server.below("bucket/dataset/");
    assert_eq!(local.len(), remote.len());
    for (name, content) in &remote {
        assert!(name == "dataset.json" || local[Path::new(name)] == **content, "{name}");
    }
    for url in ["s3://bucket/dataset", "s3://bucket/dataset/", "s3://bucket/dataset/dataset.json"] {
        let loaded = run(&server, here, &format!("load {url} --shuffle --epochs 2 --json")).json();
        assert_eq!(loaded["samples"].as_u64(), Some(40), "{url}");
    }
    let files_loaded = run(&server, here, "load cv --data s3://bucket/photos --json").json();
    assert_eq!(files_loaded["samples"].as_u64(), Some(20));
    let verified = run(&server, here, "inspect s3://bucket/dataset --verify");
    assert!(verified.text().contains("every byte is as it was built"), "{verified:?}");
    let inspected = run(&server, here, "inspect s3://bucket/photos --json").json();
    assert_eq!((inspected["kind"].as_str(), inspected["files"].as_u64()), (Some("images"), Some(20)));
    let record = run(&server, here, "inspect s3://bucket/dataset/shard-00000.tfrecord --json").json();
    assert_eq!(record["kind"].as_str(), Some("records"));
    run(&server, here, "export s3://bucket/dataset tars").text();
    assert_eq!(files(&here.join("tars")).len(), 3 * 2);
    run(&server, here, "load s3://bucket/dataset --shuffle --samples 7 --state state.json").text();
    assert!(here.join("state.json").exists());
    // Nothing that was written has the credentials, either.
    nothing_has_a_secret(&server, here);
}

/// Whatever looks at data does so in a bucket.
#[test]
fn data_in_a_bucket_are_analyzed_diagnosed_and_mixed() {
    let (server, folder) = (ObjectServer::start(), workspace(16));
    let here = folder.path();
    put_photos(&server, here);
    let analyzed = |data: &str| run(&server, here, &format!("analyze {data} --json")).json();
    let (there, nearby) = (analyzed("s3://bucket/photos"), analyzed("photos"));
    for what in ["images", "bytes", "formats", "size"] {
        assert!(!nearby[what].is_null() && there[what] == nearby[what], "{what}: {there}");
    }
    let diagnosed = run(&server, here, "diagnose s3://bucket/photos cv --trainer 1500 --seconds 0.2 --json").json();
    assert!(diagnosed.is_object(), "{diagnosed}");
    let mix = "build cv --mix decoded+png=0.25,decoded=0.75 --seed 3 --shards 2";
    run(&server, here, &format!("{mix} --data s3://bucket/photos -o s3://bucket/mixed")).text();
    forebay(here, &format!("{mix} --data photos -o mixed")).text();
    let shard = |name: &str| Path::new(name).extension().is_some_and(|end| end == "tfrecord");
    let local = files(&here.join("mixed"));
    let remote = server.below("bucket/mixed/");
    assert!(
        remote.len() == local.len() && remote.keys().filter(|name| shard(name)).count() >= 2,
        "{:?}",
        remote.keys()
    );
    for (name, content) in remote.iter().filter(|(name, _)| shard(name)) {
        assert!(local[Path::new(name)] == **content, "{name}");
    }
    let loaded = run(&server, here, "load s3://bucket/mixed --shuffle --json").json();
    assert_eq!(loaded["samples"].as_u64(), Some(16));
    nothing_has_a_secret(&server, here);
}

/// What other stores refuse is said without what they were given.
#[test]
fn refusals_of_every_store_show_no_credential() {
    let (server, folder) = (ObjectServer::start(), workspace(2));
    let here = folder.path();
    server.require_key("AKIASOMEBODYELSE");
    for url in ["s3://bucket/photos", "az://bucket/photos", "gs://bucket/photos"] {
        for command in ["load", "inspect", "load cv --data"] {
            let ran = run(&server, here, &format!("{command} {url}"));
            assert!(ran.code != Some(0) && ran.stderr.contains("hint: "), "{ran:?}");
        }
    }
}

#[test]
fn what_is_not_there_or_not_allowed_is_said() {
    let (server, folder) = (ObjectServer::start(), workspace(2));
    let here = folder.path();
    put_photos(&server, here);
    for arguments in ["load s3://bucket/nothing", "inspect s3://bucket/nothing", "load cv --data s3://bucket/nothing"] {
        let ran = run(&server, here, arguments);
        assert!(ran.error(2).contains("`s3://bucket/nothing`"), "{ran:?}");
    }
    let ran = run(&server, here, "load hdfs://bucket/x");
    assert!(ran.error(2).contains("hint: use `s3://bucket/…`"), "{ran:?}");
    let ran = run(&server, here, "load s3://AKIAOTHER:hunter22@bucket/x");
    assert!(!ran.stderr.contains("hunter22") && !ran.stderr.contains("AKIAOTHER"), "{ran:?}");
    ran.error(2);
    let signed = [
        "az://box/x?sv=2022-11-02&sig=hunter22",
        "s3://bucket/x?X-Amz-Signature=hunter22",
        "gs://bucket?X-Goog-Signature=hunter22",
        "https://host?X-Amz-Signature=hunter22",
    ];
    for url in signed {
        for command in [
            "load",
            "inspect",
            "load cv --data",
            "profile cv --data",
            "probe",
            "build cv --data photos --strategy resized -o",
        ] {
            let ran = run(&server, here, &format!("{command} {url}"));
            assert!(ran.code == Some(2) && ran.stdout.is_empty(), "{command}: {ran:?}");
            assert!(
                !ran.stderr.contains("hunter22") && ran.stderr.contains("in the environment"),
                "{command}: {ran:?}"
            );
        }
    }
    server.require_key("AKIASOMEBODYELSE");
    let ran = run(&server, here, "load s3://bucket/photos");
    assert!(ran.stderr.contains("hint: check the credentials") && !ran.stderr.contains("--on-error"), "{ran:?}");
    assert!(ran.code != Some(0) && ran.stdout.is_empty());
}

#[test]
fn a_bucket_is_built_in_parts_by_processes_at_once() {
    let (server, folder) = (ObjectServer::start(), workspace(24));
    let here = folder.path();
    put_photos(&server, here);
    let base = "build cv --data s3://bucket/photos --strategy resized --json -o s3://bucket/dataset";
    let early = run(&server, here, &format!("{base} --part 1/3"));
    assert!(early.error(2).contains("`--prepare` first"), "{early:?}");
    let prepared = run(&server, here, &format!("{base} --prepare --shards 6")).json();
    assert_eq!((prepared["shards"].as_u64(), prepared["samples"].as_u64()), (Some(6), Some(24)));
    let running: Vec<_> = ["1/3", "3/3", "1/3"]
        .map(|part| connected(&server, here, &format!("{base} --part {part}")).stdout(Stdio::null()).spawn().unwrap())
        .into();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    let missing = run(&server, here, &format!("{base} --finish"));
    assert!(missing.error(2).contains("2 of 6 shards are not built: shard-00001.tfrecord, shard-00004"), "{missing:?}");
    run(&server, here, &format!("{base} --part 2/3")).text();
    let finished = run(&server, here, &format!("{base} --finish")).json();
    assert_eq!(finished["samples"].as_u64(), Some(24));
    assert!(run(&server, here, &format!("{base} --part 2/3")).json()["finished"].as_bool().unwrap());
    assert!(!server.below("bucket/dataset/").keys().any(|name| name.contains(".forebay-build")));
    forebay(here, "build cv --data photos --strategy resized --shards 6 -o local").text();
    for (name, content) in files(&here.join("local")) {
        let name = name.to_str().unwrap();
        assert!(name == "dataset.json" || *server.get(&format!("bucket/dataset/{name}")).unwrap() == content, "{name}");
    }
}

/// How often a part is killed; `FOREBAY_KILLS=50` for more.
fn kills() -> u32 {
    std::env::var("FOREBAY_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6)
}

/// No lock is left behind, and no half of an object: whoever comes next goes on, and so do sixteen at once.
#[test]
fn a_part_killed_at_any_moment_gives_the_same_bytes() {
    let (server, folder) = (ObjectServer::start(), workspace(40));
    let here = folder.path();
    put_photos(&server, here);
    let build = |output: &str, what: &str| {
        let base = "build cv --data s3://bucket/photos --strategy resized --threads 2 --json";
        format!("{base} -o s3://bucket/{output} {what}")
    };
    run(&server, here, &build("whole", "--prepare --shards 8")).text();
    let begun = Instant::now();
    run(&server, here, &build("whole", "--part 1/1")).text();
    let seconds = begun.elapsed().as_secs_f64();
    run(&server, here, &build("whole", "--finish")).text();
    let expected = server.below("bucket/whole/");
    let start = |output: &str| {
        let mut command = connected(&server, here, &build(output, "--part 1/1"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut kept = 0;
    for round in 0..kills().div_ceil(3) {
        let output = format!("killed-{round}");
        run(&server, here, &build(&output, "--prepare --shards 8")).text();
        for kill in round * 3..(round * 3 + 3).min(kills()) {
            let mut child = start(&output);
            // Moments that are spread over the time that a part takes, in no order.
            std::thread::sleep(Duration::from_secs_f64(seconds * (f64::from(kill) * 0.618_034).fract()));
            child.kill().unwrap();
            child.wait().unwrap();
            for (name, content) in server.below(&format!("bucket/{output}/shard-")) {
                assert!(*content == *expected[&format!("shard-{name}")], "{name} after kill {kill}");
            }
        }
        if round == 0 {
            let at_once: Vec<_> = (0..16).map(|_| start(&output)).collect();
            assert!(at_once.into_iter().all(|mut child| child.wait().unwrap().success()), "sixteen at once");
        }
        let done = run(&server, here, &build(&output, "--part 1/1")).json();
        kept += done["shards_reused"].as_u64().unwrap();
        run(&server, here, &build(&output, "--finish")).text();
        let found = server.below(&format!("bucket/{output}/"));
        assert!(found.keys().eq(expected.keys()), "round {round}: {:?}", found.keys());
        assert!(found == expected, "round {round}: the same objects, but other bytes");
    }
    assert!(kept >= 8, "what was finished before is kept");
}

#[test]
fn a_bucket_is_probed_and_exported_to() {
    let (server, folder) = (ObjectServer::start(), workspace(6));
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized --shards 2 -o dataset").text();
    run(&server, here, "export dataset s3://bucket/tars").text();
    forebay(here, "export dataset tars").text();
    for (name, content) in files(&here.join("tars")) {
        assert!(*server.get(&format!("bucket/tars/{}", name.display())).unwrap() == content, "{}", name.display());
    }
    let again = run(&server, here, "export dataset s3://bucket/tars");
    assert!(again.error(2).contains("has tars already"), "{again:?}");
    let probed = run(&server, here, "probe s3://bucket/scratch --seconds 0.05 --threads 2 --json").json();
    let of = |access: &str| {
        let all = probed["measurements"].as_array().unwrap();
        all.iter().filter(|one| one["access"] == access).map(|one| one["threads"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("large-file"), [1, 2, 32], "as many at once as a loader reads: {probed}");
    assert!(server.below("bucket/scratch/").is_empty(), "what it wrote is gone");
}

/// Where nothing can be written, what is there is read, and that is said.
#[test]
fn a_bucket_that_is_only_read_and_a_web_server_are_probed() {
    let (server, folder) = (ObjectServer::start(), workspace(8));
    let here = folder.path();
    put_photos(&server, here);
    for shard in 0..3 {
        server.put(&format!("bucket/dataset/shard-{shard}.tar"), vec![7; 5 << 20]);
    }
    let manifest = r#"{"shards": [{"file": "shard-1.tar"}, {"file": "../photos/secret"}, {"file": "/etc/passwd"}]}"#;
    server.put("bucket/dataset/dataset.json", manifest.into());
    server.put("bucket/empty/nothing", Vec::new());
    server.refuse_writes();
    let web = server.endpoint();
    let probed = |place: &str| run(&server, here, &format!("probe {place} --seconds 0.05 --threads 2 --json"));
    let (large, small) = (["large-file", "random-blocks"].as_slice(), ["small-files"].as_slice());
    for (place, expected, said) in [
        ("s3://bucket/photos".to_owned(), small, "so 8 objects of "),
        ("s3://bucket/dataset".to_owned(), large, "so 1 object of 5.24 MB on average that is there"),
        (format!("{web}/bucket/dataset"), large, "so 1 object of 5.24 MB on average that is there"),
        (format!("{web}/bucket/dataset/shard-2.tar"), large, "so 1 object of 5.24 MB"),
    ] {
        let found = probed(&place).json();
        let measurements = found["measurements"].as_array().unwrap();
        let mut kinds: Vec<_> = measurements.iter().map(|one| one["access"].as_str().unwrap()).collect();
        kinds.dedup();
        assert_eq!(kinds, expected, "{place}");
        assert!(measurements.iter().all(|one| one["iops"].as_f64().unwrap() > 0.0), "{found}");
        let notice = found["notices"][0].as_str().unwrap();
        assert!(notice.contains(&format!("nothing can be written to `{place}`, {said}")), "{notice}");
    }
    let shown = run(&server, here, "probe s3://bucket/photos --seconds 0.05 --threads 2");
    assert!(shown.text().contains("note: nothing can be written") && !shown.stdout.contains("200 kB"), "{shown:?}");
    // Nothing is there, nothing may be looked at, or nobody can say what is there: what is wrong is that nothing can be written.
    for place in ["s3://bucket/empty", "s3://bucket/nothing", &format!("{web}/bucket/photos")] {
        let ran = probed(place);
        assert!(
            ran.code != Some(0) && ran.stderr.contains("cannot write ") && ran.stderr.contains("hint: "),
            "{ran:?}"
        );
    }
}

#[test]
fn tars_of_a_web_server_and_a_bucket_are_named_by_a_pattern() {
    let (server, folder) = (ObjectServer::start(), workspace(12));
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy concatenated --shards 3 -o dataset").text();
    forebay(here, "export dataset tars").text();
    for (path, content) in files(&here.join("tars")) {
        server.put(&format!("data/{}", path.display()), content);
    }
    let toml = "name = \"tars\"\n[source]\nformat = \"tar\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = 32\n\
                [[step]]\nop = \"center_crop\"\nsize = 32\n";
    std::fs::write(here.join("tars.toml"), toml).unwrap();
    for place in [format!("{}/data", server.endpoint()), "s3://data".to_owned()] {
        let url = format!("{place}/shard-{{000000..000002}}.tar");
        let loaded = run(&server, here, &format!("load tars.toml --data {url} --json")).json();
        assert_eq!(loaded["samples"].as_u64(), Some(12), "{url}");
        let wrong = url.replace("000002", "000003");
        let ran = run(&server, here, &format!("load tars.toml --data {wrong}"));
        assert!(ran.stderr.contains("shard-000003.tar"), "{ran:?}");
    }
}

/// How often bytes of shards were asked for.
fn shard_reads(server: &ObjectServer) -> usize {
    let of_shard = |request: &String| request.starts_with("GET") && request.contains(".tfrecord bytes=");
    server.take_requests().iter().filter(|request| of_shard(request)).count()
}

/// What is in the cache is not read again, in this run and the next; and a process that is killed while it fills the cache spoils nothing.
#[test]
fn a_cache_on_the_disk_serves_later_epochs_and_survives_kills() {
    let (server, folder) = (ObjectServer::start(), workspace(40));
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized --shards 10 -o local").text();
    for (path, content) in files(&here.join("local")) {
        server.put(&format!("bucket/dataset/{}", path.display()), content);
    }
    let load = |cache: &str, epochs: u32| {
        format!("load s3://bucket/dataset --shuffle --epochs {epochs} --json --cache-dir {cache} --cache-size 1GB")
    };
    let loaded = |ran: Ran, epochs: u64| assert_eq!(ran.json()["samples"].as_u64(), Some(40 * epochs));
    server.set_latency(Duration::from_millis(10));
    let begun = Instant::now();
    loaded(run(&server, here, &load("kept", 1)), 1);
    let seconds = begun.elapsed().as_secs_f64();
    assert!(shard_reads(&server) >= 10, "each of ten shards");
    loaded(run(&server, here, &load("kept", 3)), 3);
    assert_eq!(shard_reads(&server), 0, "three epochs of another run");
    for kill in 0..kills() {
        let mut child = connected(&server, here, &load("killed", 1));
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Moments that are spread over the time that a load takes, in no order.
        std::thread::sleep(Duration::from_secs_f64(seconds * (f64::from(kill) * 0.618_034).fract()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    loaded(run(&server, here, &load("killed", 2)), 2);
    server.take_requests();
    loaded(run(&server, here, &load("killed", 2)), 2);
    assert_eq!(shard_reads(&server), 0, "what was left half is whole now");
}
