//! One connection: read a message, answer it, write the reply with one call; buffers are reused.
//!
//! What a client says about lengths is never allocated: the buffer grows as bytes arrive, and beyond a small size only
//! within the memory that all connections share.

use crate::client::Client;
use crate::dispatch;
use crate::state::{MEMORY_UNIT, Server};
use crate::workload::Watch;
use bytes::{Bytes, BytesMut};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;
use wire::Header;

/// What a connection reads at once, and the least it holds while it is active.
const READ_SIZE: usize = 16 * 1024;

/// Up to here a message costs nothing of the shared memory, so that small commands never wait for it.
const FREE_SIZE: usize = 64 * 1024;

/// Buffers larger than this are given back after use.
const KEPT_SIZE: usize = 256 * 1024;

/// How long a client may stop in the middle of a message that holds shared memory.
const SHARED_STALL: Duration = Duration::from_secs(5);

/// How long a message waits for memory before it asks for the exempt place.
const MEMORY_WAIT: Duration = Duration::from_secs(1);

/// Serves the connection until the client leaves, breaks the protocol, or the server stops.
pub(crate) async fn serve(
    server: &Arc<Server>,
    client: &Arc<Client>,
    mut stream: TcpStream,
    mut stop: watch::Receiver<bool>,
) -> Result<()> {
    let mut input = Input { buffer: BytesMut::new(), memory: Memory::default(), greeted: false };
    let mut output = Vec::new();
    let mut watch = Watch::default();
    loop {
        let message = tokio::select! {
            message = input.next(&mut stream, server) => message?,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        let Some((header, frame, memory)) = message else { return Ok(()) };
        server.counters.requests.add(1);
        server.counters.bytes_in.add(frame.len());
        let seen = watch.begin(server, client, &header, &frame);
        let answer = dispatch::answer(server, client, &header, &frame, std::mem::take(&mut output)).await;
        watch.end(server, client, seen, &answer.buffer);
        drop((frame, memory));
        output = answer.buffer;
        if answer.send {
            server.counters.bytes_out.add(output.len());
            write(&stream, &output, server.options.stall_timeout).await?;
        }
        if answer.close {
            return Ok(());
        }
        output.clear();
        if output.capacity() > KEPT_SIZE {
            output = Vec::new();
        }
        input.shrink();
    }
}

struct Input {
    buffer: BytesMut,
    memory: Memory,
    /// A whole message has been read: from now on the client may be silent as long as it likes.
    greeted: bool,
}

/// The shared memory that a message takes.
#[derive(Default)]
struct Memory {
    permits: Option<OwnedSemaphorePermit>,
    /// The one place for a message that is read although no memory is left, so that half-read messages that fill all of
    /// it do not wait for each other for ever.
    exempt: Option<OwnedSemaphorePermit>,
}

impl Memory {
    /// Whether others may be waiting for what this message holds.
    fn is_shared(&self) -> bool {
        self.permits.is_some() || self.exempt.is_some()
    }

    async fn grow_to(&mut self, bytes: usize, server: &Server) -> Result<()> {
        let held = self.permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits) * MEMORY_UNIT;
        if bytes <= held || bytes <= FREE_SIZE || self.exempt.is_some() {
            return Ok(());
        }
        let stopping = |_| Error::other("the server stops");
        let units = u32::try_from((bytes - held).div_ceil(MEMORY_UNIT)).unwrap_or(u32::MAX);
        match timeout(MEMORY_WAIT, server.message_memory.clone().acquire_many_owned(units)).await {
            Ok(more) => match (&mut self.permits, more.map_err(stopping)?) {
                (Some(permits), more) => permits.merge(more),
                (none, more) => *none = Some(more),
            },
            Err(_) => self.exempt = Some(server.exempt_message.clone().acquire_owned().await.map_err(stopping)?),
        }
        Ok(())
    }
}

impl Input {
    /// The next message; `None` when the client closed the connection between two messages.
    async fn next(&mut self, stream: &mut TcpStream, server: &Server) -> Result<Option<(Header, Bytes, Memory)>> {
        let stall = server.options.stall_timeout;
        loop {
            match Header::peek(&self.buffer).transpose().map_err(invalid)? {
                Some(header) if self.buffer.len() >= header.length => {
                    self.greeted = true;
                    let frame = self.buffer.split_to(header.length).freeze();
                    return Ok(Some((header, frame, std::mem::take(&mut self.memory))));
                }
                Some(header) => {
                    timeout(stall, self.make_room(header.length, server)).await.map_err(|_| stalled())??;
                }
                None => {
                    if self.buffer.capacity() == 0 {
                        // A silent client costs no buffer.
                        let readable = stream.readable();
                        if self.greeted {
                            readable.await?;
                        } else {
                            timeout(stall, readable).await.map_err(|_| stalled())??;
                        }
                    }
                    self.buffer.reserve(READ_SIZE.saturating_sub(self.buffer.len()));
                }
            }
            let may_wait = self.greeted && self.buffer.is_empty();
            let stall = if self.memory.is_shared() { stall.min(SHARED_STALL) } else { stall };
            let read = stream.read_buf(&mut self.buffer);
            let bytes = if may_wait { read.await? } else { timeout(stall, read).await.map_err(|_| stalled())?? };
            match bytes {
                0 if self.buffer.is_empty() => return Ok(None),
                0 => return Err(Error::new(ErrorKind::UnexpectedEof, "closed in the middle of a message")),
                _ => {}
            }
        }
    }

    /// Room for more of a message of that length: as much again as has arrived, never the whole at once.
    async fn make_room(&mut self, length: usize, server: &Server) -> Result<()> {
        let arrived = self.buffer.len();
        let room = (length - arrived).min(arrived.max(READ_SIZE));
        self.memory.grow_to(arrived + room, server).await?;
        self.buffer.reserve(room);
        Ok(())
    }

    fn shrink(&mut self) {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_SIZE {
            self.buffer = BytesMut::new();
        }
    }
}

async fn write(stream: &TcpStream, mut bytes: &[u8], stall: Duration) -> Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                timeout(stall, stream.writable()).await.map_err(|_| stalled())??;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn invalid(error: wire::WireError) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

fn stalled() -> Error {
    Error::new(ErrorKind::TimedOut, "the client stopped in the middle of a message")
}
