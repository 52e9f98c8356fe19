//! A `pleach serve` of a test's own: started, asked, stopped.

use judge::client::Client;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
}

pub(crate) fn pleach() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pleach"))
}

impl Serving {
    /// `serve` on a free port.
    pub(crate) fn start(arguments: &[&str]) -> Serving {
        Serving::of(pleach().args(["serve", "--port", "0", "--log", "off"]).args(arguments))
    }

    /// In front of a real MongoDB.
    pub(crate) fn upstream(uri: &str, arguments: &[&str]) -> Serving {
        Serving::start(&[&["--upstream", uri], arguments].concat())
    }

    /// By a command that serves; waits until it says where.
    pub(crate) fn of(command: &mut Command) -> Serving {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let uri = lines.map(Result::unwrap).find_map(|line| line.trim().strip_prefix("mongodb://").map(str::to_owned));
        Serving { child, address: uri.expect("a connection string on a line of its own") }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address).unwrap()
    }

    /// A signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
    }

    /// SIGTERM; gives the exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
