//! A folder with a declaration and data, the verbs on it, and a server in front of it.

use crate::serving::{Serving, pleach};
use std::path::PathBuf;
use std::process::{Command, Output};

pub(crate) struct Shop {
    pub(crate) folder: PathBuf,
}

impl Shop {
    /// A folder with a declaration.
    pub(crate) fn new(name: &str, declaration: &str) -> Shop {
        let folder = std::env::temp_dir().join(format!("pleach-rules-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("data")).unwrap();
        let shop = Shop { folder };
        shop.declare(declaration);
        shop
    }

    pub(crate) fn declare(&self, text: &str) {
        std::fs::write(self.folder.join("pleach.yaml"), text).unwrap();
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = pleach();
        command.args(args).current_dir(&self.folder);
        for name in [
            "PLEACH_DECLARE",
            "PLEACH_DATA",
            "PLEACH_SERVER",
            "PLEACH_SERVER_FILE",
            "PLEACH_UPSTREAM",
            "PLEACH_UPSTREAM_FILE",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// On the folder.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).args(["--data", "data"]).output().unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> (Option<i32>, serde_json::Value) {
        let output = self.run(&[args, &["--json"]].concat());
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), json)
    }

    pub(crate) fn serve(&self, args: &[&str]) -> Serving {
        let log = std::fs::File::create(self.folder.join("log")).unwrap();
        let arguments = [&["serve", "--port", "0", "--data", "data", "--log", "warn"], args].concat();
        Serving::of(self.command(&arguments).stderr(log))
    }

    /// Gives what was logged.
    pub(crate) fn stop(&self, serving: Serving) -> String {
        assert_eq!(serving.stop(), Some(0));
        std::fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn text(output: &Output) -> (Option<i32>, &str, &str) {
    (output.status.code(), std::str::from_utf8(&output.stdout).unwrap(), std::str::from_utf8(&output.stderr).unwrap())
}
