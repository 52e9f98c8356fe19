//! New ids: ObjectIds, cursor ids, session ids; and the randomness that programs ask for.

use rand::RngExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// An ObjectId: seconds, five random bytes of this process, a counter that starts at random.
pub fn object_id() -> [u8; 12] {
    static PROCESS: OnceLock<[u8; 5]> = OnceLock::new();
    static COUNTER: OnceLock<AtomicU32> = OnceLock::new();
    let seconds = u32::try_from(milliseconds() / 1000).unwrap_or(u32::MAX);
    let process = PROCESS.get_or_init(|| rand::rng().random());
    let counter = COUNTER.get_or_init(|| AtomicU32::new(rand::rng().random())).fetch_add(1, Ordering::Relaxed);
    let mut id = [0; 12];
    let (time, rest) = id.split_at_mut(4);
    let (middle, last) = rest.split_at_mut(5);
    time.copy_from_slice(&seconds.to_be_bytes());
    middle.copy_from_slice(process);
    let [_, high, mid, low] = counter.to_be_bytes();
    last.copy_from_slice(&[high, mid, low]);
    id
}

/// The top byte of the ids of cursors that are opened here (SEMANTICS R6). It makes them negative, and those of a MongoDB are positive:
/// the two are never the same.
const CURSOR_BYTE: u8 = 0xB5;

/// A cursor id: 56 random bits under the reserved byte.
pub(crate) fn cursor_id() -> i64 {
    let [_, random @ ..]: [u8; 8] = rand::rng().random();
    let [a, b, c, d, e, f, g] = random;
    i64::from_be_bytes([CURSOR_BYTE, a, b, c, d, e, f, g])
}

/// Whether a cursor id may be one that was made here. If not, the cursor is MongoDB's.
pub(crate) fn is_own_cursor_id(id: i64) -> bool {
    id.to_be_bytes().first() == Some(&CURSOR_BYTE)
}

/// A random UUID (version 4).
pub(crate) fn uuid() -> [u8; 16] {
    let mut id: [u8; 16] = rand::rng().random();
    if let Some(byte) = id.get_mut(6) {
        *byte = (*byte & 0x0F) | 0x40;
    }
    if let Some(byte) = id.get_mut(8) {
        *byte = (*byte & 0x3F) | 0x80;
    }
    id
}

/// `$rand` and `$sample`: uniform in [0, 1).
pub fn fraction() -> f64 {
    rand::rng().random()
}

/// Now, in milliseconds since 1970.
pub fn milliseconds() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_have_their_form() {
        let (first, second) = (object_id(), object_id());
        assert_ne!(first, second);
        assert_eq!(first[4..9], second[4..9]);
        assert_ne!(cursor_id(), cursor_id());
        let id = uuid();
        assert_eq!((id[6] >> 4, id[8] >> 6), (4, 2));
        assert!((0.0..1.0).contains(&fraction()));
    }

    #[test]
    fn cursor_ids_are_never_those_of_a_mongodb() {
        for _ in 0..1_000 {
            let id = cursor_id();
            assert!(is_own_cursor_id(id) && id < 0, "{id}");
        }
        // A MongoDB's are the absolute values of random numbers.
        for id in [1, 0x35FF_FFFF_FFFF_FFFF, i64::MAX, 0, -1, i64::MIN] {
            assert!(!is_own_cursor_id(id), "{id}");
        }
    }
}
