//! Tells tests whether there is a real MongoDB: those that need one are ignored without it, and `cargo test` says so by name.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(real_mongodb, own_mongod)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PLEACH_TEST_MONGODB_URI");
    println!("cargo::rerun-if-env-changed=PLEACH_JUDGE_DIR");
    if std::env::var_os("PLEACH_TEST_MONGODB_URI").is_none() {
        return;
    }
    println!("cargo::rustc-cfg=real_mongodb");
    // What `judge/start` installs: tests that start servers of their own need the program. A file that is not there cannot be
    // watched without building anew each time.
    let judge = std::env::var_os("PLEACH_JUDGE_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.judge"), PathBuf::from);
    if judge.join("package/fiftyone/db/bin/mongod").exists() {
        println!("cargo::rustc-cfg=own_mongod");
    }
}
