//! Files that a person names: read up to a limit, and only what ends by itself.

use crate::report::{Code, Failure};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// A connection string is far shorter.
const MOST_OF_A_CONNECTION_STRING: usize = 64 << 10;

/// The text of a file, or of stdin if it is called `-`. A pipe will do; a device or a folder will not.
pub(crate) fn read(path: &Path, most: usize) -> Result<String, Failure> {
    let shown = path.display();
    let cannot = |why: String| Failure::of(Code::Word("file"), format!("cannot read {shown}: {why}"));
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        // Before it is opened: to open a device can have an effect.
        let kind = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.file_type();
        if kind.is_dir() {
            return Err(cannot("it is a folder".to_owned()));
        }
        if !kind.is_file() && !kind.is_fifo() {
            return Err(cannot("it is neither a file nor a pipe".to_owned()));
        }
        Box::new(File::open(path).map_err(|error| cannot(error.to_string()))?)
    };
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    input.take(limit).read_to_end(&mut bytes).map_err(|error| cannot(error.to_string()))?;
    if bytes.len() > most {
        return Err(cannot(format!("it is larger than {}", size(most))));
    }
    String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".to_owned()))
}

fn size(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KB", bytes >> 10),
        megabytes => format!("{megabytes} MB"),
    }
}

/// The connection string that a file holds, alone on a line. The file should be its owner's only.
pub(crate) fn connection_string(path: &Path) -> Result<String, Failure> {
    const HINT: &str = "the file holds one line: mongodb://user:password@host:27017/?replicaSet=rs";
    let text = read(path, MOST_OF_A_CONNECTION_STRING).map_err(|failure| failure.hint(HINT))?;
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(uri), None) = (lines.next(), lines.next()) else {
        return Err(Failure::of(Code::Word("file"), format!("{} does not hold one connection string", path.display()))
            .hint(HINT));
    };
    if let Ok(about) = std::fs::metadata(path)
        && about.is_file()
        && about.mode() & 0o077 != 0
        && uri.contains('@')
    {
        crate::report::note(&format!(
            "warning: others may read {0}, which holds a password; `chmod 600 {0}` keeps it yours",
            crate::plain::line(&path.display().to_string())
        ));
    }
    Ok(uri.to_owned())
}
