//! A large scan read ahead by a thread of its own while a stage that wants all of it works on what came before.

use document::pipeline::{Rows, Stream};
use document::{Doc, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};

/// A scan is worth a thread behind so many documents.
const LARGE: usize = 4_096;
/// So many documents, or about so many bytes of them, are handed over at once …
const BATCH: usize = 512;
const BATCH_BYTES: usize = 256 << 10;
/// … and so many batches may wait.
const WAITING: usize = 4;

/// With as many threads as there are cores, more would only take turns.
static CORES: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// For stages that drain their input at once: nobody pauses in the middle of it.
pub(super) fn read_ahead(rows: Rows) -> Rows {
    Box::new(Ahead { state: State::Here(rows), seen: 0 })
}

struct Ahead {
    state: State,
    seen: usize,
}

enum State {
    Here(Rows),
    There { batches: Receiver<Result<Vec<Doc<'static>>>>, batch: std::vec::IntoIter<Doc<'static>> },
    Ended,
}

impl Stream for Ahead {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        loop {
            match &mut self.state {
                State::Here(rows) => {
                    self.seen += 1;
                    if !self.seen.is_multiple_of(LARGE) {
                        return rows.next();
                    }
                    let State::Here(rows) = std::mem::replace(&mut self.state, State::Ended) else { return Ok(None) };
                    self.state = start(rows);
                    if let State::Here(rows) = &mut self.state {
                        return rows.next();
                    }
                }
                State::There { batches, batch } => {
                    if let Some(doc) = batch.next() {
                        return Ok(Some(doc));
                    }
                    match batches.recv() {
                        Ok(Ok(next)) => *batch = next.into_iter(),
                        Ok(Err(error)) => {
                            self.state = State::Ended;
                            return Err(error);
                        }
                        Err(_) => self.state = State::Ended,
                    }
                }
                State::Ended => return Ok(None),
            }
        }
    }

    fn pause(&mut self) {
        if let State::Here(rows) = &mut self.state {
            rows.pause();
        }
    }
}

/// Lets a thread read on, if one is to be had.
fn start(rows: Rows) -> State {
    let running = Running::new();
    if running.is_one_too_many() {
        return State::Here(rows);
    }
    let (sender, batches) = sync_channel(WAITING);
    let slot = Arc::new(Mutex::new(Some(rows)));
    let taken = slot.clone();
    let spawned = std::thread::Builder::new().name("read-ahead".to_owned()).spawn(move || {
        let _running = running;
        if let Some(rows) = taken.lock().take() {
            read(rows, &sender);
        }
    });
    let left = if spawned.is_ok() { None } else { slot.lock().take() };
    match left {
        Some(rows) => State::Here(rows),
        None => State::There { batches, batch: Vec::new().into_iter() },
    }
}

/// Reads until the end, an error, or until nobody wants more.
fn read(mut rows: Rows, sender: &SyncSender<Result<Vec<Doc<'static>>>>) {
    loop {
        let (batch, end) = next_batch(&mut *rows);
        if sender.send(Ok(batch)).is_err() || matches!(end, Some(Ok(()))) {
            return rows.pause();
        }
        if let Some(Err(error)) = end {
            return drop(sender.send(Err(error)));
        }
    }
}

/// Some documents; and how it ended, if it did.
fn next_batch(rows: &mut dyn Stream) -> (Vec<Doc<'static>>, Option<Result<()>>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut bytes = 0;
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        match rows.next() {
            Ok(Some(doc)) => {
                bytes += doc.as_bytes().len();
                batch.push(doc);
            }
            Ok(None) => return (batch, Some(Ok(()))),
            Err(error) => return (batch, Some(Err(error))),
        }
    }
    (batch, None)
}

/// Counts a thread as long as it lives.
struct Running(usize);

impl Running {
    fn new() -> Running {
        Running(RUNNING.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn is_one_too_many(&self) -> bool {
        self.0 >= *CORES
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use document::{Code, DocWriter, Error, Value};

    struct Numbers {
        next: i64,
        end: i64,
        fails: bool,
    }

    impl Stream for Numbers {
        fn next(&mut self) -> Result<Option<Doc<'static>>> {
            if self.next == self.end {
                return if self.fails { Err(Error::new(Code::BadValue, "the end")) } else { Ok(None) };
            }
            let mut writer = DocWriter::new();
            writer.append("n", &Value::Int64(self.next));
            self.next += 1;
            Ok(Some(writer.finish()))
        }

        fn pause(&mut self) {}
    }

    #[test]
    fn every_document_comes_once_and_in_order_and_errors_come_behind_them() {
        for (end, fails) in [(0, false), (10, true), (4_095, false), (4_096, true), (30_000, false), (30_001, true)] {
            let mut rows = read_ahead(Box::new(Numbers { next: 0, end, fails }));
            for number in 0..end {
                assert_eq!(rows.next().unwrap().unwrap().get("n"), Some(Value::Int64(number)), "{end}");
            }
            assert_eq!(rows.next().is_err(), fails, "{end}");
        }
        // A reader that ends leaves no thread behind.
        let mut rows = read_ahead(Box::new(Numbers { next: 0, end: i64::MAX, fails: false }));
        for _ in 0..10_000 {
            rows.next().unwrap();
        }
        drop(rows);
        while RUNNING.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
