//! A power cut, afterwards: every write that no later sync of the same file covers is taken back.

use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// How many bytes were taken back: written bytes that were not synced become zeros. What they overwrote is not brought back;
/// the store only appends.
pub(crate) fn take_back(folder: &Path, log: &Path) -> Result<u64> {
    let bytes = std::fs::read(log).context("reading the log of writes")?;
    // Writes since the last sync, by inode.
    let mut pending: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    for record in bytes.chunks_exact(32) {
        let number = |at: usize| record.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
        let (kind, inode, offset, length) = (number(0), number(8), number(16), number(24));
        let entry = pending.entry(inode).or_default();
        match kind {
            WRITE => entry.push((offset, length)),
            SYNC => entry.clear(),
            _ => {}
        }
    }
    let mut taken = 0;
    for path in files(folder)? {
        let about = std::fs::metadata(&path)?;
        let Some(writes) = pending.get(&about.ino()) else { continue };
        if !writes.is_empty() {
            taken += cut(&OpenOptions::new().write(true).open(&path)?, about.len(), writes)?;
        }
    }
    Ok(taken)
}

fn cut(file: &File, length: u64, writes: &[(u64, u64)]) -> Result<u64> {
    let mut taken = 0;
    for (offset, count) in writes {
        let end = (offset + count).min(length);
        let mut at = *offset;
        while at < end {
            let step = (end - at).min(1 << 16);
            file.write_all_at(&vec![0; usize::try_from(step)?], at)?;
            at += step;
            taken += step;
        }
    }
    Ok(taken)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}
