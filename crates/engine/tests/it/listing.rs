//! Files, labels and their order.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_engine::Error;
use forebay_engine::data::{FileList, GivenLabel, LabelValue, Listing, ListingOptions};
use forebay_engine::load::OnError;
use forebay_pipeline::{FieldType, Label, LabelType, Order, Source, SourceField};

use crate::support::photos;

fn labels(listing: &Listing) -> Vec<LabelValue> {
    listing.entries().iter().map(|file| file.label.unwrap()).collect()
}

fn keys(listing: &Listing) -> Vec<&str> {
    listing.entries().iter().map(|file| &*file.key).collect()
}

/// Files by name, of one byte each.
fn tree(paths: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in paths {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    folder
}

fn sorted(label: Label) -> Source {
    Source { label, order: Some(Order::Sorted), ..Source::default() }
}

const SKIP: ListingOptions<'_> = ListingOptions {
    on_error: OnError::Skip,
    reach: forebay_engine::data::Reach::Root,
    files: None,
    label_function: None,
};

#[test]
fn fixed_classes_give_the_same_labels_wherever_one_is_missing() {
    let train = tree(&["ant/1.jpg", "bee/1.jpg", "cat/1.jpg"]);
    let test = tree(&["ant/2.jpg", "cat/2.jpg", "cat/3.jpg"]);
    let classes = Listing::scan(&sorted(Label::Folder), train.path()).unwrap().classes().to_vec();
    let fixed = Source { classes: Some(classes.clone()), ..sorted(Label::Folder) };
    let listing = Listing::scan(&fixed, test.path()).unwrap();
    assert_eq!(listing.classes(), classes);
    assert_eq!(labels(&listing), [0, 2, 2].map(LabelValue::Int));
    // Without them they shift.
    assert_eq!(labels(&Listing::scan(&sorted(Label::Folder), test.path()).unwrap()), [0, 1, 1].map(LabelValue::Int));
    // Any order is fine, and numbers of a table are names where classes are given.
    let other = Source { classes: Some(["cat", "dog", "ant"].map(str::to_owned).to_vec()), ..sorted(Label::Folder) };
    assert_eq!(labels(&Listing::scan(&other, test.path()).unwrap()), [2, 0, 0].map(LabelValue::Int));
}

#[test]
fn a_class_that_is_not_listed_is_named_or_its_files_are_skipped() {
    let folder = tree(&["ant/1.jpg", "bee/1.jpg", "bee/2.jpg", "cat/1.jpg"]);
    let source = Source { classes: Some(["ant", "cat"].map(str::to_owned).to_vec()), ..sorted(Label::Folder) };
    let message = Listing::scan(&source, folder.path()).unwrap_err().to_string();
    assert!(message.starts_with("`bee/1.jpg` is of the class `bee`, which is none of the 2 in `classes`"), "{message}");
    assert!(message.contains("hint: add it there"), "{message}");
    let listing = Listing::scan_with(&source, folder.path(), &SKIP).unwrap();
    assert_eq!(keys(&listing), ["ant/1.jpg", "cat/1.jpg"]);
    assert_eq!(labels(&listing), [0, 1].map(LabelValue::Int));
    let lost: Vec<&str> = listing.lost().iter().map(|lost| lost.key.as_str()).collect();
    assert_eq!(lost, ["bee/1.jpg", "bee/2.jpg"]);
    let none = Source { classes: Some(vec!["dog".to_owned()]), ..sorted(Label::Folder) };
    assert!(matches!(Listing::scan_with(&none, folder.path(), &SKIP), Err(Error::AllSkipped { samples: 4, .. })));
}

#[test]
fn top_folders_are_classes_of_nested_trees() {
    let folder = tree(&["bird/owl/1.jpg", "bird/tit/2.jpg", "cat/3.jpg", "4.jpg"]);
    let listing = Listing::scan(&sorted(Label::TopFolder), folder.path()).unwrap();
    assert_eq!(keys(&listing), ["4.jpg", "bird/owl/1.jpg", "bird/tit/2.jpg", "cat/3.jpg"]);
    assert_eq!(listing.classes(), ["", "bird", "cat"]);
    assert_eq!(labels(&listing), [0, 1, 1, 2].map(LabelValue::Int));
}

#[test]
fn numbers_of_a_table_are_values_or_classes() {
    let folder = tree(&["1.jpg", "2.jpg", "3.jpg"]);
    let table = |content: &str| std::fs::write(folder.path().join("labels.tsv"), content).unwrap();
    let scan = |label_type| {
        let source = Source { table: Some("labels.tsv".to_owned()), label_type, ..sorted(Label::Table) };
        Listing::scan(&source, folder.path())
    };
    table("1\t7\n2\t-3\n3\t7\n");
    for kind in [None, Some(LabelType::Int)] {
        assert_eq!(labels(&scan(kind).unwrap()), [7, -3, 7].map(LabelValue::Int));
    }
    assert_eq!(labels(&scan(Some(LabelType::Float)).unwrap()), [7.0, -3.0, 7.0].map(LabelValue::Float));
    let classes = scan(Some(LabelType::Class)).unwrap();
    assert_eq!(
        (classes.classes(), labels(&classes)),
        (&["-3", "7"].map(str::to_owned)[..], [1, 0, 1].map(LabelValue::Int).to_vec())
    );
    table("1\t0.5\n2\t1e-3\n3\t-2\n");
    assert_eq!(labels(&scan(Some(LabelType::Float)).unwrap()), [0.5, 1e-3, -2.0].map(LabelValue::Float));
    assert!(scan(Some(LabelType::Float)).unwrap().classes().is_empty());
    let message = scan(Some(LabelType::Int)).unwrap_err().to_string();
    assert!(message.contains("the label of `1.jpg` is `0.5`, but must be an integer"), "{message}");
    for bad in ["nan", "1e40", "much"] {
        table(&format!("1\t1\n2\t{bad}\n3\t1\n"));
        let message = scan(Some(LabelType::Float)).unwrap_err().to_string();
        assert!(
            message.contains(&format!("the label of `2.jpg` is `{bad}`, but must be a finite number")),
            "{message}"
        );
    }
    // A file without a line is a file that cannot be used.
    table("1\t1\n3\t1\n");
    let source = Source { table: Some("labels.tsv".to_owned()), ..sorted(Label::Table) };
    let listing = Listing::scan_with(&source, folder.path(), &SKIP).unwrap();
    assert_eq!((keys(&listing), listing.lost()[0].key.as_str()), (vec!["1.jpg", "3.jpg"], "2.jpg"));
}

#[test]
fn a_function_labels_each_file_once() {
    let folder = tree(&["1.jpg", "2.jpg", "3.jpg"]);
    let source = Source { function: Some("even".to_owned()), ..sorted(Label::Function) };
    let message = Listing::scan(&source, folder.path()).unwrap_err().to_string();
    assert!(message.contains("Python function `even`") && message.contains("`label = \"table\"`"), "{message}");
    let calls = AtomicU64::new(0);
    let even = |path: &Path| {
        calls.fetch_add(1, Ordering::Relaxed);
        assert!(path.starts_with(folder.path()));
        let even = path.ends_with("2.jpg");
        Ok(GivenLabel::Text(if even { "even" } else { "odd" }.to_owned()))
    };
    let options = ListingOptions { label_function: Some(&even), ..ListingOptions::default() };
    let listing = Listing::scan_with(&source, folder.path(), &options).unwrap();
    assert_eq!(calls.into_inner(), 3);
    assert_eq!(
        (listing.classes(), labels(&listing)),
        (&["even", "odd"].map(str::to_owned)[..], [1, 0, 1].map(LabelValue::Int).to_vec())
    );
    let half = |_: &Path| Ok(GivenLabel::Float(0.5));
    let options = ListingOptions { label_function: Some(&half), ..ListingOptions::default() };
    let message = Listing::scan_with(&source, folder.path(), &options).unwrap_err().to_string();
    assert!(message.contains("`0.5`") && message.contains("label_type=\"float\""), "{message}");
    let source = Source { label_type: Some(LabelType::Float), ..source };
    assert_eq!(labels(&Listing::scan_with(&source, folder.path(), &options).unwrap()), [LabelValue::Float(0.5); 3]);
}

#[test]
fn a_list_of_files_keeps_its_order() {
    let folder = tree(&["b/1.jpg", "a/2.jpg", "a/3.txt", "c/4.jpg"]);
    let elsewhere = tree(&["d/5.jpg"]);
    let outside = elsewhere.path().join("d/5.jpg");
    let given = |paths: &[&Path]| FileList { paths: paths.iter().map(PathBuf::from).collect(), labels: None };
    let inside = folder.path().join("b/1.jpg");
    let list = given(&[Path::new("./c/4.jpg"), &inside, Path::new("a/3.txt"), &outside]);
    let expected = ["c/4.jpg", "b/1.jpg", "a/3.txt", outside.to_str().unwrap()];
    let scan = |source: &Source, files, on_error| {
        let options = ListingOptions { files: Some(files), on_error, ..ListingOptions::default() };
        Listing::scan_with(source, folder.path(), &options)
    };
    let source = Source { files: Some("-".to_owned()), ..sorted(Label::Folder) };
    let listing = scan(&source, &list, OnError::Fail).unwrap();
    assert_eq!(keys(&listing), expected);
    assert_eq!(labels(&listing), [2, 1, 0, 3].map(LabelValue::Int));
    assert_eq!(listing.paths()[3], outside);
    // A loader of the files gives them in this order even where a build would shuffle them, and knows the numbers of that.
    let shuffled = Source { order: Some(Order::Shuffled), ..source.clone() };
    let options = ListingOptions { files: Some(&list), ..ListingOptions::default() };
    let (lying, numbers) = Listing::as_they_lie(&shuffled, folder.path(), &options).unwrap();
    assert_eq!(keys(&lying), expected);
    let built = scan(&shuffled, &list, OnError::Fail).unwrap();
    for (number, key) in numbers.iter().zip(expected) {
        assert_eq!(&*built.entries()[*number as usize].key, key);
    }
    // What is wrong with a list.
    let twice = given(&[Path::new("c/4.jpg"), Path::new("c//./4.jpg")]);
    let missing = given(&[Path::new("c/4.jpg"), Path::new("c/5.jpg")]);
    let empty = FileList::default();
    for (list, part) in [(&twice, "has `c/4.jpg` twice"), (&missing, "c/5.jpg"), (&empty, "is empty")] {
        let message = scan(&source, list, OnError::Fail).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("hint:"), "{message}");
    }
    let listing = scan(&source, &missing, OnError::Skip).unwrap();
    assert_eq!((keys(&listing), listing.lost()[0].key.as_str()), (vec!["c/4.jpg"], "c/5.jpg"));
    let message = Listing::scan(&source, folder.path()).unwrap_err().to_string();
    assert!(message.contains("given as a list") && message.contains("--files-from"), "{message}");
}

#[test]
fn a_list_may_have_labels() {
    let folder = tree(&["1.jpg", "2.jpg", "3.jpg"]);
    let list = FileList::parse(b"3.jpg\tbee\r\n\n1.jpg\tant\n9.jpg\tcow\n2.jpg\tant", true).unwrap();
    let source = Source { files: Some("-".to_owned()), ..sorted(Label::List) };
    let options = ListingOptions { files: Some(&list), on_error: OnError::Skip, ..ListingOptions::default() };
    let listing = Listing::scan_with(&source, folder.path(), &options).unwrap();
    assert_eq!(keys(&listing), ["3.jpg", "1.jpg", "2.jpg"]);
    // Of a file that is missing, too: what is skipped changes no label.
    assert_eq!(
        (listing.classes(), labels(&listing)),
        (&["ant", "bee", "cow"].map(str::to_owned)[..], [1, 0, 0].map(LabelValue::Int).to_vec())
    );
    let message = FileList::parse(b"1.jpg\tant\n2.jpg\n", true).unwrap_err().to_string();
    assert!(message.contains("line 2") && message.contains("`2.jpg`"), "{message}");
    let plain = FileList::parse(b"1.jpg\n2.jpg\n", false).unwrap();
    let options = ListingOptions { files: Some(&plain), ..ListingOptions::default() };
    let message = Listing::scan_with(&source, folder.path(), &options).unwrap_err().to_string();
    assert!(message.contains("has no labels"), "{message}");
}

#[test]
fn labels_come_from_folders() {
    let folder = photos(9);
    let source = Source { order: Some(Order::Sorted), ..Source::default() };
    let listing = Listing::scan(&source, folder.path()).unwrap();
    assert_eq!(listing.classes(), ["ant", "bee", "cat"]);
    let labels: Vec<Option<LabelValue>> = listing.entries().iter().map(|file| file.label).collect();
    assert_eq!(labels, [0, 0, 0, 1, 1, 1, 2, 2, 2].map(|label| Some(LabelValue::Int(label))));
    assert_eq!(&*listing.entries()[3].key, "bee/0001.jpg");
    for count in 0..12 {
        assert_eq!(listing.clone().sample(count).len(), 9.min(count as usize));
    }
}

/// Few samples stand for all: they come from everywhere, and are together as large as so many of all would be.
#[test]
fn a_sample_of_a_listing_is_like_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..300_usize {
        // Sizes of photos: many small ones, and a few that are a hundred times as large.
        let bytes = 100 + number * number % 997 + if number % 41 == 0 { 10_000 } else { 0 };
        std::fs::write(folder.path().join(format!("{number:03}.jpg")), vec![0; bytes]).unwrap();
    }
    let source = Source { label: Label::None, order: Some(Order::Sorted), ..Source::default() };
    let listing = Listing::scan(&source, folder.path()).unwrap();
    let mean = |listing: &Listing| listing.bytes() as f64 / listing.len() as f64;
    for (count, off_max) in [(30, 0.1), (100, 0.05)] {
        let sample = listing.clone().sample(count);
        assert_eq!(sample.len() as u64, count);
        let off = mean(&sample) / mean(&listing) - 1.0;
        assert!(off.abs() < off_max, "{count} of 300 are off by {off:+.3}");
        let thirds =
            |from: &str, to: &str| sample.entries().iter().filter(|file| from <= &*file.key && &*file.key < to).count();
        let spread = [thirds("000", "100"), thirds("100", "200"), thirds("200", "300")];
        assert!(spread.iter().all(|&found| found * 6 >= count as usize), "{spread:?}");
    }
    // Of files of one size those that lie evenly in the listing.
    let alike = photos(9);
    let listing = Listing::scan(&Source { order: Some(Order::Sorted), ..Source::default() }, alike.path()).unwrap();
    let all_alike = listing.entries().iter().all(|file| file.bytes == listing.entries()[0].bytes);
    let classes: Vec<_> = listing.sample(3).entries().iter().map(|file| file.key[..3].to_owned()).collect();
    assert!(!all_alike || classes == ["ant", "bee", "cat"], "{classes:?}");
}

#[test]
fn labels_come_from_a_table() {
    let folder = photos(3);
    let source = Source {
        label: Label::Table,
        table: Some("labels.tsv".to_owned()),
        order: Some(Order::Sorted),
        ..Source::default()
    };
    let table = folder.path().join("labels.tsv");
    let error = |source: &Source| Listing::scan(source, folder.path()).unwrap_err().to_string();
    assert!(error(&source).contains("labels.tsv"));
    std::fs::write(&table, "ant/0000.jpg\tsmall\n0001\tsmall\n").unwrap();
    assert!(error(&source).contains("no line for `cat/0002.jpg`"));
    std::fs::write(&table, "no tab here\n").unwrap();
    assert!(error(&source).contains("line 1 has no tab"));
    // A column more is no longer dropped in silence.
    std::fs::write(&table, "ant/0000.jpg\tsmall\textra\n0001\tsmall\n0002.jpg\tlarge\n").unwrap();
    assert!(error(&source).contains("has 3 columns: `ant/0000.jpg`, `small`, `extra`"), "{}", error(&source));
    std::fs::write(&table, "ant/0000.jpg\tsmall\n0001\tsmall\n0002.jpg\tlarge\n").unwrap();
    let listing = Listing::scan(&source, folder.path()).unwrap();
    assert_eq!(listing.classes(), ["large", "small"]);
    assert_eq!(labels(&listing), [1, 1, 0].map(LabelValue::Int));
    assert!(error(&Source { table: None, ..source }).contains("no `table`"));
}

#[test]
fn a_table_is_csv_with_named_columns() {
    let folder = tree(&["train/a.jpg", "train/b.jpg", "train/c, d.jpg"]);
    let scan = |content: &str, columns: Option<[&str; 2]>| {
        std::fs::write(folder.path().join("labels.csv"), content).unwrap();
        let table_columns = columns.map(|columns| columns.map(str::to_owned));
        let source = Source { table: Some("labels.csv".to_owned()), table_columns, ..sorted(Label::Table) };
        Listing::scan(&source, folder.path())
    };
    let error = |content: &str, columns| scan(content, columns).unwrap_err().to_string();
    let three = "weight,id,\"the breed\"\r\n1.5,a,\"beagle, small\"\r\n\r\n2,train/b.jpg,\"\"\"Bo\"\"\"\r\n3,\"c, d\",\"two\nlines\"\r\n";
    let listing = scan(three, Some(["id", "the breed"])).unwrap();
    assert_eq!(listing.classes(), ["\"Bo\"", "beagle, small", "two\nlines"]);
    assert_eq!(labels(&listing), [1, 0, 2].map(LabelValue::Int));
    let tabs = three
        .replace("weight,id,", "weight\tid\t")
        .replace(",a,", "\ta\t")
        .replace("2,train/b.jpg,", "2\ttrain/b.jpg\t");
    let listing = scan(&tabs.replace("3,\"c, d\",", "3\tc, d\t"), Some(["id", "the breed"])).unwrap();
    assert_eq!(labels(&listing), [1, 0, 2].map(LabelValue::Int));
    assert_eq!(scan(three, Some(["id", "weight"])).unwrap().classes(), ["1.5", "2", "3"]);
    // Two columns need no names, and a line of them does no harm.
    let two = "file,label\na,x\nb,y\n\"c, d\",x\n";
    for content in
        [two.to_owned(), two.replace("file,label\n", ""), format!("\u{feff}{two}"), two.replace("a,x", "./a,x")]
    {
        assert_eq!(labels(&scan(&content, None).unwrap()), [0, 1, 0].map(LabelValue::Int));
    }
    // What is wrong is named, with its line.
    let found = error(three, None);
    assert!(
        found.contains("has 3 columns: `weight`, `id`, `the breed`\nhint:") && found.contains("table_columns"),
        "{found}"
    );
    let found = error(three, Some(["id", "bred"]));
    assert!(found.contains("not a column `bred`") && found.contains("`weight`, `id`, `the breed`"), "{found}");
    assert!(error(three, Some(["ID", "weight"])).contains("did you mean `id`?"));
    assert!(error("a,b,a\n1,2,3\n", Some(["a", "b"])).contains("twice a column `a`"));
    for (content, expected) in [
        ("id,label,x\na,cat,1\n\nb,dog\n", "line 4 has 2 columns, but the first has 3"),
        ("id,label,x\n\"a\nb\",cat,1\nb,\"dog,1\n", "line 4 begins a quote that nothing ends"),
        ("id,label,x\na,\"cat\"s,1\n", "line 2 goes on behind a quote"),
        ("id,label,x\na,cat,1\na,dog,1\n", "line 3 gives `a` the label `dog`, but it had `cat`"),
    ] {
        let found = error(content, Some(["id", "label"]));
        assert!(found.contains(expected) && found.contains("labels.csv"), "{found}");
    }
}

/// Pictures with a mask each, from `from`.
fn with_mask(from: &str) -> Source {
    let mask = SourceField { field: "mask".to_owned(), from: from.to_owned(), kind: FieldType::Bytes, optional: false };
    Source { files: Some("leftImg8bit/**/*.png".to_owned()), fields: vec![mask], ..sorted(Label::None) }
}

const CITYSCAPES: &str = "{folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_labelIds}.png";

#[test]
fn files_are_paired_by_substitution() {
    let folder = tree(&[
        "leftImg8bit/train/aachen/aachen_000000_000019_leftImg8bit.png",
        "leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png",
        "gtFine/train/aachen/aachen_000000_000019_gtFine_labelIds.png",
        "gtFine/val/ulm/ulm_000001_000019_gtFine_labelIds.png",
        "gtFine/val/ulm/ulm_000001_000019_gtFine_color.png",
    ]);
    let listing = Listing::scan(&with_mask(CITYSCAPES), folder.path()).unwrap();
    let mut paths: Vec<String> = listing.paths().iter().map(|path| below(path, folder.path())).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "gtFine/train/aachen/aachen_000000_000019_gtFine_labelIds.png",
            "gtFine/val/ulm/ulm_000001_000019_gtFine_labelIds.png",
            "leftImg8bit/train/aachen/aachen_000000_000019_leftImg8bit.png",
            "leftImg8bit/val/ulm/ulm_000001_000019_leftImg8bit.png",
        ]
    );
    // The mask's byte counts.
    assert_eq!(listing.bytes(), 4);
    // A pattern that matches nothing is an error, whatever becomes of single samples.
    let wrong = with_mask("{folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_instanceIds}.png");
    for options in [ListingOptions::default(), SKIP] {
        let message = Listing::scan_with(&wrong, folder.path(), &options).unwrap_err().to_string();
        assert!(message.contains("no sample has a file for field `mask`"), "{message}");
        assert!(
            message.contains("it means `gtFine/train/aachen/aachen_000000_000019_gtFine_instanceIds.png`"),
            "{message}"
        );
    }
    let outside = with_mask("{folder:leftImg8bit=../secrets}/{name}");
    assert!(Listing::scan(&outside, folder.path()).unwrap_err().to_string().contains("outside the data folder"));
}

#[test]
fn a_sample_without_the_text_to_replace_is_named_or_skipped() {
    let folder = tree(&["leftImg8bit/a_leftImg8bit.png", "leftImg8bit/b.png", "gtFine/a_gtFine_labelIds.png"]);
    let message = Listing::scan(&with_mask(CITYSCAPES), folder.path()).unwrap_err().to_string();
    assert!(message.starts_with("sample `leftImg8bit/b.png` has no path for field `mask`"), "{message}");
    assert!(message.contains("its stem has no `_leftImg8bit` to be replaced\nhint:"), "{message}");
    let listing = Listing::scan_with(&with_mask(CITYSCAPES), folder.path(), &SKIP).unwrap();
    assert_eq!((keys(&listing).len(), listing.lost()[0].key.as_str()), (1, "leftImg8bit/b.png"));
    assert!(listing.lost()[0].reason.contains("no `_leftImg8bit`"), "{:?}", listing.lost());
    // A source that nobody checked is refused, too.
    assert!(Listing::scan(&with_mask("{stme}"), folder.path()).unwrap_err().to_string().contains("mean `{stem}`?"));
}

fn below(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap().display().to_string()
}

#[test]
fn the_order_is_seeded() {
    let folder = photos(30);
    let keys = |order, seed| {
        let listing = Listing::scan(&Source { order, seed: Some(seed), ..Source::default() }, folder.path()).unwrap();
        listing.entries().iter().map(|file| file.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(Some(Order::Shuffled), 1), keys(Some(Order::Shuffled), 1));
    assert_ne!(keys(Some(Order::Shuffled), 1), keys(Some(Order::Shuffled), 2));
    let mut shuffled = keys(Some(Order::Shuffled), 1);
    shuffled.sort_unstable();
    assert_eq!(shuffled, keys(Some(Order::Sorted), 1));
}

#[test]
fn an_empty_folder_and_a_bad_pattern_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |files: &str| {
        let source = Source { files: Some(files.to_owned()), ..Source::default() };
        Listing::scan(&source, folder.path()).unwrap_err().to_string()
    };
    assert!(error("**/*.jpg").contains("matches `**/*.jpg`"));
    assert!(error("{a").contains("`{a` is not a file pattern"));
    let gone = folder.path().join("gone");
    let message = Listing::scan(&Source::default(), &gone).unwrap_err().to_string();
    assert!(message.contains("gone") && message.contains("hint:"), "{message}");
}

#[test]
fn dangling_and_looping_links_do_not_stop_the_listing() {
    let folder = photos(4);
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
    link("gone.txt", "readme.txt");
    link("gone.jpg", "ant/dangling.jpg");
    link("..", "bee/loop");
    std::fs::write(folder.path().join("cat/SHOUTING.JPG"), "x").unwrap();
    let listing = Listing::scan(&Source { order: Some(Order::Sorted), ..Source::default() }, folder.path()).unwrap();
    let keys: Vec<&str> = listing.entries().iter().map(|file| &*file.key).collect();
    let expected =
        ["ant/0000.jpg", "ant/0003.jpg", "ant/dangling.jpg", "bee/0001.jpg", "cat/0002.jpg", "cat/SHOUTING.JPG"];
    assert_eq!(keys, expected);
}
