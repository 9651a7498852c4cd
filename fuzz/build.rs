//! Compiles the two pieces that must be C: coverage of the C libraries, and the bare libjpeg as a judge.

use std::{env, path::PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=foreign");
    // As an object, since nothing of ours names it: the libraries do, where they are compiled with coverage.
    for object in cc::Build::new().file("foreign/coverage.c").compile_intermediates() {
        println!("cargo:rustc-link-arg-bins={}", object.display());
    }
    println!("cargo:rustc-link-arg-bins=-Wl,--wrap=__sanitizer_cov_trace_pc");
    let include = env::var_os("DEP_TURBOJPEG_INCLUDE").map(PathBuf::from).expect("turbojpeg-sys says where its headers are");
    cc::Build::new().file("foreign/libjpeg.c").include(include).compile("fuzz_libjpeg");
}
