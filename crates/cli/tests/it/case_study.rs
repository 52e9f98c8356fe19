//! `pleach bench case-study` at a small scale: what it prints, and that its own checks hold.

use serde_json::Value;
use std::process::Command;

fn study(options: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(["bench", "case-study", "--events-per-year", "120", "--reports", "8", "--report-seconds", "2"])
        .args(options)
        .env_remove("PLEACH_UPSTREAM")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn by_hand_on_the_embedded_store_every_report_is_right() {
    let page = tempfile::NamedTempFile::new().unwrap();
    let (code, told, said) = study(&["--only", "embedded-hand", "--json", "--html", page.path().to_str().unwrap()]);
    assert_eq!(code, Some(0), "{told}\n{said}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["events"], 1200);
    assert_eq!(told["wrong"], serde_json::json!([]));
    let versions: Vec<&str> =
        told["layouts"].as_array().unwrap().iter().map(|row| row["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["V4", "V5R3", "V6R0", "V6R1"]);
    for row in told["layouts"].as_array().unwrap() {
        assert_eq!(row["reports"]["count"], 8, "{row}");
        assert!(row["bytesPerEvent"]["disk"].as_f64().unwrap() > 0.0, "{row}");
    }
    let page = std::fs::read_to_string(page.path()).unwrap();
    assert!(page.contains("<svg") && page.contains("field names, quarter"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs nothing from elsewhere");
}

/// What the files under a folder take on the disk.
fn allocated(folder: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => allocated(&entry.path()),
            false => entry.metadata().unwrap().blocks() * 512,
        })
        .sum()
}

#[test]
fn the_disk_that_is_counted_is_what_a_clean_stop_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("stores");
    let (code, told, said) = study(&["--only", "embedded-hand", "--json", "--data", data.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{told}\n{said}");
    let told: Value = serde_json::from_str(&told).unwrap();
    for (row, word) in told["layouts"].as_array().unwrap().iter().zip(["day", "array", "month", "quarter"]) {
        let store = data.join(format!("embedded-hand-{word}"));
        assert_eq!(row["diskBytes"].as_u64().unwrap(), allocated(&store), "{word}: {row}");
        // Another start and stop changes nothing but small lists of the store's: the first stop had left nothing to do.
        let before = allocated(&store);
        assert_eq!(crate::serving::Serving::start(&["--data", store.to_str().unwrap()]).stop(), Some(0));
        let after = allocated(&store);
        assert!(after.abs_diff(before) <= 128 << 10, "{word}: {before} bytes, after another stop {after}");
    }
}

/// The layouts as declarations, their documents as large as the study's to the byte; one day of a year is one bucket.
#[test]
fn declared_on_the_embedded_store_every_document_and_report_is_right() {
    let (code, told, said) = study(&["--only", "embedded-declared", "--json"]);
    assert_eq!(code, Some(0), "{told}\n{said}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["wrong"], serde_json::json!([]));
    let versions: Vec<&str> =
        told["layouts"].as_array().unwrap().iter().map(|row| row["version"].as_str().unwrap()).collect();
    assert_eq!(versions, ["V5R3", "V6R0", "V6R1"]);
    assert_eq!(told["readings"][0]["oneDay"], serde_json::json!({ "readings": 24, "bucketsTouched": 1 }));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let (code, _, said) = study(&["--only", "mongod-hand"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nothing is left to measure"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "x").unwrap();
    let (code, _, said) = study(&["--only", "embedded-hand-day", "--data", folder.path().to_str().unwrap()]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is not empty"), "{said}");
}
