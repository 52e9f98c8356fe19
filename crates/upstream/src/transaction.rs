//! Transactions: one of our own on a session of the line, or the client's, joined under its session and number.
//!
//! Nothing is sent to begin one: the first command does. Of our own, shared fences and retry records wait for the commit and
//! go with it (see [`crate::commit`]).

use crate::answer::{self, checked};
use crate::client_or_own::ClientOrOwn;
use crate::command::{Command, session_document};
use crate::commit::{Again, Ended};
use crate::fence;
use crate::retries;
use document::backend::{Answer, Joined, Session, Transaction};
use document::error::label;
use document::op::Context;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::any::Any;
use std::time::{Duration, Instant};

/// How long a command may take whose client has set no time.
pub(crate) const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);

/// How long a new transaction waits for aborts that are on their way.
const ABORTS: Duration = Duration::from_millis(20);

pub(crate) struct UpstreamTransaction {
    /// Nothing once it is over.
    line: Option<ClientOrOwn>,
    session: [u8; 16],
    number: i64,
    joined: bool,
    started: bool,
    read_concern: Doc<'static>,
    /// Exclusive passes that are sent ahead of the next command, and how many slots each has to find.
    pub(crate) ahead: Vec<(Command, i32)>,
    /// Slots to pass before the commit.
    pub(crate) fences: Vec<fence::Pass>,
    /// Retry records to insert before the commit.
    pub(crate) records: Vec<(String, Doc<'static>)>,
    /// What a client asked of the write, when it was begun for one.
    write_concern: Option<Doc<'static>>,
}

impl UpstreamTransaction {
    pub(crate) fn begin(line: ClientOrOwn, session: &Session, context: &Context) -> UpstreamTransaction {
        let (id, number, joined, started) = match (session.joined, session.id) {
            (Some(Joined { number, first }), Some(id)) => (id, number, true, !first),
            _ => (line.session(), line.next_number(), false, false),
        };
        let read_concern = match (&context.sent.read_concern, joined) {
            (Some(concern), true) => concern.clone(),
            (None, true) => Doc::empty(),
            (_, false) => level("snapshot"),
        };
        UpstreamTransaction {
            line: Some(line),
            session: id,
            number,
            joined,
            started,
            read_concern,
            ahead: Vec::new(),
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
        self.number = self.line()?.next_number();
        self.started = false;
        self.ahead.clear();
        self.fences.clear();
        self.records.clear();
        Ok(())
    }

    pub(crate) fn line(&self) -> Result<ClientOrOwn> {
        self.line.clone().ok_or_else(over)
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
        let line = self.line()?;
        if !self.started && matches!(line, ClientOrOwn::Own(_)) {
            // What this process has just given up would only be in its own way.
            let mut aborting = line.shared.aborting.subscribe();
            let _ = tokio::time::timeout(ABORTS, aborting.wait_for(|count| *count == 0)).await;
        }
        let (ahead, slots): (Vec<Command>, Vec<i32>) = std::mem::take(&mut self.ahead).into_iter().unzip();
        let commands = ahead.into_iter().chain(commands);
        let commands: Vec<Command> = commands.map(|command| self.dress(command)).collect();
        let mut replies = within(context, async {
            let mut ready = line.ready().await?;
            let count = commands.len();
            commands.into_iter().for_each(|command| ready.push(command));
            ready.flush().await?;
            let mut replies = Vec::with_capacity(count);
            for _ in 0..count {
                replies.push(ready.reply().await?);
            }
            Ok(replies)
        })
        .await?;
        let own = replies.split_off(slots.len().min(replies.len()));
        for (reply, slots) in replies.into_iter().zip(slots) {
            fence::passed(&line, reply, slots)?;
        }
        Ok(own)
    }

    /// Sends what was to go ahead of a command when none comes but the commit, which must not be sent before it is answered.
    pub(crate) async fn run_ahead(&mut self, context: &Context) -> Result<()> {
        if !self.ahead.is_empty() {
            self.run_all(context, Vec::new()).await?;
        }
        Ok(())
    }

    pub(crate) async fn run(&mut self, context: &Context, command: Command) -> Result<Doc<'static>> {
        let reply = self.run_all(context, vec![command]).await?.pop().ok_or_else(over)?;
        checked(reply)
    }

    pub(crate) fn end(&self, name: &str) -> Command {
        Command::new("admin", name, 1)
            .with_doc("lsid", &session_document(&self.session))
            .with("txnNumber", self.number)
            .with("autocommit", false)
    }

    /// What was to go with the commit: shared fences, then retry records.
    pub(crate) fn waiting(&mut self) -> Vec<Command> {
        let mut commands = fence::pass_some(std::mem::take(&mut self.fences));
        commands.extend(retries::save_all(std::mem::take(&mut self.records)));
        commands
    }

    /// The line it ran on; from now on nobody aborts it.
    pub(crate) fn leave(&mut self) -> Option<ClientOrOwn> {
        self.line.take()
    }

    /// How safe the commit is to be.
    pub(crate) fn concern(&self, context: &Context, line: &ClientOrOwn) -> Option<Doc<'static>> {
        let concern = context.sent.write_concern.clone().or_else(|| self.write_concern.clone());
        concern.or_else(|| line.shared.connector.write_concern())
    }

    async fn finish(&mut self, context: &Context) -> Result<Option<Error>> {
        if self.line.is_none() {
            return Err(over());
        }
        self.run_ahead(context).await?;
        // What was begun and answered before the commit is either there or over for good.
        let again = if self.started || !self.records.is_empty() { Again::Allowed } else { Again::Never };
        let waiting = self.waiting();
        if !self.started && waiting.is_empty() {
            self.line = None;
            return Ok(None);
        }
        let line = self.line()?;
        match self.conclude(context, waiting, again, None).await? {
            Ended::Committed(_, unsatisfied) => Ok(unsatisfied),
            Ended::Failed(replies) => Err(replies.iter().find_map(|reply| failure(&line, reply)).unwrap_or_else(over)),
        }
    }

    /// Tells the server that it is over, without waiting for it. The client's own is ended only when `for_client` says so.
    fn give_up(&mut self, for_client: bool) {
        let Some(line) = self.line.take() else { return };
        if !self.started || (self.joined && !for_client) {
            return;
        }
        let abort = self.end("abortTransaction");
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            line.shared.aborting.send_modify(|count| *count += 1);
            runtime.spawn(async move {
                let _ = tokio::time::timeout(DEFAULT_DEADLINE, line.run(abort)).await;
                line.shared.aborting.send_modify(|count| *count = count.saturating_sub(1));
            });
        }
    }
}

impl Transaction for UpstreamTransaction {
    fn commit<'a>(mut self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            match self.finish(context).await? {
                None => Ok(()),
                Some(error) => {
                    tell(context, error);
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

/// Done, but not as safe as was asked: the reply says so.
pub(crate) fn tell(context: &Context, error: Error) {
    if let Some(Ok(mut unsatisfied)) = context.sent.unsatisfied.as_ref().map(|told| told.lock()) {
        *unsatisfied = Some(error);
    }
}

/// Runs work within the client's time, or ours if it has set none.
pub(crate) async fn within<T>(context: &Context, work: impl Future<Output = Result<T>>) -> Result<T> {
    let until = context.deadline.unwrap_or_else(|| Instant::now() + DEFAULT_DEADLINE);
    match tokio::time::timeout_at(until.into(), work).await {
        Ok(result) => result,
        Err(_) if context.deadline.is_some() => {
            Err(Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit"))
        }
        Err(_) => Err(late()),
    }
}

pub(crate) fn late() -> Error {
    Error::new(Code::Location(89), "the upstream MongoDB did not answer in time")
        .with_label(label::TRANSIENT)
        .with_label(label::RETRYABLE)
}

pub(crate) fn over() -> Error {
    Error::new(Code::NoSuchTransaction, "the transaction is over").with_label(label::TRANSIENT)
}

/// The error in a reply to something sent before the commit.
fn failure(line: &ClientOrOwn, reply: &Doc<'static>) -> Option<Error> {
    let error = answer::failure(reply)?.error;
    Some(if fence::is_pass_failure(&error) { fence::slots_missing(line) } else { error })
}

fn level(name: &str) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("level", &Value::from(name));
    writer.finish()
}
