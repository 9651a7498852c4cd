//! Compressions that are chosen, and the study of all.

use serde_json::Value;

use crate::support::{assert_keys, forebay, workspace};

/// On a storage of 10 MB/s bytes decide: what becomes smaller is kept compressed, photos are left as they are, and all say why alike.
#[test]
fn a_slow_storage_wants_compression_and_the_plan_says_why() {
    let folder = workspace(24);
    let here = folder.path();
    let options = "--data photos --storage custom:read=10MB/s --seconds 0.2 --fast";
    let profile = forebay(here, &format!("profile cv {options} --json")).json();
    let costs = profile["compressions"].as_array().unwrap();
    assert!(costs.len() >= 4, "{profile}");
    assert_keys(&costs[0], "strategy plain compression records bytes ratio compress_bytes_per_second");
    assert_keys(&costs[0], "decompress_bytes_per_second reader_share lossy");
    let ratio = |plain: &str| {
        let of_this = costs.iter().filter(|cost| cost["plain"] == plain);
        of_this.map(|cost| cost["ratio"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    assert!(ratio("concatenated") < 1.1 && ratio("pixel-centered") > 1.5, "{costs:?}");

    let plan = forebay(here, "plan profile.json --json").json();
    let choices = plan["compressions"].as_array().unwrap();
    let choice = |name: &str| choices.iter().find(|choice| choice["strategy"] == name).unwrap();
    assert_eq!(choice("concatenated")["compression"], Value::Null, "{choices:?}");
    let floats = choice("pixel-centered");
    let sentence = floats["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("× fewer bytes; inflating costs ") && sentence.ends_with(" that the disk took"),
        "{sentence}"
    );
    assert!(floats["samples_per_second"].as_f64() > floats["plain_samples_per_second"].as_f64(), "{floats}");
    let text = forebay(here, "plan profile.json").text().replace("\n    ", " ").replace("\n  ", " ");
    assert!(text.contains("\nCompression\n") && text.contains(&format!("- pixel-centered: {sentence}")), "{text}");
    forebay(here, "report profile.json").text();
    let page = std::fs::read_to_string(here.join("report.html")).unwrap();
    let (_, after) = sentence.rsplit_once('`').unwrap();
    assert!(page.contains("Compression of each split") && page.contains(after), "{sentence}");

    // What is chosen for a split is built and loaded as any other strategy.
    let chosen = format!("pixel-centered+{}", floats["compression"].as_str().unwrap());
    let built = forebay(here, &format!("build cv --data photos --strategy {chosen} -o dataset --json")).json();
    assert_eq!(built["strategy"], chosen);
    assert_eq!(forebay(here, "load dataset --json").json()["samples"], 24);
}

#[test]
fn nothing_is_considered_where_that_is_asked_for() {
    let folder = workspace(8);
    let here = folder.path();
    let options = "--data photos --storage custom:read=30MB/s --seconds 0 --samples 8";
    for how in ["--fast --compression-candidates none", "--runs 1 --strategy resized", "--fast --caching system"] {
        let profile = forebay(here, &format!("profile cv {options} {how} --json")).json();
        assert_eq!(profile["compressions"], Value::Array(Vec::new()), "{how}");
        let plan = forebay(here, "plan profile.json --json").json();
        assert_eq!(plan["compressions"], Value::Null, "{how}");
    }
    let profile =
        forebay(here, &format!("profile cv {options} --fast --compression-candidates snappy,gzip-1 --json")).json();
    let names: Vec<&str> =
        profile["compressions"].as_array().unwrap().iter().map(|cost| cost["compression"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["snappy", "gzip-1"]);
    let wrong = |how: &str| forebay(here, &format!("profile cv {options} {how}")).error(2).to_owned();
    assert!(wrong("--compression-candidates none,lz4").contains("pass `none` alone"));
    assert!(wrong("--compression-candidates lzw").contains("lzw"));
    assert!(wrong("--compression-candidates lz4 --strategy resized").contains("--strategy"));
}

#[test]
fn a_study_takes_several_pipelines() {
    let folder = workspace(10);
    let here = folder.path();
    forebay(here, "demo --domain nilm --data-only --samples 2 --folder signals").text();
    let few = "--seconds 0 --samples 8 --runs 1";
    let command = format!(
        "experiment compression cv --data photos --also nilm=signals/recordings --compression lz4 --compression zstd-1 {few}"
    );
    let found = forebay(here, &format!("{command} --json")).json();
    let runs: Vec<&str> = found["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(runs, ["compression", "compression-2"]);
    let findings = found["findings"].as_array().unwrap();
    for finding in findings.iter().filter(|finding| finding["strategy"].as_str().unwrap().contains('+')) {
        for key in
            ["compression_ratio", "compress_bytes_per_second", "decompress_bytes_per_second", "throughput_factor"]
        {
            assert!(finding[key].as_f64().unwrap() > 0.0, "{key}: {finding}");
        }
    }
    assert!(findings.iter().any(|finding| finding["pipeline"] == "nilm"));
    assert!(found["remarks"].to_string().contains("In `nilm`: "), "{found}");
    let page = std::fs::read_to_string(here.join("experiment-compression/report.html")).unwrap();
    for plot in [
        "all-compression-gain",
        "pipeline-1-compression-gain",
        "pipeline-2-compression-speed",
        "pipeline-2-compression",
    ] {
        assert!(page.contains(&format!("id=\"{plot}\"")), "{plot}");
    }
    let table = std::fs::read_to_string(here.join("experiment-compression/runs.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains("compression_ratio"), "{table}");
    let text = forebay(here, &command).text().to_owned();
    assert!(text.contains("decompress") && text.contains("nilm"), "{text}");
    let wrong = forebay(here, &format!("experiment compression cv --data photos --also nilm {few}"));
    assert!(wrong.error(2).contains("expected a pipeline and a folder"), "{wrong:?}");
}
