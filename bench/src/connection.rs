//! One client connection: prebuilt OP_MSG requests out, replies checked for `ok: 1`.

use anyhow::{Context, Result, bail};
use bson::{Document, RawDocument, doc};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        let mut connection = Connection { stream, buffer: Vec::with_capacity(1 << 16) };
        connection.command(&doc! { "hello": 1, "$db": "admin" }).await?;
        Ok(connection)
    }

    /// Sends a whole message, reads the whole reply and gives its body.
    pub(crate) async fn exchange(&mut self, message: &[u8]) -> Result<&RawDocument> {
        self.stream.write_all(message).await?;
        self.buffer.resize(4, 0);
        self.stream.read_exact(&mut self.buffer).await?;
        let length = self.buffer.as_slice().try_into().map(i32::from_le_bytes)?;
        let length = usize::try_from(length)?;
        if !(26..=60_000_000).contains(&length) {
            bail!("a reply of {length} bytes");
        }
        self.buffer.resize(length, 0);
        self.stream.read_exact(self.buffer.get_mut(4..).unwrap_or_default()).await?;
        let body = RawDocument::from_bytes(self.buffer.get(21..).unwrap_or_default())?;
        let failed = body.get_f64("ok").unwrap_or_default() != 1.0 || body.get("writeErrors")?.is_some();
        if failed {
            bail!("the server answered {body:?}");
        }
        Ok(body)
    }

    pub(crate) async fn command(&mut self, command: &Document) -> Result<Document> {
        let message = message(command)?;
        Ok(Document::try_from(self.exchange(&message).await?)?)
    }
}

/// An OP_MSG with one body.
pub(crate) fn message(command: &Document) -> Result<Vec<u8>> {
    let body = command.to_vec()?;
    let length = i32::try_from(21 + body.len())?;
    let mut message = Vec::with_capacity(21 + body.len());
    for number in [length, 1, 0, 2013, 0] {
        message.extend_from_slice(&number.to_le_bytes());
    }
    message.push(0);
    message.extend_from_slice(&body);
    Ok(message)
}
