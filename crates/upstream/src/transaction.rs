//! Transactions: one of our own on a session of the line, or the client's, joined under its session and number.
//!
//! Nothing is sent to begin one: the first command does. Of our own, shared fences and retry records wait for the commit and
//! go with it, back to back: if one of them fails, the commit behind it fails too and nothing is written. A commit whose
//! answer is lost is sent again; the plan never is.

use crate::answer::{self, RETRYABLE, TRANSIENT, UNKNOWN_COMMIT, checked};
use crate::command::{Command, session_document};
use crate::fence;
use crate::retries;
use crate::via::Via;
use document::backend::{Answer, Joined, Session, Transaction};
use document::op::Context;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::any::Any;
use std::time::{Duration, Instant};

/// How long a command may take whose client has set no time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts to learn the outcome of a commit.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a new transaction waits for aborts that are on their way.
const ABORTS: Duration = Duration::from_millis(20);

pub(crate) struct UpstreamTransaction {
    /// Nothing once it is over.
    via: Option<Via>,
    session: [u8; 16],
    number: i64,
    joined: bool,
    started: bool,
    read_concern: Doc<'static>,
    /// Slots to pass before the commit: of which database, which one.
    pub(crate) fences: Vec<(String, i32)>,
    /// Retry records to insert before the commit.
    pub(crate) records: Vec<(String, Doc<'static>)>,
    /// What a client asked of the write, when it was begun for one.
    write_concern: Option<Doc<'static>>,
}

impl UpstreamTransaction {
    pub(crate) fn begin(via: Via, session: &Session, context: &Context) -> UpstreamTransaction {
        let (id, number, joined, started) = match (session.joined, session.id) {
            (Some(Joined { number, first }), Some(id)) => (id, number, true, !first),
            _ => (via.session(), via.next_number(), false, false),
        };
        let read_concern = match (&context.sent.read_concern, joined) {
            (Some(concern), true) => concern.clone(),
            (None, true) => Doc::empty(),
            (_, false) => level("snapshot"),
        };
        UpstreamTransaction {
            via: Some(via),
            session: id,
            number,
            joined,
            started,
            read_concern,
            fences: Vec::new(),
            records: Vec::new(),
            write_concern: context.sent.write_concern.clone(),
        }
    }

    /// The session's transaction, if it is of this backend.
    pub(crate) fn of(session: &mut Session) -> Option<&mut UpstreamTransaction> {
        session.transaction.as_mut()?.as_any_mut().downcast_mut()
    }

    pub(crate) fn is_joined(&self) -> bool {
        self.joined
    }

    /// Whether something of it was sent.
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    /// Begins our own transaction again, as if nothing had been sent: a newer one of the session ends the older.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.number = self.via()?.next_number();
        self.started = false;
        self.fences.clear();
        self.records.clear();
        Ok(())
    }

    pub(crate) fn via(&self) -> Result<Via> {
        self.via.clone().ok_or_else(over)
    }

    /// Makes the command one of this transaction.
    pub(crate) fn dress(&mut self, command: Command) -> Command {
        let command = command
            .with_doc("lsid", &session_document(&self.session))
            .with("txnNumber", self.number)
            .with("autocommit", false);
        if std::mem::replace(&mut self.started, true) {
            return command;
        }
        let command = command.with("startTransaction", true);
        if self.read_concern.is_empty() { command } else { command.with_doc("readConcern", &self.read_concern) }
    }

    /// Sends commands back to back and gives their replies, errors included, as far as they came.
    pub(crate) async fn run_all(&mut self, context: &Context, commands: Vec<Command>) -> Result<Vec<Doc<'static>>> {
        let via = self.via()?;
        if !self.started && matches!(via, Via::Ours(_)) {
            // What this process has just given up would only be in its own way.
            let mut aborting = via.shared.aborting.subscribe();
            let _ = tokio::time::timeout(ABORTS, aborting.wait_for(|count| *count == 0)).await;
        }
        let commands: Vec<Command> = commands.into_iter().map(|command| self.dress(command)).collect();
        within(context, async {
            let mut ready = via.ready().await?;
            let count = commands.len();
            commands.into_iter().for_each(|command| ready.push(command));
            ready.flush().await?;
            let mut replies = Vec::with_capacity(count);
            for _ in 0..count {
                replies.push(ready.reply().await?);
            }
            Ok(replies)
        })
        .await
    }

    pub(crate) async fn run(&mut self, context: &Context, command: Command) -> Result<Doc<'static>> {
        let reply = self.run_all(context, vec![command]).await?.pop().ok_or_else(over)?;
        checked(reply)
    }

    fn end(&self, name: &str) -> Command {
        Command::new("admin", name, 1)
            .with_doc("lsid", &session_document(&self.session))
            .with("txnNumber", self.number)
            .with("autocommit", false)
    }

    /// Sends what waited, and the commit, back to back.
    async fn send_commit(&mut self, via: &Via, concern: Option<&Doc<'_>>) -> Result<Sent> {
        let mut before = Vec::new();
        for (db, slot) in std::mem::take(&mut self.fences) {
            before.push(fence::pass(&db, slot));
        }
        for (db, record) in std::mem::take(&mut self.records) {
            before.push(retries::save(&db, record));
        }
        let before: Vec<Command> = before.into_iter().map(|command| self.dress(command)).collect();
        let count = before.len();
        let mut ready = via.ready().await?;
        before.into_iter().for_each(|command| ready.push(command));
        ready.push(self.end("commitTransaction").with_some("writeConcern", concern));
        // From here on the commit may have been done, whatever is heard of it.
        if let Err(error) = ready.flush().await {
            return Ok(Sent::Unknown(error));
        }
        let mut failed = None;
        for _ in 0..count {
            match ready.reply().await {
                Ok(reply) => failed = failed.or(failure(&reply)),
                Err(error) => return Ok(Sent::Unknown(error)),
            }
        }
        if failed.as_ref().is_some_and(fence::is_missing) {
            via.shared.prepared.lock().clear();
        }
        match (ready.reply().await, failed) {
            (Ok(_), Some(error)) => Err(error),
            (Ok(reply), None) => Ok(Sent::Answered(reply)),
            (Err(error), None) => Ok(Sent::Unknown(error)),
            (Err(_), Some(error)) => Err(error),
        }
    }

    async fn finish(&mut self, context: &Context) -> Result<Option<Error>> {
        let via = self.via.take().ok_or_else(over)?;
        if !self.started && self.fences.is_empty() && self.records.is_empty() {
            return Ok(None);
        }
        let until = context.deadline.unwrap_or_else(|| Instant::now() + PATIENCE).max(Instant::now() + PAUSE);
        let concern = context.sent.write_concern.clone().or_else(|| self.write_concern.clone());
        let concern = concern.or_else(|| via.shared.connector.write_concern());
        let sent = tokio::time::timeout_at(until.into(), self.send_commit(&via, concern.as_ref())).await;
        let mut outcome = match sent {
            Ok(sent) => sent?,
            Err(_) => Sent::Unknown(late()),
        };
        // Once more with the strongest concern: what is then said is the truth, also after a failover.
        let majority = strongest(concern.as_ref());
        loop {
            match outcome {
                Sent::Answered(reply) => match checked(reply) {
                    Ok(reply) => return Ok(answer::concern_error(&reply)),
                    Err(error) if !is_unknown(&error) => return Err(error),
                    Err(error) => outcome = Sent::Unknown(error),
                },
                Sent::Unknown(error) => {
                    if !via.can_reconnect() || Instant::now() >= until {
                        return Err(unknown(&error));
                    }
                    tokio::time::sleep(PAUSE).await;
                    let again = self.end("commitTransaction").with_doc("writeConcern", &majority);
                    let asked = async {
                        let mut ready = via.ready().await?;
                        ready.push(again);
                        ready.flush().await?;
                        ready.reply().await
                    };
                    outcome = match tokio::time::timeout_at(until.into(), asked).await {
                        Ok(Ok(reply)) => Sent::Answered(reply),
                        Ok(Err(error)) => Sent::Unknown(error),
                        Err(_) => Sent::Unknown(late()),
                    };
                }
            }
        }
    }

    /// Tells the server that it is over, without waiting for it. The client's own is ended only when `for_client` says so.
    fn give_up(&mut self, for_client: bool) {
        let Some(via) = self.via.take() else { return };
        if !self.started || (self.joined && !for_client) {
            return;
        }
        let abort = self.end("abortTransaction");
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            via.shared.aborting.send_modify(|count| *count += 1);
            runtime.spawn(async move {
                let _ = tokio::time::timeout(PATIENCE, via.run(abort)).await;
                via.shared.aborting.send_modify(|count| *count = count.saturating_sub(1));
            });
        }
    }
}

enum Sent {
    Answered(Doc<'static>),
    Unknown(Error),
}

impl Transaction for UpstreamTransaction {
    fn commit<'a>(mut self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            match self.finish(context).await? {
                None => Ok(()),
                // Done, but not as safe as was asked: the reply says so.
                Some(error) => {
                    if let Some(Ok(mut unsatisfied)) = context.sent.unsatisfied.as_ref().map(|told| told.lock()) {
                        *unsatisfied = Some(error);
                    }
                    Ok(())
                }
            }
        })
    }

    fn abort(mut self: Box<Self>) {
        self.give_up(true);
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for UpstreamTransaction {
    fn drop(&mut self) {
        self.give_up(false);
    }
}

/// Runs work within the client's time, or ours if it has set none.
pub(crate) async fn within<T>(context: &Context, work: impl Future<Output = Result<T>>) -> Result<T> {
    let until = context.deadline.unwrap_or_else(|| Instant::now() + PATIENCE);
    match tokio::time::timeout_at(until.into(), work).await {
        Ok(result) => result,
        Err(_) if context.deadline.is_some() => {
            Err(Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit"))
        }
        Err(_) => Err(late()),
    }
}

fn late() -> Error {
    Error::new(Code::Location(89), "the upstream MongoDB did not answer in time")
        .with_label(TRANSIENT)
        .with_label(RETRYABLE)
}

fn over() -> Error {
    Error::new(Code::NoSuchTransaction, "the transaction is over").with_label(TRANSIENT)
}

/// The error in a reply to something sent before the commit.
fn failure(reply: &Doc<'static>) -> Option<Error> {
    match checked(reply.clone()) {
        Err(error) => Some(error),
        Ok(reply) => match answer::write_errors(&reply).into_iter().next() {
            Some(failed) => Some(failed.error),
            None if answer::count(&reply, "n") == 0 => Some(fence::missing()),
            None => None,
        },
    }
}

/// Whether the commit may have been done although the answer is an error.
fn is_unknown(error: &Error) -> bool {
    error.labels().contains(&UNKNOWN_COMMIT)
        || answer::is_state_change(error.code().number())
        || matches!(error.code().number(), 6 | 7 | 50 | 89 | 262 | 9001)
}

/// What the layer above must not take for an invitation to run the plan again.
fn unknown(error: &Error) -> Error {
    let code = match answer::is_state_change(error.code().number()) {
        true => error.code(),
        false => Code::InterruptedDueToReplStateChange,
    };
    Error::new(code, format!("it is not known whether the write was committed: {}", error.message()))
        .with_label(RETRYABLE)
        .with_label(UNKNOWN_COMMIT)
}

fn level(name: &str) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("level", &Value::from(name));
    writer.finish()
}

/// The concern as asked, but for a majority, and not for ever.
fn strongest(concern: Option<&Doc<'_>>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("w", &Value::from("majority"));
    let mut limited = false;
    for (name, value) in concern.into_iter().flat_map(Doc::iter) {
        limited |= name.as_str() == "wtimeout";
        if name.as_str() != "w" {
            writer.append(name.as_str(), &value);
        }
    }
    if !limited {
        writer.append("wtimeout", &Value::Int32(10_000));
    }
    writer.finish()
}
