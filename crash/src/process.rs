//! The server as a child process: started on the data, killed without warning.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) struct Server {
    pub(crate) address: String,
    child: Child,
}

/// What the server serves.
pub(crate) enum Place<'a> {
    Data(&'a Path),
    Upstream(&'a str),
}

/// Starts it and waits until it says where it listens. `shim` is the library to preload and the log it writes.
pub(crate) fn start(binary: &Path, place: &Place<'_>, shim: Option<(&Path, &Path)>) -> Result<Server> {
    let mut command = Command::new(binary);
    command.args(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::inherit());
    match place {
        Place::Data(folder) => command.arg("--data").arg(folder),
        Place::Upstream(uri) => command.args(["--upstream", uri]),
    };
    if let Some((library, log)) = shim {
        let _ = std::fs::remove_file(log);
        command.env("LD_PRELOAD", library.canonicalize()?).env("POWER_LOSS_LOG", log);
    }
    let mut child = command.spawn().with_context(|| format!("starting {}", binary.display()))?;
    let output = child.stdout.take().context("no output")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        if let Some(at) = line.find("mongodb://") {
            let rest = line.get(at..).unwrap_or_default();
            let uri = rest.split_whitespace().next().unwrap_or_default();
            return Ok(Server { address: judge::client::host_and_port(uri).to_owned(), child });
        }
    }
    let status = child.wait()?;
    bail!("the server ended before it listened: {status}");
}

/// A failed run leaves no server behind.
impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _gone_already = self.child.wait();
    }
}

impl Server {
    /// SIGKILL.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGTERM, and wait for a clean end.
    pub(crate) fn stop(mut self) -> Result<()> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server did not stop cleanly: {status}");
        }
        Ok(())
    }
}
