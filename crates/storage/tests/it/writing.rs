//! Files are made where they are said to be, and nowhere else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use forebay_storage::{
    create_folders_below, create_fresh, lock_file, open_file, own_folder, read_file, read_text, rename_durably,
    write_whole,
};

#[test]
fn a_link_is_replaced_and_what_it_leads_to_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("precious"), "keep me").unwrap();
    for (link, to) in [("a", "precious"), ("b", "nowhere"), ("c.partial", "precious"), ("c", "precious")] {
        symlink(at(to), at(link)).unwrap();
    }
    drop(create_fresh(&at("a")).unwrap());
    drop(create_fresh(&at("b")).unwrap());
    write_whole(&at("c"), &at("c.partial"), b"new").unwrap();
    fs::write(at("d"), "moved").unwrap();
    symlink(at("precious"), at("e")).unwrap();
    rename_durably(&at("d"), &at("e")).unwrap();
    assert_eq!(fs::read(at("precious")).unwrap(), b"keep me");
    assert_eq!((fs::read(at("c")).unwrap(), fs::read(at("e")).unwrap()), (b"new".to_vec(), b"moved".to_vec()));
    assert!(!at("nowhere").exists() && !at("a").is_symlink() && !at("c.partial").is_symlink());
    fs::create_dir(at("g")).unwrap();
    assert!(create_fresh(&at("g")).is_err(), "a folder is not removed");
}

#[test]
fn folders_and_locks_of_our_own_are_no_links() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    fs::write(at("precious"), "keep me").unwrap();
    symlink(at("elsewhere"), at("link")).unwrap();
    symlink(at("precious"), at("lock")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    for refused in [own_folder(&at("link")), own_folder(&at("dangling")), lock_file(&at("lock")).map(drop)] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("symbolic link") && error.contains("\nhint: "), "{error}");
    }
    assert!(lock_file(&at("dangling")).is_err() && !at("nowhere").exists());
    assert_eq!(fs::read(at("precious")).unwrap(), b"keep me");
    assert!(create_folders_below(folder.path(), Path::new("link/deeper")).is_err());
    assert!(create_folders_below(folder.path(), Path::new("../beside")).is_err());
    assert!(fs::read_dir(at("elsewhere")).unwrap().next().is_none());
    create_folders_below(folder.path(), Path::new("x/y")).unwrap();
    create_folders_below(folder.path(), Path::new("x/y")).unwrap();
    own_folder(&at("x")).unwrap();
    assert!(own_folder(&at("precious")).is_err());
}

#[test]
fn a_lock_is_held_once_and_never_on_a_file_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    fs::write(&path, "content").unwrap();
    let held = lock_file(&path).unwrap().expect("nobody holds it");
    assert!(lock_file(&path).unwrap().is_none());
    assert_eq!(fs::read(&path).unwrap(), b"content", "a lock is not written to");
    fs::remove_file(&path).unwrap();
    assert!(lock_file(&path).unwrap().is_some(), "another file has the name now");
    drop(held);
    assert!(lock_file(&path).unwrap().is_some());
}

#[test]
fn only_regular_files_are_read_and_only_so_much_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, [b'a'; 1000]).unwrap();
    symlink(&file, folder.path().join("link")).unwrap();
    let refused = |path: &Path| read_file(path, 1 << 20).unwrap_err().to_string();
    assert!(refused(&pipe).contains("a pipe"), "and nobody waits for it");
    assert!(refused(Path::new("/dev/zero")).contains("a device"));
    assert!(refused(folder.path()).contains("a folder"));
    assert!(read_file(&file, 999).unwrap_err().to_string().contains("limit of `999`"));
    assert_eq!(read_file(&folder.path().join("link"), 1000).unwrap().len(), 1000, "a link is as good as its file");
    assert!(open_file(&pipe).is_err() && open_file(&file).is_ok());
    // Files of the system have no size and content all the same.
    assert!(read_text(Path::new("/proc/self/status"), 5).is_err());
    assert!(read_text(Path::new("/proc/self/status"), 1 << 20).unwrap().contains("Name:"));
    fs::write(&file, [0xE9]).unwrap();
    assert!(read_text(&file, 10).unwrap_err().to_string().contains("not UTF-8"));
}
