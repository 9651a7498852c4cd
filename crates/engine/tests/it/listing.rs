//! Files, labels and their order.

use forebay_engine::data::Listing;
use forebay_pipeline::{Label, Order, Source};

use crate::support::photos;

#[test]
fn labels_come_from_folders() {
    let folder = photos(9);
    let source = Source { order: Some(Order::Sorted), ..Source::default() };
    let listing = Listing::scan(&source, folder.path()).unwrap();
    assert_eq!(listing.classes(), ["ant", "bee", "cat"]);
    let labels: Vec<Option<i64>> = listing.entries().iter().map(|file| file.label).collect();
    assert_eq!(labels, [0, 0, 0, 1, 1, 1, 2, 2, 2].map(Some));
    assert_eq!(&*listing.entries()[3].key, "bee/0001.jpg");
    assert_eq!(listing.take(2).len(), 2);
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
    std::fs::write(&table, "ant/0000.jpg\tsmall\textra\n0001\tsmall\n0002.jpg\tlarge\n").unwrap();
    let listing = Listing::scan(&source, folder.path()).unwrap();
    assert_eq!(listing.classes(), ["large", "small"]);
    assert_eq!(listing.entries().iter().map(|file| file.label.unwrap()).collect::<Vec<_>>(), [1, 1, 0]);
    assert!(error(&Source { table: None, ..source }).contains("no `table`"));
}

#[test]
fn the_order_is_seeded() {
    let folder = photos(30);
    let keys = |order, seed| {
        let listing = Listing::scan(&Source { order, seed, ..Source::default() }, folder.path()).unwrap();
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
