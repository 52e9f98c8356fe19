//! The servers under test: the embedded store and the proxy as processes of their own, a MongoDB as it is.
//!
//! A process of its own is measured through the wire, as a client meets it, and leaves its files behind when it ends.

use super::client::Server;
use crate::report::Failure;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where events are stored, and which server is between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A real MongoDB.
    Mongod,
    /// Pleach on its own store.
    Embedded,
    /// Pleach in front of the real MongoDB.
    Proxy,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Mongod => "MongoDB",
            Place::Embedded => "Pleach embedded",
            Place::Proxy => "Pleach in front of MongoDB",
        }
    }
}

/// A Pleach that this run has started; it ends with this.
pub(crate) struct Running {
    child: Child,
    said: PathBuf,
    pub(crate) server: Server,
}

impl Running {
    /// On the store in `folder`; what it says goes to the file `said`.
    pub(crate) async fn embedded(folder: &Path, said: PathBuf) -> Result<Running, Failure> {
        Running::start(&["--data".into(), folder.as_os_str().to_owned()], None, said).await
    }

    /// In front of the MongoDB at `uri`, which is passed where no list of processes shows it.
    pub(crate) async fn proxy(uri: &str, said: PathBuf) -> Result<Running, Failure> {
        Running::start(&[], Some(uri), said).await
    }

    async fn start(options: &[OsString], upstream: Option<&str>, said: PathBuf) -> Result<Running, Failure> {
        let cannot = |error: std::io::Error| Failure::new(format!("cannot start a server to measure: {error}"));
        let mut child = Command::new(std::env::current_exe().map_err(cannot)?)
            .args(["serve", "--port", "0", "--log", "warn"])
            .args(options)
            .env_remove("PLEACH_DECLARE")
            .env_remove("PLEACH_DATA")
            .env_remove("PLEACH_UPSTREAM")
            .env_remove("PLEACH_UPSTREAM_FILE")
            .envs(upstream.map(|uri| ("PLEACH_UPSTREAM", uri)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&said).map_err(cannot)?)
            .spawn()
            .map_err(cannot)?;
        let printed = child.stdout.take().map(|out| BufReader::new(out).lines());
        let uri = printed.into_iter().flatten().map_while(Result::ok).map(|line| line.trim().to_owned());
        let Some(uri) = uri.into_iter().find(|line| line.starts_with("mongodb://")) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::new(format!("the server to measure did not start: {}", spoken(&said))));
        };
        match Server::open(&uri).await {
            Ok(server) => Ok(Running { child, said, server }),
            Err(failure) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(failure)
            }
        }
    }

    /// Asks it to end, and waits until its files are as it leaves them.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let ended = self.child.wait().map_err(|error| Failure::new(format!("the server did not end: {error}")))?;
        match ended.success() {
            true => Ok(()),
            false => Err(Failure::new(format!("the server ended with {ended}: {}", spoken(&self.said)))),
        }
    }
}

/// What a server has said on stderr.
fn spoken(said: &Path) -> String {
    std::fs::read_to_string(said).unwrap_or_default().trim().to_owned()
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
