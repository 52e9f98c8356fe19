//! A shape as one number, made without allocating.

use super::walk::{Command, Statement, Visit, walk};
use foldhash::quality::FixedState;
use smallvec::SmallVec;
use std::hash::{BuildHasher, Hasher};

/// The same for commands of one shape, different for others as far as 64 bits tell. An entry counts once in its list,
/// however many branches of an `$or` have it.
pub fn fingerprint(db: &str, command: &Command<'_>, statement: &Statement<'_>) -> u64 {
    let mut hash = Fingerprint { hasher: FixedState::default().build_hasher(), seen: SmallVec::new() };
    walk(db, command, statement, &mut hash);
    hash.hasher.finish()
}

struct Fingerprint {
    hasher: <FixedState as BuildHasher>::Hasher,
    seen: SmallVec<[u64; 16]>,
}

impl Visit for Fingerprint {
    fn list(&mut self, name: &str) {
        self.seen.clear();
        self.hasher.write(name.as_bytes());
        self.hasher.write_u8(1);
    }

    fn document(&mut self, name: &str) {
        self.seen.clear();
        self.hasher.write(name.as_bytes());
        self.hasher.write_u8(2);
    }

    fn end(&mut self) {
        self.seen.clear();
        self.hasher.write_u8(3);
    }

    fn words(&mut self, name: &str, words: &[&str]) {
        let mut own = FixedState::default().build_hasher();
        own.write(name.as_bytes());
        for word in words {
            own.write_u8(4);
            own.write(word.as_bytes());
        }
        let hash = own.finish();
        if !self.seen.contains(&hash) {
            self.hasher.write_u64(hash);
            self.seen.push(hash);
        }
    }
}
