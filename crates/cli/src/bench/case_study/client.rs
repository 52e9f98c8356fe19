//! A client of any server under test: our own wire client, one request under way per line, retryable writes as drivers send them.

use crate::compose;
use crate::report::Failure;
use bson::spec::BinarySubtype;
use bson::{Binary, Document, doc};
use document::Doc;
use document::backend::Relay;
use std::sync::Arc;
use upstream::Upstream;
use wire::{Header, Message};

/// A server under test.
#[derive(Clone)]
pub(crate) struct Server(Arc<Upstream>);

impl Server {
    pub(crate) async fn open(uri: &str) -> Result<Server, Failure> {
        Ok(Server(Arc::new(Upstream::open(compose::connection_string(uri)?).await?)))
    }

    /// A line of its own.
    pub(crate) fn client(&self) -> Client {
        let mut session = Vec::with_capacity(16);
        for part in [server::identity::object_id(), server::identity::object_id()] {
            session.extend_from_slice(&part);
        }
        // The ends differ: counters are there.
        let session = session.split_off(8);
        Client { line: self.0.line(), session, number: 0, message: Vec::new(), reply: Vec::new() }
    }
}

pub(crate) struct Client {
    line: Arc<dyn Relay>,
    session: Vec<u8>,
    number: i64,
    message: Vec<u8>,
    reply: Vec<u8>,
}

impl Client {
    /// Any command; an error reply is a failure.
    pub(crate) async fn run(&mut self, db: &str, command: Document) -> Result<Document, Failure> {
        let answer = self.line.command(db, Doc::from(command)).await?;
        Ok(Document::try_from(&answer)?)
    }

    /// The first batch of a reading command, which is all of it.
    pub(crate) async fn rows(&mut self, db: &str, command: Document) -> Result<Vec<Document>, Failure> {
        let reply = self.run(db, command).await?;
        let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        let batch = batch.map_err(|error| Failure::new(format!("a reply without a first batch: {error}")))?;
        Ok(batch.iter().filter_map(|row| row.as_document().cloned()).collect())
    }

    /// A retryable write command with its statements, whose bytes stand in one piece, beside it; a write error is a failure.
    pub(crate) async fn write(
        &mut self,
        db: &str,
        mut body: Document,
        name: &str,
        statements: &[u8],
    ) -> Result<(), Failure> {
        self.number += 1;
        let session = Binary { subtype: BinarySubtype::Uuid, bytes: self.session.clone() };
        body.extend(doc! { "ordered": false, "lsid": { "id": session }, "txnNumber": self.number, "$db": db });
        self.message.clear();
        self.reply.clear();
        let start = wire::encode::begin_msg(&mut self.message, 1, 0, 0);
        self.message.extend_from_slice(Doc::from(body).as_bytes());
        wire::encode::append_sequence(&mut self.message, name, [statements]);
        wire::encode::finish(&mut self.message, start);
        self.line.forward(&self.message, true, &mut self.reply).await?;
        let reply = parse_reply(&self.reply)?;
        let is_fine = reply.get_f64("ok").is_ok_and(|ok| ok > 0.0) && !reply.contains_key("writeErrors");
        match is_fine && !reply.contains_key("writeConcernError") {
            true => Ok(()),
            false => Err(Failure::new(format!("a write was refused: {reply}"))),
        }
    }
}

/// The document of a reply.
fn parse_reply(bytes: &[u8]) -> Result<Document, Failure> {
    let garbled = |error: String| Failure::new(format!("a garbled reply: {error}"));
    let header = match Header::peek(bytes) {
        Some(header) => header.map_err(|error| garbled(error.to_string()))?,
        None => return Err(garbled("it is too short".into())),
    };
    match wire::message::parse(&header, bytes).map_err(|error| garbled(error.to_string()))? {
        Message::Msg(msg) => Document::from_reader(msg.body).map_err(|error| garbled(error.to_string())),
        _ => Err(garbled("it is of another kind".into())),
    }
}
