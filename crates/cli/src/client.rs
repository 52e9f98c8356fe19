//! A client of a running Pleach: one connection, one command at a time.

use crate::report::Failure;
use document::{Doc, DocWriter, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::{Header, Message, encode};

pub(crate) struct Client {
    stream: TcpStream,
    address: String,
    request: i32,
}

impl Client {
    pub(crate) async fn connect(uri: &str) -> Result<Client, Failure> {
        let address = address(uri);
        let stream = TcpStream::connect(&address).await.map_err(|error| {
            Failure::new(format!("cannot reach {address}: {error}")).hint("is `pleach serve` running there?")
        })?;
        Ok(Client { stream, address, request: 0 })
    }

    /// Sends a command and gives the answer's own fields.
    pub(crate) async fn command(&mut self, db: &str, body: &Doc<'_>) -> Result<bson::Document, Failure> {
        let mut command = DocWriter::with_capacity(body.as_bytes().len() + 64);
        body.iter().for_each(|(name, value)| {
            command.append(name.as_str(), &value);
        });
        command.append("$db", &Value::from(db));
        let reply = self.exchange(command.finish().as_bytes()).await.map_err(|error| {
            Failure::new(format!("{} did not answer: {error}", self.address)).hint("look at its log")
        })?;
        let mut reply = bson::Document::from_reader(reply.as_slice())
            .map_err(|error| Failure::new(format!("{} did not answer in BSON: {error}", self.address)))?;
        let ok = reply.remove("ok").is_some_and(|ok| ok.as_f64() == Some(1.0));
        if !ok {
            return Err(refused(&reply));
        }
        reply.remove("$clusterTime");
        reply.remove("operationTime");
        Ok(reply)
    }

    /// One message out, one in; gives the bytes of its body.
    async fn exchange(&mut self, body: &[u8]) -> std::io::Result<Vec<u8>> {
        self.request = self.request.wrapping_add(1);
        let mut message = Vec::with_capacity(body.len() + 32);
        let start = encode::begin_msg(&mut message, self.request, 0, 0);
        message.extend_from_slice(body);
        encode::finish(&mut message, start);
        self.stream.write_all(&message).await?;
        let strange = |error: wire::WireError| std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string());
        let mut head = [0; Header::SIZE];
        self.stream.read_exact(&mut head).await?;
        let header = Header::parse(&head).map_err(strange)?;
        let mut reply = head.to_vec();
        reply.resize(header.length, 0);
        self.stream.read_exact(reply.get_mut(Header::SIZE..).unwrap_or_default()).await?;
        match wire::message::parse(&header, &reply).map_err(strange)? {
            Message::Msg(message) => Ok(message.body.to_vec()),
            _ => Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "an answer of another kind")),
        }
    }
}

/// The server's own words.
fn refused(reply: &bson::Document) -> Failure {
    let message = reply.get_str("errmsg").unwrap_or("the command failed");
    // A hint follows the message, since drivers show only that.
    match message.split_once("; ") {
        Some((message, hint)) => Failure::new(message).hint(hint),
        None => Failure::new(message),
    }
}

/// The first host of a connection string.
fn address(uri: &str) -> String {
    let rest = uri.strip_prefix("mongodb://").unwrap_or(uri);
    let hosts = rest.split(['/', '?']).next().unwrap_or_default();
    let host = hosts.rsplit('@').next().unwrap_or_default().split(',').next().unwrap_or_default();
    match host.rsplit_once(':') {
        Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host.to_owned(),
        _ => format!("{host}:27017"),
    }
}
