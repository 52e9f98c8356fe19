//! A server in this process and a client that speaks to it in plain bytes.

use crate::memory::Memory;
use bson::{Document, doc};
use document::backend::Unruled;
use pleach_server::Options;
use std::io::{Read, Result, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use wire::{Header, Message, encode};

/// A server on a port of its own, stopped when dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start() -> Running {
        Running::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let (send, receive) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                send.send(listener.local_addr().unwrap()).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                pleach_server::run(listener, Arc::new(Unruled(Arc::new(Memory::default()))), options, shutdown)
                    .await
                    .unwrap();
            });
        });
        Running { address: receive.recv().unwrap(), stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Client::over(stream)
    }

    /// Asks the server to stop and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    next: i32,
}

impl Client {
    pub(crate) fn over(stream: TcpStream) -> Client {
        Client { stream, next: 0 }
    }

    /// Sends a command to the database `test` (unless it names one) and returns the reply without its times.
    pub(crate) fn run(&mut self, command: Document) -> Document {
        let mut command = command;
        if !command.contains_key("$db") {
            command.insert("$db", "test");
        }
        self.send(&command, 0);
        let mut reply = self.receive().unwrap();
        assert!(reply.remove("$clusterTime").is_some() && reply.remove("operationTime").is_some(), "{reply}");
        reply
    }

    pub(crate) fn admin(&mut self, mut command: Document) -> Document {
        command.insert("$db", "admin");
        self.run(command)
    }

    /// The code of the error that the command must give.
    pub(crate) fn code(&mut self, command: Document) -> i32 {
        let reply = self.run(command.clone());
        assert_eq!(reply.get_f64("ok").ok(), Some(0.0), "{command} gave {reply}");
        reply.get_i32("code").unwrap()
    }

    pub(crate) fn send(&mut self, command: &Document, flags: u32) {
        self.next += 1;
        let mut buffer = Vec::new();
        let start = encode::begin_msg(&mut buffer, self.next, 0, flags);
        buffer.extend_from_slice(&command.to_vec().unwrap());
        encode::finish(&mut buffer, start);
        self.stream.write_all(&buffer).unwrap();
    }

    /// The next message, whole.
    pub(crate) fn message(&mut self) -> Result<(Header, Vec<u8>)> {
        let mut head = [0; Header::SIZE];
        self.stream.read_exact(&mut head)?;
        let header = Header::parse(&head).unwrap();
        let mut bytes = head.to_vec();
        bytes.resize(header.length, 0);
        self.stream.read_exact(&mut bytes[Header::SIZE..])?;
        Ok((header, bytes))
    }

    /// The document of the next message.
    pub(crate) fn receive(&mut self) -> Result<Document> {
        let (header, bytes) = self.message()?;
        let body = match wire::message::parse(&header, &bytes).unwrap() {
            Message::Msg(msg) => msg.body.to_vec(),
            Message::Reply(reply) => reply.document.to_vec(),
            other => panic!("the server sent {other:?}"),
        };
        Ok(Document::from_reader(&*body).unwrap())
    }

    /// Whether the server has closed the connection, or does so soon.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }

    /// The server still answers on this connection.
    pub(crate) fn still_works(&mut self) {
        assert_eq!(self.run(doc! {"ping": 1}), doc! {"ok": 1.0});
    }
}
