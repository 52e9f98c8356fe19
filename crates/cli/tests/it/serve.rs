//! `pleach serve` as a person meets it: what it prints, what it refuses, how it stops and what is there afterwards.

use crate::serving::{Serving, pleach};
use bson::doc;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn start(data: &Path) -> Serving {
    Serving::start(&["--data", data.to_str().unwrap()])
}

fn folder() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("pleach-it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn what_was_acknowledged_is_there_after_a_stop_and_a_start() {
    let data = folder();
    let running = start(&data);
    let mut client = running.client();
    client.must(&doc! { "insert": "c", "documents": [{ "_id": 1, "a": "x" }], "$db": "it" }).unwrap();
    client
        .must(&doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": "it" })
        .unwrap();
    assert_eq!(running.stop(), Some(0));
    let running = start(&data);
    let mut client = running.client();
    let reply = client.must(&doc! { "find": "c", "filter": { "a": "x" }, "hint": "a_1", "$db": "it" }).unwrap();
    assert_eq!(
        reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap(),
        &vec![doc! { "_id": 1, "a": "x" }.into()]
    );
    running.stop();
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn a_taken_port_and_a_taken_folder_are_told_with_the_way_out() {
    let data = folder();
    let running = start(&data);
    let port = running.address.rsplit(':').next().unwrap().to_owned();
    let said = refused(&pleach().args(["serve", "--port", &port]).output().unwrap());
    assert!(said.starts_with("error: cannot listen") && said.contains("\nhint: ") && said.contains("--port"), "{said}");
    let said = refused(&pleach().args(["serve", "--port", "0", "--data"]).arg(&data).output().unwrap());
    assert!(said.starts_with("error: ") && said.contains(&running.address), "{said}");
    running.stop();
    std::fs::remove_dir_all(data).unwrap();
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let said = refused(&pleach().args(["serve", "--bind", "0.0.0.0", "--port", "0"]).output().unwrap());
    assert!(said.contains("not a loopback address") && said.contains("authentication"), "{said}");
}

#[test]
fn a_temporary_folder_goes_with_the_server() {
    let mut child = pleach().args(["serve", "--port", "0", "--log", "off"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.find(|line| line.starts_with("Its data is in ")).unwrap();
    let path = Path::new(told.split_whitespace().nth(4).unwrap()).to_owned();
    assert!(path.exists());
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!path.exists(), "{} is still there", path.display());
}

#[test]
fn help_teaches() {
    let output = pleach().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in ["--data", "--port", "--memory", "Examples:", "mongosh"] {
        assert!(help.contains(word), "{word} is not in\n{help}");
    }
}
