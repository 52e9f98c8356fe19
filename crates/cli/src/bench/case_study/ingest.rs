//! One event at a time against batches of 250, by one client: what a batch is worth.

use super::client::{Client, Server};
use super::events::Event;
use super::load::BATCH;
use super::subject::{Statements, Subject};
use crate::report::Failure;
use bson::{Document, doc};
use std::time::{Duration, Instant};

/// Writes per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ingest {
    pub(crate) single: f64,
    pub(crate) batched: f64,
}

impl Ingest {
    pub(crate) fn ratio(&self) -> f64 {
        self.batched / self.single.max(1e-9)
    }
}

/// What is written: the command, the name of its statements, and the bytes of the statement `at`.
pub(crate) struct Writes<'a> {
    pub(crate) db: String,
    pub(crate) command: Document,
    pub(crate) name: &'static str,
    pub(crate) statement: Statement<'a>,
}

/// Appends the bytes of the statement with this number.
pub(crate) type Statement<'a> = Box<dyn FnMut(usize, &mut Vec<u8>) + Send + 'a>;

/// Events as a subject has them.
pub(crate) async fn events(
    server: &Server,
    subject: Subject,
    all: &[Event],
    each: Duration,
) -> Result<Ingest, Failure> {
    let mut statements = Statements::of(subject);
    let statement = Box::new(move |at: usize, out: &mut Vec<u8>| {
        if let Some(event) = all.get(at % all.len().max(1)) {
            statements.append(event, out);
        }
    });
    let command = doc! { "update": subject.collection() };
    measure(&mut server.client(), Writes { db: subject.db(), command, name: "updates", statement }, each).await
}

/// `each` long one at a time, then as long in batches.
pub(crate) async fn measure(client: &mut Client, mut writes: Writes<'_>, each: Duration) -> Result<Ingest, Failure> {
    let mut at = 0;
    let mut rates = [0.0; 2];
    for (size, rate) in [1, BATCH].into_iter().zip(&mut rates) {
        let (began, first, mut bytes) = (Instant::now(), at, Vec::new());
        while began.elapsed() < each {
            bytes.clear();
            (0..size).for_each(|more| (writes.statement)(at + more, &mut bytes));
            client.write(&writes.db, writes.command.clone(), writes.name, &bytes).await?;
            at += size;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let written = (at - first) as f64;
        *rate = written / began.elapsed().as_secs_f64();
    }
    let [single, batched] = rates;
    Ok(Ingest { single, batched })
}
