//! Real `mongod` processes of a test's own: with users, without a replica set, three of them.

use bson::{Document, doc};
use judge::client::Client;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Mongod {
    child: Child,
    pub(crate) port: u16,
    _folder: tempfile::TempDir,
}

impl Drop for Mongod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Mongod {
    /// Starts the program that `judge/start` installs.
    pub(crate) fn start(options: &[&str]) -> Mongod {
        let binary = judge::real::mongod().expect("judge/start has installed a mongod");
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let child = Command::new(binary)
            .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "50"])
            .args(["--setParameter", "diagnosticDataCollectionEnabled=false", "--port", &port.to_string(), "--dbpath"])
            .arg(folder.path())
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mongod = Mongod { child, port, _folder: folder };
        until("mongod answers", || Client::connect(&mongod.address()).is_ok());
        mongod
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.address()).unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn is_primary(&self) -> bool {
        let hello =
            Client::connect(&self.address()).and_then(|mut client| client.must(&doc! { "hello": 1, "$db": "admin" }));
        hello.is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or(false))
    }
}

/// Makes a set of the servers, the first to be primary.
pub(crate) fn initiate(nodes: &[&Mongod]) {
    let member = |(at, node): (usize, &&Mongod)| {
        let priority = if at == 0 { 2 } else { 1 };
        doc! { "_id": i32::try_from(at).unwrap(), "host": node.address(), "priority": priority }
    };
    let members: Vec<Document> = nodes.iter().enumerate().map(member).collect();
    let config = doc! { "_id": "rs", "members": members, "settings": { "electionTimeoutMillis": 1000 } };
    nodes[0].client().must(&doc! { "replSetInitiate": config, "$db": "admin" }).unwrap();
    until("the first node is primary", || nodes[0].is_primary());
}

pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "waited too long: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A key that the members of a set with users share.
pub(crate) fn key_file(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("key");
    std::fs::write(&path, "cGxlYWNoLXRlc3RzLW9ubHk=").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}
