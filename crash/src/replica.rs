//! A real replica set of three nodes on loopback, whose primary is killed and comes back.

use anyhow::{Context, Result, ensure};
use bson::{Document, doc};
use judge::client::Client;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Replica {
    mongod: PathBuf,
    folder: PathBuf,
    nodes: Vec<Node>,
}

struct Node {
    port: u16,
    child: Option<Child>,
}

impl Replica {
    /// Starts three nodes and waits for a primary.
    pub(crate) fn start(mongod: &Path, folder: &Path) -> Result<Replica> {
        let mut replica = Replica { mongod: mongod.to_owned(), folder: folder.to_owned(), nodes: Vec::new() };
        for at in 0..3 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            replica.nodes.push(Node { port, child: None });
            replica.run(at)?;
        }
        let members: Vec<Document> = (0_i32..)
            .zip(&replica.nodes)
            .map(|(id, node)| doc! { "_id": id, "host": format!("127.0.0.1:{}", node.port) })
            .collect();
        let settings = doc! { "electionTimeoutMillis": 1000 };
        let first = replica.nodes.first().context("no node")?.port;
        until("the first node answers", || {
            let mut client = Client::connect(&format!("127.0.0.1:{first}"))?;
            client.must(
                &doc! { "replSetInitiate": { "_id": "crash", "members": members.clone(), "settings": settings.clone() }, "$db": "admin" },
            )?;
            Ok(())
        })?;
        replica.primary()?;
        Ok(replica)
    }

    fn run(&mut self, at: usize) -> Result<()> {
        let node = self.nodes.get_mut(at).context("no such node")?;
        let data = self.folder.join(format!("node{at}"));
        std::fs::create_dir_all(&data)?;
        let child = Command::new(&self.mongod)
            .args(["--replSet", "crash", "--bind_ip", "127.0.0.1", "--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"])
            .args(["--oplogSize", "200", "--setParameter", "diagnosticDataCollectionEnabled=false"])
            .args(["--port", &node.port.to_string(), "--dbpath"])
            .arg(&data)
            .arg("--logpath")
            .arg(data.join("log"))
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", self.mongod.display()))?;
        node.child = Some(child);
        Ok(())
    }

    pub(crate) fn uri(&self) -> String {
        let hosts: Vec<String> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("mongodb://{}/?replicaSet=crash", hosts.join(","))
    }

    /// Which node is the primary; waits for one.
    fn primary(&self) -> Result<usize> {
        let mut found = 0;
        until("there is a primary", || {
            found = (0..self.nodes.len()).find(|at| self.is_primary(*at)).context("no primary")?;
            Ok(())
        })?;
        Ok(found)
    }

    fn is_primary(&self, at: usize) -> bool {
        let Some(node) = self.nodes.get(at).filter(|node| node.child.is_some()) else { return false };
        let hello = Client::connect(&format!("127.0.0.1:{}", node.port))
            .and_then(|mut client| client.must(&doc! { "hello": 1, "$db": "admin" }));
        hello.is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or(false))
    }

    /// Kills the primary without warning; gives which one it was.
    pub(crate) fn kill_primary(&mut self) -> Result<usize> {
        let at = self.primary()?;
        let child = self.nodes.get_mut(at).and_then(|node| node.child.take());
        let mut child = child.context("the primary does not run")?;
        child.kill()?;
        child.wait()?;
        Ok(at)
    }

    /// Brings a killed node back and waits until all three are in the set.
    pub(crate) fn bring_back(&mut self, at: usize) -> Result<()> {
        self.run(at)?;
        let primary = self.primary()?;
        let port = self.nodes.get(primary).context("no such node")?.port;
        until("all three nodes are back", || {
            let mut client = Client::connect(&format!("127.0.0.1:{port}"))?;
            let status = client.must(&doc! { "replSetGetStatus": 1, "$db": "admin" })?;
            let states =
                status.get_array("members")?.iter().filter_map(|member| member.as_document()?.get_i32("state").ok());
            ensure!(states.filter(|state| matches!(state, 1 | 2)).count() == 3, "not all are back");
            Ok(())
        })
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(child) = &mut node.child {
                let _gone = child.kill();
                let _gone = child.wait();
            }
        }
    }
}

fn until(what: &str, mut attempt: impl FnMut() -> Result<()>) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > end => return Err(error.context(format!("waiting until {what}"))),
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}
