//! Where tests find a real MongoDB, and the words when there is none.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The connection string of a real replica set: that of `PLEACH_TEST_MONGODB_URI`, or the packaged one, started if it is
/// installed (`judge/start` installs it). Otherwise the reason why there is none.
pub fn uri() -> Result<String, String> {
    static FOUND: OnceLock<Result<String, String>> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

/// The packaged `mongod`, for tests that start servers of their own.
pub fn mongod() -> Option<PathBuf> {
    let binary = state().join("package/fiftyone/db/bin/mongod");
    binary.exists().then_some(binary)
}

fn find() -> Result<String, String> {
    if let Ok(uri) = std::env::var("PLEACH_TEST_MONGODB_URI") {
        return Ok(uri);
    }
    if mongod().is_none() {
        return Err("PLEACH_TEST_MONGODB_URI is not set, and judge/start has not been run".into());
    }
    let start = root().join("judge/start");
    let output = Command::new(start).output().map_err(|error| format!("judge/start cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("judge/start failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn state() -> PathBuf {
    std::env::var_os("PLEACH_JUDGE_DIR").map_or_else(|| root().join(".judge"), PathBuf::from)
}
