//! The end of a transaction: what waited for it and the commit, back to back; and what is done when no answer comes.
//!
//! If a statement fails, the commit behind it fails too and nothing is written. A lost answer to the commit is answered by
//! sending the commit again; but if answers to statements before it are missing too, nobody knows which of them arrived, and
//! committing what did would be half a write: then the transaction is aborted, which also tells whether it was committed.

use crate::answer::{self, checked};
use crate::client_or_own::ClientOrOwn;
use crate::command::Command;
use crate::transaction::{DEFAULT_DEADLINE, UpstreamTransaction, late, over};
use document::error::label;
use document::op::Context;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::time::{Duration, Instant};

/// Between two attempts to learn the outcome of a commit.
const PAUSE: Duration = Duration::from_millis(100);

/// What is known after statements and the commit were sent.
enum Sent {
    /// The commit was answered, with or without success.
    Answered(Doc<'static>),
    /// All before the commit was; its own answer is lost.
    Unknown(Error),
    /// It is not known what arrived at all.
    Adrift(Error),
}

/// What came of the end of a transaction.
pub(crate) enum Ended {
    /// The answers to the statements; and the write concern that was not satisfied.
    Committed(Vec<Doc<'static>>, Option<Error>),
    /// The answers up to the first that is an error: nothing was written.
    Failed(Vec<Doc<'static>>),
}

/// Whether a transaction may be run again of which nothing is known any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Records with unique ids keep it from having its effects twice, or it was begun and is known to be over.
    Allowed,
    Never,
}

impl UpstreamTransaction {
    /// Sends statements and the commit, and learns what came of them. A caller that waits until the writes are
    /// `visible` learns it by a commit of its own that waits for nothing; the same commit behind it waits for what was asked.
    pub(crate) async fn conclude(
        &mut self,
        context: &Context,
        statements: Vec<Command>,
        again: Again,
        visible: Option<&mut (dyn FnMut() + Send)>,
    ) -> Result<Ended> {
        let line = self.leave().ok_or_else(over)?;
        let until = context.deadline.unwrap_or_else(|| Instant::now() + DEFAULT_DEADLINE).max(Instant::now() + PAUSE);
        let concern = self.concern(context, &line);
        let mut replies = Vec::with_capacity(statements.len());
        let visible = visible.filter(|_| !is_relaxed(concern.as_ref()));
        let sending = self.send(&line, statements, concern.as_ref(), &mut replies, visible);
        let outcome = match tokio::time::timeout_at(until.into(), sending).await {
            Ok(sent) => sent?,
            Err(_) => Sent::Adrift(late()),
        };
        if replies.iter().any(|reply| answer::failure(reply).is_some()) {
            return Ok(Ended::Failed(replies));
        }
        let unsatisfied = self.settle(&line, outcome, concern.as_ref(), until, again).await?;
        Ok(Ended::Committed(replies, unsatisfied))
    }

    async fn send(
        &mut self,
        line: &ClientOrOwn,
        statements: Vec<Command>,
        concern: Option<&Doc<'_>>,
        replies: &mut Vec<Doc<'static>>,
        visible: Option<&mut (dyn FnMut() + Send)>,
    ) -> Result<Sent> {
        let count = statements.len();
        let mut ready = line.ready().await?;
        for statement in statements {
            ready.push(self.dress(statement));
        }
        if visible.is_some() {
            ready.push(self.end("commitTransaction").with_doc("writeConcern", &relaxed()));
        }
        ready.push(self.end("commitTransaction").with_some("writeConcern", concern));
        // From here on the commit may have been done, whatever is heard of it.
        let lost = |error| if count == 0 { Sent::Unknown(error) } else { Sent::Adrift(error) };
        if let Err(error) = ready.flush().await {
            return Ok(lost(error));
        }
        for _ in 0..count {
            match ready.reply().await {
                Ok(reply) => replies.push(reply),
                Err(error) => return Ok(Sent::Adrift(error)),
            }
        }
        if let Some(visible) = visible {
            match ready.reply().await {
                // If it failed, so does the one behind it.
                Ok(reply) => checked(reply).into_iter().for_each(|_| visible()),
                Err(error) => return Ok(Sent::Unknown(error)),
            }
        }
        match ready.reply().await {
            Ok(reply) => Ok(Sent::Answered(reply)),
            Err(error) => Ok(Sent::Unknown(error)),
        }
    }

    /// Finds out whether it was committed; gives the write concern that was not satisfied.
    async fn settle(
        &mut self,
        line: &ClientOrOwn,
        mut outcome: Sent,
        concern: Option<&Doc<'_>>,
        until: Instant,
        again: Again,
    ) -> Result<Option<Error>> {
        // Once more with the strongest concern: what is then said is the truth, also after a failover.
        let majority = strongest(concern);
        let can_ask = || line.can_reconnect() && Instant::now() < until;
        loop {
            let (error, adrift) = match outcome {
                Sent::Answered(reply) => match checked(reply) {
                    Ok(reply) => match answer::concern_error(&reply) {
                        // Committed by a primary that stepped down before it was safe: the next one knows whether it stays.
                        Some(error) if is_stepped_down(&error) && can_ask() => (error, false),
                        unsatisfied => return Ok(unsatisfied),
                    },
                    Err(error) if !is_unknown(&error) => return Err(error),
                    Err(error) => (error, false),
                },
                Sent::Unknown(error) => (error, false),
                Sent::Adrift(error) => (error, true),
            };
            if !can_ask() {
                return Err(unknown(&error));
            }
            tokio::time::sleep(PAUSE).await;
            let question = match adrift {
                true => self.end("abortTransaction"),
                false => self.end("commitTransaction").with_doc("writeConcern", &majority),
            };
            let asked = async {
                let mut ready = line.ready().await?;
                ready.push(question);
                ready.flush().await?;
                ready.reply().await
            };
            let told = match tokio::time::timeout_at(until.into(), asked).await {
                Ok(told) => told,
                Err(_) => Err(late()),
            };
            outcome = match (told, adrift) {
                (Ok(reply), false) => Sent::Answered(reply),
                (Err(error), false) => Sent::Unknown(error),
                (Err(error), true) => Sent::Adrift(error),
                (Ok(reply), true) => match checked(reply) {
                    Ok(_) => return Err(given_up(&error)),
                    Err(told) if told.code().number() == COMMITTED => Sent::Unknown(told),
                    Err(told) if is_unknown(&told) => Sent::Adrift(told),
                    // Either it was never begun or it is long over. Its caller may begin again if that is guarded.
                    Err(_) if again == Again::Allowed => return Err(given_up(&error)),
                    Err(_) => return Err(unknown(&error)),
                },
            };
        }
    }
}

/// TransactionCommitted: the answer to an abort that comes too late.
const COMMITTED: i32 = 256;

/// It was not committed, and will not be.
fn given_up(error: &Error) -> Error {
    Error::new(Code::NoSuchTransaction, format!("the transaction was lost before its commit: {}", error.message()))
        .with_label(label::TRANSIENT)
}

fn is_stepped_down(error: &Error) -> bool {
    answer::is_state_change(error.code().number())
}

/// Whether the commit may have been done although the answer is an error.
fn is_unknown(error: &Error) -> bool {
    error.labels().contains(&label::UNKNOWN_COMMIT)
        || is_stepped_down(error)
        || matches!(error.code().number(), 6 | 7 | 50 | 89 | 262 | 9001)
}

/// What the layer above must not take for an invitation to run the plan again.
fn unknown(error: &Error) -> Error {
    let code = match is_stepped_down(error) {
        true => error.code(),
        false => Code::InterruptedDueToReplStateChange,
    };
    Error::new(code, format!("it is not known whether the write was committed: {}", error.message()))
        .with_label(label::RETRYABLE)
        .with_label(label::UNKNOWN_COMMIT)
}

/// `{ w: 1 }`.
fn relaxed() -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append("w", &Value::Int32(1));
    writer.finish()
}

/// Whether nothing is waited for beside the commit itself.
fn is_relaxed(concern: Option<&Doc<'_>>) -> bool {
    let Some(concern) = concern else { return false };
    answer::number(concern, "w") == Some(1) && !concern.get("j").is_some_and(|j| j.is_truthy())
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
