//! The files of the store's log of writes: how much they take, and emptying them.

use document::{Code, Error, Result};
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

/// What the log takes on the disk.
pub(crate) fn bytes(folder: &Path) -> u64 {
    let files = files(folder).unwrap_or_default();
    files.iter().filter_map(|file| file.metadata().ok()).map(|about| allocated(&about)).sum()
}

/// Empties the log. Its caller knows that all it says is in the tables, and that nothing more will be written to it: an empty
/// file is a log that says nothing, while a missing one would let the store count its batches from the beginning.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Error::new(Code::InternalError, format!("cannot empty the log: {error}"));
    for path in files(folder).map_err(failed)? {
        let file = File::options().write(true).open(path).map_err(failed)?;
        file.set_len(0).and_then(|()| file.sync_all()).map_err(failed)?;
    }
    Ok(())
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The files are made large before they are filled: only what is in them counts.
#[cfg(unix)]
fn allocated(about: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    about.blocks() * 512
}

#[cfg(not(unix))]
fn allocated(about: &Metadata) -> u64 {
    about.len()
}
