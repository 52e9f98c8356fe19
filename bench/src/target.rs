//! A server under measurement: where it listens and which process it is.

use anyhow::{Context, Result, bail};

pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) pid: Option<u32>,
}

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Target> {
        let (name, rest) = text.split_once('=').context("a target is NAME=HOST:PORT[:PID]")?;
        let parts: Vec<&str> = rest.split(':').collect();
        let (address, pid) = match parts.as_slice() {
            [host, port] => (format!("{host}:{port}"), None),
            [host, port, pid] => (format!("{host}:{port}"), Some(pid.parse().context("the pid is a number")?)),
            _ => bail!("a target is NAME=HOST:PORT[:PID], not {text}"),
        };
        let loopback = address.starts_with("127.") || address.starts_with("localhost:");
        if !loopback {
            bail!("only loopback addresses are measured, not {address}");
        }
        Ok(Target { name: name.to_owned(), address, pid })
    }

    /// User and system time of the whole process so far, in microseconds.
    pub(crate) fn cpu_micros(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid?)).ok()?;
        // The command name may hold spaces; the fields after its closing bracket do not.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        // Clock ticks are 1/100 s on Linux.
        Some(ticks * 10_000)
    }
}
