//! Open cursors: random ids, the clients that may use them, how long they live.

use crate::identity;
use document::backend::Cursor;
use document::op::ReadConcern;
use document::{Code, Doc, Error, Result};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A read that was not finished by its first batch.
pub(crate) struct OpenCursor {
    pub(crate) id: i64,
    /// `database.collection`, as the first reply named it.
    pub(crate) namespace: String,
    pub(crate) owner: Owner,
    pub(crate) cursor: Box<dyn Cursor>,
    /// Rows that were read and did not fit into the last batch.
    pub(crate) pending: VecDeque<Doc<'static>>,
    /// No rows are left behind `pending`.
    pub(crate) exhausted: bool,
    pub(crate) read_concern: ReadConcern,
    pub(crate) never_expires: bool,
    /// Tells the backend that it is open.
    pub(crate) told: Option<Box<dyn Any + Send + Sync>>,
}

/// The user, the session and the transaction that a cursor belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    /// `None` where nobody authenticates.
    pub(crate) user: Option<Arc<str>>,
    pub(crate) session: Option<[u8; 16]>,
    pub(crate) transaction: Option<i64>,
}

#[derive(Default)]
pub(crate) struct Cursors {
    open: Mutex<HashMap<i64, Entry>>,
}

struct Entry {
    namespace: String,
    owner: Owner,
    used: Instant,
    never_expires: bool,
    /// Nothing while a getMore works on it.
    cursor: Option<Box<OpenCursor>>,
    /// Its transaction is over: only the answer to a client that asks for it is left.
    ended: bool,
}

impl Cursors {
    /// Keeps a new cursor and gives it its id.
    pub(crate) fn open(&self, mut cursor: OpenCursor) -> i64 {
        let mut open = self.open.lock();
        loop {
            let id = identity::cursor_id();
            if !open.contains_key(&id) {
                cursor.id = id;
                let entry = Entry {
                    namespace: cursor.namespace.clone(),
                    owner: cursor.owner.clone(),
                    used: Instant::now(),
                    never_expires: cursor.never_expires,
                    cursor: Some(Box::new(cursor)),
                    ended: false,
                };
                open.insert(id, entry);
                return id;
            }
        }
    }

    /// Whether the cursor was opened here.
    pub(crate) fn knows(&self, id: i64) -> bool {
        identity::is_own_cursor_id(id) && self.open.lock().contains_key(&id)
    }

    /// Takes a cursor for a getMore on `namespace` by `owner`; [`Cursors::give_back`] ends that.
    pub(crate) fn take(&self, id: i64, namespace: &str, owner: &Owner) -> Result<Box<OpenCursor>> {
        let mut open = self.open.lock();
        let entry = checked(&mut open, id, namespace, owner)?;
        entry.cursor.take().ok_or_else(|| Error::new(Code::CursorInUse, format!("cursor id {id} is already in use")))
    }

    /// Whether [`Cursors::take`] would be allowed.
    pub(crate) fn check(&self, id: i64, namespace: &str, owner: &Owner) -> Result<()> {
        checked(&mut self.open.lock(), id, namespace, owner).map(|_| ())
    }

    /// Keeps the cursor for the next getMore, unless it was killed meanwhile.
    pub(crate) fn give_back(&self, cursor: Box<OpenCursor>) {
        let mut dropped = Some(cursor);
        let mut open = self.open.lock();
        if let Some(entry) = dropped.as_ref().and_then(|cursor| open.get_mut(&cursor.id))
            && !entry.ended
        {
            entry.used = Instant::now();
            entry.cursor = dropped.take();
        }
        drop(open);
    }

    /// Fails if a cursor belongs to another user than this one.
    pub(crate) fn check_user(&self, id: i64, user: Option<&Arc<str>>) -> Result<()> {
        match self.open.lock().get(&id) {
            Some(entry) if entry.owner.user.as_ref() != user => Err(not_yours(id)),
            _ => Ok(()),
        }
    }

    /// Forgets a cursor; whether it was there.
    pub(crate) fn kill(&self, id: i64) -> bool {
        let killed = self.open.lock().remove(&id);
        killed.is_some()
    }

    pub(crate) fn kill_of_session(&self, session: &[u8; 16]) {
        self.kill_where(|entry| entry.owner.session.as_ref() == Some(session) && entry.owner.transaction.is_none());
    }

    /// Lets go of the cursors of a transaction that is over.
    pub(crate) fn end_of_transaction(&self, session: &[u8; 16], number: i64) {
        let is_of = |owner: &Owner| owner.session.as_ref() == Some(session) && owner.transaction == Some(number);
        let mut dropped = Vec::new();
        for entry in self.open.lock().values_mut().filter(|entry| is_of(&entry.owner)) {
            entry.ended = true;
            dropped.extend(entry.cursor.take());
        }
        drop(dropped);
    }

    pub(crate) fn expire(&self, now: Instant, timeout: Duration) {
        self.kill_where(|entry| {
            (entry.cursor.is_some() || entry.ended)
                && !entry.never_expires
                && now.saturating_duration_since(entry.used) > timeout
        });
    }

    /// How many are open, and how many of them never expire.
    pub(crate) fn count(&self) -> (usize, usize) {
        let open = self.open.lock();
        (open.len(), open.values().filter(|entry| entry.never_expires).count())
    }

    fn kill_where(&self, matches: impl Fn(&Entry) -> bool) {
        let mut open = self.open.lock();
        // Dropping a cursor may do work in the backend: not under the lock.
        let killed: Vec<Entry> = open.extract_if(|_, entry| matches(entry)).map(|(_, entry)| entry).collect();
        drop(open);
        drop(killed);
    }
}

/// The entry of a cursor, if `owner` may use it on `namespace`.
fn checked<'c>(open: &'c mut HashMap<i64, Entry>, id: i64, namespace: &str, owner: &Owner) -> Result<&'c mut Entry> {
    let entry = open.get_mut(&id).ok_or_else(|| not_found(id))?;
    if entry.owner.user != owner.user {
        return Err(not_yours(id));
    }
    if entry.namespace != namespace {
        return Err(Error::new(
            Code::Unauthorized,
            format!(
                "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
                entry.namespace
            ),
        ));
    }
    check_owner(id, &entry.owner, owner)?;
    if entry.ended { Err(not_found(id)) } else { Ok(entry) }
}

fn not_yours(id: i64) -> Error {
    Error::new(Code::Unauthorized, format!("cursor id {id} was not created by the authenticated user"))
}

pub(crate) fn not_found(id: i64) -> Error {
    Error::new(Code::CursorNotFound, format!("cursor id {id} not found"))
}

fn check_owner(id: i64, made_by: &Owner, asked_by: &Owner) -> Result<()> {
    let refuse = |code, how: String| {
        Err(Error::new(Code::Location(code), format!("Cannot run getMore on cursor {id}, which was {how}")))
    };
    match (made_by.session, asked_by.session) {
        (None, Some(asking)) => {
            return refuse(50736, format!("not created in a session, in session {}", name(&asking)));
        }
        (Some(making), None) => return refuse(50737, format!("created in session {}, without an lsid", name(&making))),
        (Some(making), Some(asking)) if making != asking => {
            return refuse(50738, format!("created in session {}, in session {}", name(&making), name(&asking)));
        }
        _ => {}
    }
    match (made_by.transaction, asked_by.transaction) {
        (None, Some(asking)) => refuse(50739, format!("not created in a transaction, in transaction {asking}")),
        (Some(making), None) => refuse(50740, format!("created in transaction {making}, without a txnNumber")),
        (Some(making), Some(asking)) if making != asking => {
            refuse(50741, format!("created in transaction {making}, in transaction {asking}"))
        }
        _ => Ok(()),
    }
}

/// A session as messages write it: its UUID and the digest of nobody's name.
pub(crate) fn name(session: &[u8; 16]) -> String {
    const NOBODY: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    let mut text = String::with_capacity(90);
    for (index, byte) in session.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    format!("{text} - {NOBODY} -  - ")
}
