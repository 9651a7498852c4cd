//! PRESTO's shape (paper §4.1, CV): on a slow network storage, concatenated records beat single files by a large factor, and the
//! resized state beats both its neighbours, which are larger. The order is asserted, not the times.

use crate::support::{PHOTOS, all_photos, forebay};

#[test]
fn a_slow_network_storage_gives_the_papers_order() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let photos = all_photos();
    let arguments = format!(
        "profile cv --data {} --storage ceph-hdd --samples {PHOTOS} --runs 2 --threads 2 --json",
        photos.display()
    );
    let profile = forebay(here, &arguments).json();
    let strategies = profile["strategies"].as_array().unwrap();
    let rate = |name: &str| {
        let strategy = strategies.iter().find(|strategy| strategy["name"] == name).unwrap();
        strategy["t4_samples_per_second"].as_f64().unwrap()
    };
    let [single, concatenated, decoded, resized, centred] =
        ["unprocessed", "concatenated", "decoded", "resized", "pixel-centered"].map(rate);
    assert!(concatenated >= 3.0 * single, "concatenated {concatenated}, unprocessed {single}");
    assert!(resized > decoded, "resized {resized}, decoded {decoded}");
    assert!(resized > centred, "resized {resized}, pixel-centered {centred}");

    let plan = forebay(here, "plan profile.json --json").json();
    let sentence = |name: &str| {
        let ranked = plan["ranking"].as_array().unwrap().iter().find(|ranked| ranked["name"] == name).unwrap();
        ranked["sentence"].as_str().unwrap().to_owned()
    };
    assert!(sentence("unprocessed").starts_with("bound by opening files: "), "{}", sentence("unprocessed"));
    assert!(sentence("concatenated").starts_with("processor-bound: "), "{}", sentence("concatenated"));
    assert!(sentence("concatenated").contains("decode"), "{}", sentence("concatenated"));
    for name in ["decoded", "pixel-centered"] {
        assert!(sentence(name).starts_with("disk-bound: "), "{}", sentence(name));
    }
}
