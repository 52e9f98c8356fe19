//! Temporary files for what does not fit in memory. They have no name, so they are gone with the cursor or the process, even
//! a killed one.

use crate::engine::Inner;
use crate::transaction::commit::Core;
use document::spill::{Spill, SpillFile};
use document::{Code, Error, Result};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// MongoDB's limit for a blocking stage.
pub(crate) const STAGE_MEMORY: usize = 100 << 20;

/// After so many bytes it is asked again whether the disk has room.
const LOOK_EVERY: usize = 1 << 20;
pub(crate) const NAME: &str = "temporary-";

/// Gives files beside the data, as long as the store itself has room enough.
pub(crate) struct TemporaryFiles {
    folder: PathBuf,
    core: Arc<Core>,
}

impl TemporaryFiles {
    pub(crate) fn beside(inner: &Inner) -> TemporaryFiles {
        TemporaryFiles { folder: inner.path.clone(), core: inner.core.clone() }
    }
}

/// Removes what a process left that was killed between making a file and taking its name away.
pub(crate) fn remove_remains(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(NAME) {
            let _removed_next_time = std::fs::remove_file(entry.path());
        }
    }
}

fn check_disk_space(core: &Core) -> Result<()> {
    core.disk.look(&core.store, 0).refusal().map_or(Ok(()), Err)
}

impl Spill for TemporaryFiles {
    fn memory(&self) -> usize {
        STAGE_MEMORY
    }

    fn file(&self) -> Result<Box<dyn SpillFile>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        check_disk_space(&self.core)?;
        let path = self.folder.join(format!("{NAME}{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        // A new file: whatever has the name already, a link too, is an error.
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        std::fs::remove_file(&path).map_err(failed)?;
        let state = State::Written(BufWriter::with_capacity(1 << 16, file));
        Ok(Box::new(TemporaryFile { state, core: self.core.clone(), unchecked: 0 }))
    }
}

/// Per part: its length (4 bytes), its bytes.
struct TemporaryFile {
    state: State,
    core: Arc<Core>,
    /// Bytes written since the room was looked at.
    unchecked: usize,
}

enum State {
    Written(BufWriter<File>),
    Read(BufReader<File>),
    /// An error left it so.
    Gone,
}

impl SpillFile for TemporaryFile {
    fn append(&mut self, part: &[u8]) -> Result<()> {
        let State::Written(file) = &mut self.state else { return Err(misused()) };
        self.unchecked += part.len();
        if self.unchecked > LOOK_EVERY {
            self.unchecked = 0;
            check_disk_space(&self.core)?;
        }
        let length = u32::try_from(part.len()).map_err(|_| misused())?.to_le_bytes();
        file.write_all(&length).and_then(|()| file.write_all(part)).map_err(failed)
    }

    fn rewind(&mut self) -> Result<()> {
        let State::Written(file) = std::mem::replace(&mut self.state, State::Gone) else { return Err(misused()) };
        let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        self.state = State::Read(BufReader::with_capacity(1 << 16, file));
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let State::Read(file) = &mut self.state else { return Err(misused()) };
        let mut length = [0; 4];
        match file.read_exact(&mut length) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other.map_err(failed)?,
        }
        let mut bytes = vec![0; usize::try_from(u32::from_le_bytes(length)).unwrap_or_default()];
        file.read_exact(&mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }
}

fn failed(error: std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::StorageFull => Code::OutOfDiskSpace,
        _ => Code::InternalError,
    };
    Error::new(code, format!("a query could not use its temporary file: {error}")).with_source(error)
}

fn misused() -> Error {
    Error::new(Code::InternalError, "a temporary file was used out of turn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let engine = crate::Engine::open(&folder.path().join("data"), crate::Options::default()).unwrap();
        let files = TemporaryFiles { folder: folder.path().to_owned(), core: engine.inner.core.clone() };
        std::fs::write(folder.path().join("temporary-9"), "left").unwrap();
        remove_remains(folder.path());
        let mut file = files.file().unwrap();
        let parts: [&[u8]; 3] = [b"one", b"", &[7; 200_000]];
        parts.iter().for_each(|part| file.append(part).unwrap());
        file.rewind().unwrap();
        for part in parts {
            assert_eq!(file.next().unwrap().as_deref(), Some(part));
        }
        assert_eq!(file.next().unwrap(), None);
        assert!(file.append(b"more").is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the data alone");
    }
}
