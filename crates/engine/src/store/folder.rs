//! The data folder: one process at a time, and the error of the next one names it; what in it is Pleach's.

use super::{private, synced, temporary};
use crate::catalog::recover;
use document::{Code, Error, Result};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

const LOCK: &str = "pleach.lock";

/// Whether a file or folder of this name, in a data folder, is made by this crate.
fn is_ours(name: &str) -> bool {
    [LOCK, synced::NAME, recover::STORE].contains(&name) || name.starts_with(temporary::NAME)
}

/// Whether the folder holds a store, of whatever format.
pub fn is_store(folder: &Path) -> bool {
    let marker = folder.join(recover::STORE).join(super::key_value::MARKER);
    std::fs::symlink_metadata(marker).is_ok_and(|about| about.is_file())
}

/// Holds the folder until dropped (or the process ends, however it does).
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Makes the folder if needed and takes it. `address` is where this process listens.
    pub(crate) fn take(folder: &Path, address: Option<&str>) -> Result<FolderLock> {
        let failed = |what: &str, error: std::io::Error| {
            let code = if error.kind() == std::io::ErrorKind::StorageFull {
                Code::OutOfDiskSpace
            } else {
                Code::InternalError
            };
            Error::new(code, format!("cannot {what} the data folder {}: {error}", folder.display()))
        };
        private::narrow_umask();
        private::make_folder(folder).map_err(|error| failed("make", error))?;
        let path = folder.join(LOCK);
        let mut file = private::open_file(&path).map_err(|error| {
            let message = format!("cannot open the lock file {}: {error}", path.display());
            Error::new(Code::InternalError, message).with_hint("look what it is, or give another folder with --data")
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = private::read_file(&path).unwrap_or_default();
                let holder = if holder.trim().is_empty() { "another process" } else { holder.trim() };
                let message = format!("the data folder {} is in use by {holder}", folder.display());
                return Err(Error::new(Code::ObjectIsBusy, message)
                    .with_hint("stop that process, or give another folder with --data"));
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", error)),
        }
        private::tighten(folder, is_ours)?;
        let listening = address.map(|address| format!(" (listening on {address})")).unwrap_or_default();
        file.set_len(0)
            .and_then(|()| file.write_all(format!("process {}{listening}\n", std::process::id()).as_bytes()))
            .map_err(|error| failed("write to", error))?;
        Ok(FolderLock { _file: file })
    }
}

/// Where the process that holds the folder listens, if it said so.
pub fn holder_address(folder: &Path) -> Option<String> {
    let holder = private::read_file(&folder.join(LOCK)).ok()?;
    let (_, rest) = holder.split_once("(listening on ")?;
    rest.split_once(')').map(|(address, _)| address.to_owned())
}

/// How many bytes the disk under `folder` has in all, and left; `None` if it does not say.
pub(crate) fn disk_bytes(folder: &Path) -> Option<(u64, u64)> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some((disk.f_blocks.saturating_mul(disk.f_frsize), disk.f_bavail.saturating_mul(disk.f_frsize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path(), Some("127.0.0.1:27017")).unwrap();
        let error = FolderLock::take(folder.path(), None).unwrap_err();
        let holder = format!("in use by process {} (listening on 127.0.0.1:27017)", std::process::id());
        assert!(error.message().ends_with(&holder), "{error}");
        assert_eq!(holder_address(folder.path()).as_deref(), Some("127.0.0.1:27017"));
        drop(first);
        FolderLock::take(folder.path(), None).unwrap();
        assert!(disk_bytes(folder.path()).unwrap().1 > 0);
    }
}
