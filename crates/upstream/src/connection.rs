//! One socket to one server: messages out, messages in, in order.
//!
//! Several commands may be sent before the first reply is read. A connection whose replies were not all taken (because the caller that
//! waited for them went away) is of no further use: see [`Connection::is_usable`].

use crate::command::Command;
use crate::stream::Stream;
use crate::uri::Host;
use bytes::{Bytes, BytesMut};
use document::Doc;
use std::io::{Error, ErrorKind, Result};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::{Header, Message};

/// What is read at once; buffers grow from there.
const READ_SIZE: usize = 16 * 1024;

/// Buffers larger than this are given back after use.
const KEPT_SIZE: usize = 256 * 1024;

/// How long a reply is waited for before it is asked again whether the server is still there.
const REPLY_CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) struct Connection {
    stream: Stream,
    pub(crate) host: Host,
    /// The state of the topology that it was opened in.
    pub(crate) generation: u64,
    input: BytesMut,
    output: Vec<u8>,
    next_request: i32,
    /// Replies that are still to come.
    awaited: usize,
    broken: bool,
}

impl Connection {
    pub(crate) fn new(stream: Stream, host: Host, generation: u64) -> Connection {
        Connection {
            stream,
            host,
            generation,
            input: BytesMut::new(),
            output: Vec::new(),
            next_request: 1,
            awaited: 0,
            broken: false,
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.broken && self.awaited == 0
    }

    /// Adds a command to those that [`Connection::flush`] sends.
    pub(crate) fn push(&mut self, command: Command) {
        command.encode(&mut self.output, self.next_request);
        self.next_request = self.next_request.checked_add(1).unwrap_or(1);
        self.awaited += 1;
    }

    /// Sends what was pushed, with one write where the socket takes it.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        let result = async {
            self.stream.write_all(&self.output).await?;
            self.stream.flush().await
        }
        .await;
        self.output.clear();
        self.output.shrink_to(KEPT_SIZE);
        self.noted(result)
    }

    /// The next reply, in the order of the commands.
    pub(crate) async fn reply(&mut self) -> Result<Doc<'static>> {
        let result = self.read_reply().await;
        self.noted(result)
    }

    /// Sends one command and takes its reply.
    pub(crate) async fn run(&mut self, command: Command) -> Result<Doc<'static>> {
        self.push(command);
        self.flush().await?;
        self.reply().await
    }

    async fn read_reply(&mut self) -> Result<Doc<'static>> {
        loop {
            match Header::peek(&self.input).transpose().map_err(garbled)? {
                Some(header) if self.input.len() >= header.length => {
                    let frame = self.input.split_to(header.length).freeze();
                    self.awaited = self.awaited.saturating_sub(1);
                    return body(&header, &frame);
                }
                Some(header) => self.input.reserve(header.length - self.input.len()),
                None => self.input.reserve(READ_SIZE),
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(closed());
            }
        }
    }

    /// Passes a whole message on and puts the reply, as it comes, behind what `reply` holds. `is_current` is asked now and then
    /// whether waiting still makes sense.
    pub(crate) async fn exchange(
        &mut self,
        message: &[u8],
        expects_reply: bool,
        reply: &mut Vec<u8>,
        is_current: impl Fn(u64) -> bool,
    ) -> Result<()> {
        let generation = self.generation;
        self.awaited += 1;
        let result = async {
            self.stream.write_all(message).await?;
            self.stream.flush().await?;
            if !expects_reply {
                return Ok(());
            }
            let start = reply.len();
            let mut gone = false;
            loop {
                let arrived = reply.get(start..).unwrap_or_default();
                match Header::peek(arrived).transpose().map_err(garbled)? {
                    Some(header) if arrived.len() == header.length => return Ok(()),
                    Some(header) if arrived.len() > header.length => return Err(garbled("more than one reply")),
                    Some(header) => reply.reserve_exact(header.length - arrived.len()),
                    None => reply.reserve(READ_SIZE),
                }
                match tokio::time::timeout(REPLY_CHECK_INTERVAL, self.stream.read_buf(reply)).await {
                    Ok(read) => {
                        if read? == 0 {
                            return Err(closed());
                        }
                    }
                    Err(_) if is_current(generation) => {}
                    // Once more: the server may be stepping down in good order.
                    Err(_) if !gone => gone = true,
                    Err(_) => return Err(Error::new(ErrorKind::TimedOut, "the server no longer answers")),
                }
            }
        }
        .await;
        if result.is_ok() {
            self.awaited = self.awaited.saturating_sub(1);
        }
        self.noted(result)
    }

    fn noted<T>(&mut self, result: Result<T>) -> Result<T> {
        self.broken |= result.is_err();
        result
    }
}

/// The document of a reply.
fn body(header: &Header, frame: &Bytes) -> Result<Doc<'static>> {
    match wire::message::parse(header, frame).map_err(garbled)? {
        Message::Msg(msg) => {
            let start = msg.body.as_ptr().addr() - frame.as_ptr().addr();
            Doc::checked(frame.slice(start..start + msg.body.len())).map_err(garbled)
        }
        _ => Err(garbled("a reply of another kind")),
    }
}

fn garbled(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidData, error)
}

fn closed() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")
}
