//! `forebay analyze`: a table, a list, JSON and a page, and a next step that runs.

use crate::support::{assert_keys, forebay, workspace};

#[test]
fn an_analysis_is_a_table_a_list_a_document_and_a_page() {
    let folder = workspace(12);
    let here = folder.path();
    let photo = crate::support::files(&here.join("photos")).into_keys().next().unwrap();
    let class = photo.parent().unwrap();
    std::fs::copy(here.join("photos").join(&photo), here.join("photos").join(class).join("zz-copy.jpg")).unwrap();
    std::fs::write(here.join("photos").join(class).join("broken.jpg"), b"\xff\xd8\xff and no image").unwrap();
    let page = forebay(here, "analyze photos --report out/page.html");
    let text = page.text();
    for part in [
        "Analyzed 14 samples of photos in ",
        "broken      1",
        "mean  ",
        "JPEG quality",
        "1 broken",
        "report: out/page.html",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("  forebay analyze photos --list broken\n"), "{text}");
    let html = std::fs::read_to_string(here.join("out/page.html")).unwrap();
    assert!(html.contains("<section id=\"sizes\">") && html.contains("zz-copy.jpg"), "{html}");
    let listed = |which: &str| forebay(here, &format!("analyze photos --list {which}")).text().to_owned();
    assert_eq!(listed("duplicates"), format!("photos/{}/zz-copy.jpg\n", class.display()));
    assert_eq!(listed("broken"), format!("photos/{}/broken.jpg\n", class.display()));
    let found = forebay(here, "analyze photos --json").json();
    assert_keys(
        &found,
        "data strategy samples images bytes broken broken_samples formats size width height aspect_ratio quality color turned classes \
         unlabeled duplicates recompression next report seconds",
    );
    assert_keys(&found["size"], "min p5 median mean p95 max histogram");
    assert_keys(&found["color"], "mean std gray gray_share stored_gray");
    assert_keys(&found["duplicates"], "max_distance exact near conflicting_labels groups");
    assert_eq!(forebay(here, "analyze photos --list broken --json").json()["samples"][0], listed("broken").trim());
    // The commands of the next steps run.
    for step in found["next"].as_array().unwrap() {
        let command = step["command"].as_str().unwrap().strip_prefix("forebay ").unwrap();
        if command.starts_with("analyze") {
            forebay(here, command).text();
        }
    }
    let failed = forebay(here, "analyze photos --on-error fail");
    assert!(failed.error(1).contains("broken.jpg"), "{failed:?}");
}

#[test]
fn data_sets_and_the_sources_of_pipelines_are_analyzed() {
    let folder = workspace(8);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy resized -o dataset").text();
    let found = forebay(here, "analyze dataset --json").json();
    assert_eq!((found["samples"].as_u64(), found["strategy"].as_str()), (Some(8), Some("resized")));
    assert_eq!(found["formats"][0]["format"], "tensor");
    assert!(found["next"][0]["command"].as_str().unwrap().starts_with("forebay diagnose dataset "), "{found:#}");
    let files = forebay(here, "analyze photos cv --set source.files=**/*.jpg --json").json();
    assert_eq!(files["samples"], 8);
    forebay(here, "export dataset tars").text();
    assert!(forebay(here, "analyze dataset --set source.files=x").error(2).contains("--set"));
    assert!(forebay(here, "analyze nowhere").error(2).starts_with("error: there is no file or folder `nowhere`"));
    std::fs::create_dir(here.join("empty")).unwrap();
    assert!(forebay(here, "analyze empty").error(2).contains("holds no images"));
}
