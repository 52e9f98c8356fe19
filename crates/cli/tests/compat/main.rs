//! Compat scripts: a server of ours must answer as a real MongoDB did (recorded) or does (if one is given).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use judge::client::Client;
use judge::suite::Suite;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A `pleach serve` on a folder of its own, stopped and cleaned up with the test.
struct Server {
    process: Child,
    data: PathBuf,
    address: String,
}

impl Server {
    /// Starts it and waits for its connection string; the reason if it does not serve.
    fn start() -> Result<Self, String> {
        let data = std::env::temp_dir().join(format!(
            "pleach-compat-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let mut process = Command::new(env!("CARGO_BIN_EXE_pleach"))
            .args(["serve", "--port", "0", "--data"])
            .arg(&data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| format!("cannot start pleach: {error}"))?;
        let stdout = process.stdout.take().expect("stdout was asked for");
        let (send, receive) = std::sync::mpsc::channel();
        // Reads to the end, so that the server never waits for us to read.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if let Some(at) = line.find("mongodb://") {
                    let _ = send.send(judge::client::host_and_port(line[at..].trim()).to_owned());
                }
            }
        });
        let server = |address| Self { process, data, address };
        match receive.recv_timeout(Duration::from_secs(30)) {
            Ok(address) => Ok(server(address)),
            Err(_) => {
                let mut server = server(String::new());
                Err(format!("pleach serve printed no connection string; exit: {:?}", server.process.try_wait()))
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compat")
}

/// All scripts against the recorded answers, or against a server that answers now.
fn compare(judge: Option<&mut Client>) {
    let suite = Suite::load(&folder(), &std::env::var("COMPAT_FILTER").unwrap_or_default()).expect("scripts are valid");
    let server = Server::start().expect("the server starts");
    let mut client = Client::connect(&server.address).expect("the server takes connections");
    let outcome = suite.compare(&mut client, judge).expect("the comparison runs");
    let different: Vec<String> = outcome.failures.iter().map(|it| format!("{}\n{}", it.case, it.report)).collect();
    let (passed, failed) = (outcome.passed, different.len());
    assert!(failed == 0, "{failed} cases differ from MongoDB's answers, {passed} do not:\n{}", different.join("\n"));
}

#[test]
fn answers_as_mongodb_did() {
    compare(None);
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn answers_as_mongodb_does() {
    let uri = judge::real::uri().expect("there is a MongoDB");
    compare(Some(&mut Client::connect(&uri).expect("the judge takes connections")));
}
