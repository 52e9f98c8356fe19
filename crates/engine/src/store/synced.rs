//! The number of the last batch that was synced, in a small file beside the store: if the store opens with fewer, its
//! journal lost a tail that had been acknowledged. The file itself needs no sync: an older number only proves less.

use document::{Code, Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const NAME: &str = "synced";

pub(crate) struct SyncedFile {
    file: File,
    last: u64,
}

impl SyncedFile {
    /// Opens or makes the file; an unreadable one counts as 0.
    pub(crate) fn open(folder: &Path) -> Result<SyncedFile> {
        let path = folder.join(NAME);
        let failed =
            |error: std::io::Error| Error::new(Code::InternalError, format!("cannot open {}: {error}", path.display()));
        let mut file = super::private::open_file(&path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let last = decode(&bytes).unwrap_or_default();
        Ok(SyncedFile { file, last })
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Notes that all batches up to `number` are synced.
    pub(crate) fn record(&mut self, number: u64) {
        if number == self.last {
            return;
        }
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(&encode(number)));
        match written {
            Ok(()) => self.last = number,
            Err(error) => tracing::warn!(%error, "the number of the last synced batch could not be noted"),
        }
    }
}

fn encode(number: u64) -> [u8; 16] {
    let number = number.to_be_bytes();
    let mut bytes = [0; 16];
    let (left, right) = bytes.split_at_mut(8);
    left.copy_from_slice(&number);
    right.copy_from_slice(&xxh3_64(&number).to_be_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<u64> {
    let (number, check) = bytes.split_at_checked(8)?;
    let (number, check): ([u8; 8], [u8; 8]) = (number.try_into().ok()?, check.try_into().ok()?);
    (xxh3_64(&number).to_be_bytes() == check).then_some(u64::from_be_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_remembers_the_number_and_distrusts_torn_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SyncedFile::open(folder.path()).unwrap();
        assert_eq!(file.last(), 0);
        file.record(7);
        file.record(300);
        assert_eq!(SyncedFile::open(folder.path()).unwrap().last(), 300);
        std::fs::write(folder.path().join(NAME), [1; 16]).unwrap();
        assert_eq!(SyncedFile::open(folder.path()).unwrap().last(), 0);
    }
}
