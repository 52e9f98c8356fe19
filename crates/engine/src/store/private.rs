//! Files for the owner alone: folders are 0700 and files 0600 whatever the umask says, and no link is followed.
//!
//! The storage crate makes files of its own, at any time and without a mode, so the process takes all rights from others
//! by its umask. What an earlier version left wider is tightened when the folder is opened.

use document::{Code, Error, Result};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, Metadata};
use std::io::{Error as IoError, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What this process makes from now on is its user's alone.
pub(crate) fn narrow_umask() {
    let others = Mode::RWXG | Mode::RWXO;
    let before = rustix::process::umask(others);
    if !others.contains(before) {
        rustix::process::umask(others | before);
    }
}

/// Makes a folder and those above it.
pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Opens or makes a file to read and write. A link, or a second name of a file, is an error: what is written there would
/// change a file that belongs to somebody else.
pub(crate) fn open_file(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::from_raw_mode(FILE_MODE)) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::LOOP) => return Err(not_followed("a link")),
        Err(error) => return Err(error.into()),
    };
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(not_followed("not a file"));
    }
    if about.nlink() > 1 {
        return Err(not_followed("one of several names of a file"));
    }
    Ok(file)
}

/// As [`open_file`], only to read; a missing file is an error.
pub(crate) fn read_file(path: &Path) -> std::io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => std::io::read_to_string(file),
        false => Err(not_followed("not a file")),
    }
}

fn not_followed(what: &str) -> IoError {
    IoError::new(ErrorKind::InvalidInput, format!("it is {what}, and Pleach does not write through it"))
}

/// Checks what is in the folder under the names that Pleach uses, and takes the rights of others away. Files of other names
/// are left alone; the folder itself is tightened if it holds nothing else.
pub(crate) fn tighten(folder: &Path, ours: impl Fn(&str) -> bool) -> Result<()> {
    let mut shared = false;
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        match entry.file_name().to_str().is_some_and(&ours) {
            true => tighten_all(&entry.path())?,
            false => shared = true,
        }
    }
    if shared {
        return Ok(());
    }
    // The path itself may be a link: the person who started the process named it.
    let about = std::fs::metadata(folder).map_err(|error| unreadable(folder, &error))?;
    narrow(folder, &about, FOLDER_MODE);
    Ok(())
}

/// A file, or a folder and all that is in it.
fn tighten_all(path: &Path) -> Result<()> {
    let about = std::fs::symlink_metadata(path).map_err(|error| unreadable(path, &error))?;
    if about.is_file() && about.nlink() == 1 {
        narrow(path, &about, FILE_MODE);
        return Ok(());
    }
    if !about.is_dir() {
        let what = match about {
            about if about.is_file() => "one of several names of a file",
            about if about.is_symlink() => "a link",
            _ => "neither a file nor a folder",
        };
        let message = format!("{} is {what}: Pleach does not write through it", path.display());
        return Err(Error::new(Code::InternalError, message)
            .with_hint("remove it, or give a folder that holds only a store of Pleach with --data"));
    }
    narrow(path, &about, FOLDER_MODE);
    for entry in std::fs::read_dir(path).map_err(|error| unreadable(path, &error))? {
        tighten_all(&entry.map_err(|error| unreadable(path, &error))?.path())?;
    }
    Ok(())
}

/// Takes the rights away that are not in `mode`. A process that is not the owner cannot: the log says so, and the data is served.
fn narrow(path: &Path, about: &Metadata, mode: u32) {
    let has = about.permissions().mode() & 0o7777;
    if has & !mode == 0 {
        return;
    }
    if let Err(error) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(has & mode)) {
        tracing::warn!(path = %path.display(), %error, "others may read this, and its mode cannot be changed");
    }
}

fn unreadable(path: &Path, error: &IoError) -> Error {
    Error::new(Code::InternalError, format!("cannot look at {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_was_wide_is_narrow_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, file) = (folder.path().join("store/deep"), folder.path().join("store/deep/table"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(&file, "x").unwrap();
        for (path, wide) in [(folder.path(), 0o755), (inner.as_path(), 0o777), (file.as_path(), 0o664)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(wide)).unwrap();
        }
        tighten(folder.path(), |name| name == "store").unwrap();
        assert_eq!((mode(folder.path()), mode(&inner), mode(&file)), (0o700, 0o700, 0o600));
    }

    #[test]
    fn a_folder_that_holds_more_than_ours_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("letters");
        std::fs::write(&other, "x").unwrap();
        for (path, wide) in [(folder.path(), 0o755), (other.as_path(), 0o644)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(wide)).unwrap();
        }
        tighten(folder.path(), |name| name == "store").unwrap();
        assert_eq!((mode(folder.path()), mode(&other)), (0o755, 0o644));
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (letters, link, second) =
            (folder.path().join("letters"), folder.path().join("link"), folder.path().join("second"));
        std::fs::write(&letters, "dear").unwrap();
        std::fs::set_permissions(&letters, std::fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&letters, &link).unwrap();
        std::fs::hard_link(&letters, &second).unwrap();
        for path in [&link, &second] {
            let error = open_file(path).unwrap_err();
            assert!(error.to_string().contains("does not write through it"), "{error}");
        }
        assert!(read_file(&link).is_err());
        for (name, what) in [("link", "is a link"), ("second", "is one of several names of a file")] {
            let error = tighten(folder.path(), |other| other == name).unwrap_err();
            assert!(error.message().contains(what), "{error}");
        }
        assert_eq!(mode(&letters) & 0o077, 0o044);
        assert_eq!(std::fs::read_to_string(&letters).unwrap(), "dear");
    }
}
