//! The lock table: documents, unique index keys, fences, namespaces and sessions. First updater wins.
//!
//! A transaction never waits: what somebody else holds is a write conflict at once. A statement outside a transaction
//! waits in line, holding nothing else while it does, so there is no deadlock: whoever waits blocks nobody, and whoever
//! holds several locks took all but the first without waiting. A lock is handed to the next in line, not thrown to all.
//!
//! Keys are 128-bit hashes: a collision is one needless wait or conflict, never a missed one.

use document::backend::{FenceKey, Mode};
use document::op::{Context, Namespace};
use document::{Code, Error, Result};
use hashbrown::HashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// The holder of a lock: one statement or one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner(u64);

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LockKey(u128);

impl LockKey {
    /// A document, or an entry of a unique index up to its `_id`: they begin with different index ids.
    pub(crate) fn entry(space: u64, key: &[u8]) -> LockKey {
        LockKey(xxh3_128_with_seed(key, space.wrapping_mul(4)))
    }

    pub(crate) fn fence(key: &FenceKey) -> LockKey {
        let seed = xxh3_64_with_seed(key.db.as_bytes(), 1);
        LockKey(xxh3_128_with_seed(&key.key, seed))
    }

    /// The name of a collection that is made.
    pub(crate) fn namespace(ns: &Namespace) -> LockKey {
        LockKey(xxh3_128_with_seed(ns.to_string().as_bytes(), 2))
    }

    /// A session's retryable writes.
    pub(crate) fn session(id: &[u8; 16]) -> LockKey {
        LockKey(xxh3_128_with_seed(id, 3))
    }
}

/// What came of asking for a lock without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockAnswer {
    Granted,
    /// The owner had it already.
    Mine,
    /// Somebody else has it.
    Held,
}

/// The hash is in the key already.
#[derive(Default)]
struct KeyIsHash(u64);

impl Hasher for KeyIsHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64 ^ key as u64;
    }
}

type Table<V> = HashMap<LockKey, V, BuildHasherDefault<KeyIsHash>>;

struct Held {
    holders: SmallVec<[Owner; 1]>,
    mode: Mode,
    waiting: VecDeque<Waiter>,
}

struct Waiter {
    owner: Owner,
    mode: Mode,
    turn: oneshot::Sender<()>,
}

const SHARDS: usize = 64;

/// How often a waiter looks whether it should go on.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Whether the command may go on: not killed, not past its deadline.
pub(crate) fn check_patience(context: &Context) -> Result<()> {
    (context.env.interrupt)()?;
    match context.deadline {
        Some(deadline) if Instant::now() >= deadline => {
            Err(Error::new(Code::MaxTimeMSExpired, "operation exceeded time limit"))
        }
        _ => Ok(()),
    }
}

pub(crate) struct LockTable {
    shards: Vec<Mutex<Table<Held>>>,
    next_owner: AtomicU64,
    /// Fences of committed transactions, as the position from which snapshots know of them: shared, exclusive.
    fences: Mutex<Table<(u64, u64)>>,
}

impl Default for LockTable {
    fn default() -> Self {
        LockTable {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            next_owner: AtomicU64::new(1),
            fences: Mutex::default(),
        }
    }
}

impl LockTable {
    pub(crate) fn owner(&self) -> Owner {
        Owner(self.next_owner.fetch_add(1, Ordering::Relaxed))
    }

    fn shard(&self, key: LockKey) -> &Mutex<Table<Held>> {
        self.shards.get((key.0 >> 100) as usize % SHARDS).expect("the remainder is below the number of shards")
    }

    /// Takes the lock if nobody else has it.
    pub(crate) fn ask(&self, owner: Owner, key: LockKey, mode: Mode) -> LockAnswer {
        ask(&mut self.shard(key).lock(), owner, key, mode)
    }

    /// Takes the lock when its turn comes. The caller holds nothing that others wait for.
    pub(crate) async fn wait(&self, owner: Owner, key: LockKey, mode: Mode, patience: &Context) -> Result<()> {
        let receiver = {
            let mut shard = self.shard(key).lock();
            if ask(&mut shard, owner, key, mode) != LockAnswer::Held {
                return Ok(());
            }
            let (turn, receiver) = oneshot::channel();
            if let Some(held) = shard.get_mut(&key) {
                held.waiting.push_back(Waiter { owner, mode, turn });
            }
            receiver
        };
        let mut place = Place { table: self, owner, key, receiver, settled: false };
        loop {
            if let Ok(turn) = tokio::time::timeout(LOOK_UP, &mut place.receiver).await {
                place.settled = turn.is_ok();
                return Ok(());
            }
            check_patience(patience)?;
        }
    }

    pub(crate) fn release(&self, owner: Owner, keys: &[LockKey]) {
        for key in keys {
            release(&mut self.shard(*key).lock(), owner, *key);
        }
    }

    /// Whether a fence was passed by a transaction that a snapshot at `position` does not know of.
    pub(crate) fn fence_is_newer(&self, key: LockKey, mode: Mode, position: u64) -> bool {
        self.fences.lock().get(&key).is_some_and(|(shared, exclusive)| match mode {
            Mode::Shared => *exclusive > position,
            Mode::Exclusive => *exclusive > position || *shared > position,
        })
    }

    /// Remembers the fences of a transaction that is visible from `position` on.
    pub(crate) fn fences_committed(&self, fences: &[(LockKey, Mode)], position: u64) {
        let mut table = self.fences.lock();
        for (key, mode) in fences {
            let (shared, exclusive) = table.entry(*key).or_default();
            match mode {
                Mode::Shared => *shared = position,
                Mode::Exclusive => *exclusive = position,
            }
        }
    }

    /// Forgets fences that every open transaction knows of.
    pub(crate) fn forget_fences(&self, oldest_snapshot: u64) {
        let mut table = self.fences.lock();
        if !table.is_empty() {
            table.retain(|_, (shared, exclusive)| *shared > oldest_snapshot || *exclusive > oldest_snapshot);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

fn ask(shard: &mut Table<Held>, owner: Owner, key: LockKey, mode: Mode) -> LockAnswer {
    match shard.entry(key) {
        hashbrown::hash_map::Entry::Vacant(vacant) => {
            vacant.insert(Held { holders: SmallVec::from_slice(&[owner]), mode, waiting: VecDeque::new() });
            LockAnswer::Granted
        }
        hashbrown::hash_map::Entry::Occupied(mut occupied) => {
            let held = occupied.get_mut();
            if held.holders.contains(&owner) {
                if held.mode == Mode::Exclusive || mode == Mode::Shared {
                    return LockAnswer::Mine;
                }
                if held.holders.len() == 1 {
                    held.mode = Mode::Exclusive;
                    return LockAnswer::Mine;
                }
                return LockAnswer::Held;
            }
            if held.mode == Mode::Shared && mode == Mode::Shared && held.waiting.is_empty() {
                held.holders.push(owner);
                return LockAnswer::Granted;
            }
            LockAnswer::Held
        }
    }
}

fn release(shard: &mut Table<Held>, owner: Owner, key: LockKey) {
    let Some(held) = shard.get_mut(&key) else { return };
    held.holders.retain(|holder| *holder != owner);
    if !held.holders.is_empty() {
        return;
    }
    // The next in line; several at once if they share.
    while let Some(waiter) = held.waiting.front() {
        if !held.holders.is_empty() && (held.mode == Mode::Exclusive || waiter.mode == Mode::Exclusive) {
            break;
        }
        if let Some(waiter) = held.waiting.pop_front()
            && waiter.turn.send(()).is_ok()
        {
            held.mode = waiter.mode;
            held.holders.push(waiter.owner);
        }
    }
    if held.holders.is_empty() {
        shard.remove(&key);
    }
}

/// A place in line. Leaving it unsettled (deadline, dropped command) gives back a turn that came meanwhile.
struct Place<'a> {
    table: &'a LockTable,
    owner: Owner,
    key: LockKey,
    receiver: oneshot::Receiver<()>,
    settled: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let mut shard = self.table.shard(self.key).lock();
        if let Some(held) = shard.get_mut(&self.key) {
            held.waiting.retain(|waiter| waiter.owner != self.owner);
            if held.holders.contains(&self.owner) {
                release(&mut shard, self.owner, self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn context(deadline: Option<Instant>) -> Context {
        Context {
            env: document::Env::fixed(),
            read_concern: Default::default(),
            durability: Default::default(),
            deadline,
            sent: Default::default(),
        }
    }

    fn key(number: u8) -> LockKey {
        LockKey::entry(1, &[number])
    }

    #[test]
    fn shared_admits_shared_and_exclusive_admits_nobody() {
        let table = LockTable::default();
        let (a, b) = (table.owner(), table.owner());
        assert_eq!(table.ask(a, key(1), Mode::Shared), LockAnswer::Granted);
        assert_eq!(table.ask(b, key(1), Mode::Shared), LockAnswer::Granted);
        assert_eq!(table.ask(a, key(1), Mode::Exclusive), LockAnswer::Held);
        table.release(b, &[key(1)]);
        assert_eq!(table.ask(a, key(1), Mode::Exclusive), LockAnswer::Mine);
        assert_eq!(table.ask(b, key(1), Mode::Shared), LockAnswer::Held);
        assert_eq!(table.ask(b, key(2), Mode::Exclusive), LockAnswer::Granted);
        table.release(a, &[key(1)]);
        table.release(b, &[key(2)]);
        assert_eq!(table.len(), 0);
    }

    #[tokio::test]
    async fn those_who_wait_get_their_turn_in_order() {
        let table = Arc::new(LockTable::default());
        let first = table.owner();
        table.ask(first, key(1), Mode::Exclusive);
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for number in 0..5 {
            let (table, order) = (table.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let owner = table.owner();
                table.wait(owner, key(1), Mode::Exclusive, &context(None)).await.unwrap();
                order.lock().push(number);
                table.release(owner, &[key(1)]);
            }));
            tokio::task::yield_now().await;
        }
        table.release(first, &[key(1)]);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), [0, 1, 2, 3, 4]);
        assert_eq!(table.len(), 0);
    }

    #[tokio::test]
    async fn a_deadline_leaves_the_line() {
        let table = LockTable::default();
        let (a, b, c) = (table.owner(), table.owner(), table.owner());
        table.ask(a, key(1), Mode::Exclusive);
        let soon = Some(Instant::now() + Duration::from_millis(5));
        let error = table.wait(b, key(1), Mode::Exclusive, &context(soon)).await.unwrap_err();
        assert_eq!(error.code(), Code::MaxTimeMSExpired);
        table.release(a, &[key(1)]);
        assert_eq!(table.ask(c, key(1), Mode::Exclusive), LockAnswer::Granted);
    }

    #[test]
    fn fences_of_others_that_committed_since_the_snapshot_conflict() {
        let table = LockTable::default();
        let fence = LockKey::fence(&FenceKey::new("db", *b"x"));
        table.fences_committed(&[(fence, Mode::Shared)], 10);
        assert!(!table.fence_is_newer(fence, Mode::Shared, 5));
        assert!(table.fence_is_newer(fence, Mode::Exclusive, 5));
        assert!(!table.fence_is_newer(fence, Mode::Exclusive, 10));
        table.fences_committed(&[(fence, Mode::Exclusive)], 12);
        assert!(table.fence_is_newer(fence, Mode::Shared, 11));
        table.forget_fences(12);
        assert!(!table.fence_is_newer(fence, Mode::Shared, 11));
    }
}
