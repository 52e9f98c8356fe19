//! The declaration file as verbs read it: checked here first, so that findings name its lines.

use crate::report::{self, Failure};
use patterns::declare::{self, Declaration};
use std::path::Path;

/// A checked file: its text, which is sent on as it is, and what it says.
pub(crate) struct File {
    pub(crate) text: String,
    pub(crate) declaration: Declaration,
}

impl File {
    /// Reads and checks it; what is wrong is told on stderr, with lines.
    pub(crate) fn read(path: &Path) -> Result<File, Failure> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::new(format!("cannot read {file}: {error}")).hint("name the declaration with --declare FILE")
        })?;
        let checked = declare::from_yaml(&file, &text);
        match checked.declaration {
            Some(declaration) => Ok(File { text, declaration }),
            None => {
                report::note(crate::snippet::findings(&checked.findings, Some(&text), false).trim_end());
                Err(Failure::new(format!("{file} is not a valid declaration"))
                    .hint("`pleach check` says the same; nothing was changed"))
            }
        }
    }
}

/// The database that a verb is about: the one it names, or that of its declaration.
pub(crate) fn database(named: Option<&str>, declare: Option<&Path>) -> Result<Option<String>, Failure> {
    match (named, declare) {
        (Some(name), _) => Ok(Some(name.to_owned())),
        (None, Some(path)) => Ok(Some(File::read(path)?.declaration.database.to_string())),
        (None, None) => Ok(None),
    }
}
