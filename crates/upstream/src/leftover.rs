//! The sessions of our own transactions, named so that whoever comes after this process can end what it left open.
//!
//! A process that is killed leaves its transactions open in the server until their time is over; until then every write to
//! the same documents conflicts with them. Its ids are one random beginning and a number, and the beginning is written down
//! with the lease on the rules.

use crate::client_or_own::ClientOrOwn;
use crate::command::{Command, session_document};
use crate::shared::Shared;
use document::backend::Session;
use document::{ArrayWriter, Blob, Doc, DocWriter, Result, Value};
use rand::RngExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Sessions that may have been begun since this was last written down.
const MARGIN: u32 = 2_000;
/// So many are ended by one command.
const SESSIONS_PER_COMMAND: usize = 1_000;

pub(crate) struct Leftover {
    beginning: [u8; 12],
    next: AtomicU32,
}

impl Default for Leftover {
    fn default() -> Leftover {
        let mut beginning: [u8; 12] = rand::rng().random();
        // A UUID of version 4, as drivers make them.
        beginning[6] = (beginning[6] & 0x0F) | 0x40;
        beginning[8] = (beginning[8] & 0x3F) | 0x80;
        Leftover { beginning, next: AtomicU32::new(0) }
    }
}

fn id(beginning: [u8; 12], number: u32) -> [u8; 16] {
    let mut id = [0; 16];
    let (first, last) = id.split_at_mut(12);
    first.copy_from_slice(&beginning);
    last.copy_from_slice(&number.to_be_bytes());
    id
}

impl Leftover {
    pub(crate) fn session(&self) -> [u8; 16] {
        id(self.beginning, self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// What is written down.
    pub(crate) fn describe(&self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        writer.append("sessions", &Value::Binary { subtype: 0, bytes: Blob::Borrowed(&self.beginning) });
        writer.append("begun", &Value::Int64(i64::from(self.next.load(Ordering::Relaxed))));
        writer.append("process", &Value::Int64(i64::from(std::process::id()))).append("host", &Value::from(&*host()));
        writer.finish()
    }
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Whether the process was on this machine and is no more.
fn is_gone(leftover: &Doc<'_>) -> bool {
    let here = leftover.get("host").is_some_and(|other| other.as_str() == Some(&*host()) && !host().is_empty());
    let Some(Value::Int64(process)) = leftover.get("process") else { return false };
    here && std::path::Path::new("/proc/self").exists() && !std::path::Path::new(&format!("/proc/{process}")).exists()
}

/// Ends the transactions of a process that is known to be gone, or whose time is over; says whether that was so.
pub(crate) async fn clear(shared: &Arc<Shared>, leftover: &Doc<'_>, expired: bool) -> Result<bool> {
    if !expired && !is_gone(leftover) {
        return Ok(false);
    }
    let (Some(Value::Binary { bytes, .. }), Some(Value::Int64(begun))) =
        (leftover.get("sessions"), leftover.get("begun"))
    else {
        return Ok(true);
    };
    let Ok(beginning) = <[u8; 12]>::try_from(bytes.as_slice()) else { return Ok(true) };
    let count = u32::try_from(begun).unwrap_or(u32::MAX).saturating_add(MARGIN);
    let line = ClientOrOwn::of(shared, &Session::default());
    let numbers: Vec<u32> = (0..count).collect();
    for chunk in numbers.chunks(SESSIONS_PER_COMMAND) {
        let mut sessions = ArrayWriter::new();
        for number in chunk {
            sessions.push(&Value::Document(session_document(&id(beginning, *number))));
        }
        line.run(Command::new("admin", "killSessions", Value::Array(sessions.finish()))).await?;
    }
    Ok(true)
}
