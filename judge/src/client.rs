//! A small synchronous client: one connection, one OP_MSG command at a time, the reply kept as it came.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bson::Document;

const OP_MSG: i32 = 2013;
const HEADER: usize = 16;
const MAX_MESSAGE: usize = 48_000_000 + HEADER;

/// A connection to a server at an address given as `host:port` or `mongodb://host:port/…`.
pub struct Client {
    address: String,
    stream: TcpStream,
    request: i32,
    /// A send or a receive failed: what comes on the connection may answer an earlier command.
    spoiled: bool,
}

/// A server's answer: the document, and the bytes it was sent as.
pub struct Reply {
    pub document: Document,
    pub raw: Vec<u8>,
}

impl Client {
    pub fn connect(address: &str) -> Result<Self> {
        let address = host_and_port(address).to_owned();
        let stream = open(&address)?;
        Ok(Self { address, stream, request: 0, spoiled: false })
    }

    /// A second connection to the same server.
    pub fn another(&self) -> Result<Self> {
        Self::connect(&self.address)
    }

    /// Replaces the connection, for use after an error.
    pub fn reconnect(&mut self) -> Result<()> {
        self.stream = open(&self.address)?;
        self.spoiled = false;
        Ok(())
    }

    /// Sends a command (which names its database in `$db`) and waits for the reply.
    pub fn command(&mut self, command: &Document) -> Result<Reply> {
        self.send(&command.to_vec()?)
    }

    /// As `command`, with a body that is already encoded. After a failure the next command has a new connection.
    pub fn send(&mut self, body: &[u8]) -> Result<Reply> {
        if self.spoiled {
            self.reconnect()?;
        }
        let reply = self.exchange(body);
        self.spoiled = reply.is_err();
        reply
    }

    fn exchange(&mut self, body: &[u8]) -> Result<Reply> {
        self.request = self.request.wrapping_add(1);
        let length = HEADER + 5 + body.len();
        let mut message = Vec::with_capacity(length);
        for field in [i32::try_from(length)?, self.request, 0, OP_MSG, 0] {
            message.extend_from_slice(&field.to_le_bytes());
        }
        message.push(0);
        message.extend_from_slice(body);
        self.stream.write_all(&message).context("cannot send")?;
        self.receive()
    }

    /// Sends a command and fails unless the reply says `ok: 1` and has no write errors.
    pub fn must(&mut self, command: &Document) -> Result<Document> {
        let reply = self.command(command)?.document;
        let ok = reply.get("ok").and_then(|ok| ok.as_f64().or(ok.as_i32().map(f64::from)));
        ensure!(ok == Some(1.0) && !reply.contains_key("writeErrors"), "{command} failed: {reply}");
        Ok(reply)
    }

    fn receive(&mut self) -> Result<Reply> {
        let mut header = [0; HEADER];
        self.stream.read_exact(&mut header).context("no reply")?;
        let [length, _, answers, code] = [0, 4, 8, 12].map(|at| int_at(&header, at));
        let length = usize::try_from(length).unwrap_or(0);
        ensure!((HEADER + 5..=MAX_MESSAGE).contains(&length), "reply of {length} bytes");
        ensure!(code == OP_MSG, "reply with opcode {code}");
        ensure!(answers == self.request, "reply to request {answers} in place of {}", self.request);
        let mut rest = vec![0; length - HEADER];
        self.stream.read_exact(&mut rest).context("reply cut short")?;
        let flags = int_at(&rest, 0);
        ensure!(flags & !1 == 0, "reply with flags {flags:#x}");
        let end = if flags & 1 == 1 { rest.len().saturating_sub(4) } else { rest.len() };
        let Some([0, raw @ ..]) = rest.get(4..end) else { bail!("reply does not begin with a body section") };
        let document = Document::from_reader(raw).context("reply is not BSON")?;
        Ok(Reply { document, raw: raw.to_vec() })
    }
}

fn open(address: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// `127.0.0.1:27017` of `mongodb://127.0.0.1:27017/?replicaSet=rs`.
pub fn host_and_port(uri: &str) -> &str {
    let rest = uri.trim().strip_prefix("mongodb://").unwrap_or(uri.trim());
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    rest.split(['/', ',', '?']).next().unwrap_or(rest)
}

fn int_at(bytes: &[u8], at: usize) -> i32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, i32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(host_and_port("mongodb://127.0.0.1:27017/?replicaSet=rs"), "127.0.0.1:27017");
        assert_eq!(host_and_port("127.0.0.1:27017\n"), "127.0.0.1:27017");
        assert_eq!(host_and_port("mongodb://a:1,b:2/x"), "a:1");
    }
}
