//! The declaration files as verbs read them: checked here first, so that findings name their lines.

use crate::input;
use crate::outcome::{self, Outcome};
use crate::report::{self, Code, Failure, Verdict};
use patterns::declare::{self, Checked, Declaration, DeclarationText, Part};
use std::path::{Path, PathBuf};

/// The checked files of one database: their texts, which are sent on as they are, and what they say together.
pub(crate) struct File {
    pub(crate) texts: Vec<String>,
    pub(crate) declaration: Declaration,
}

/// Files as they were read, with their names.
pub(crate) struct Texts(Vec<(String, String)>);

impl Texts {
    pub(crate) fn read(paths: &[PathBuf]) -> Result<Texts, Failure> {
        let read = |path: &PathBuf| {
            let file = path.display().to_string();
            let text = text(path)?;
            Ok((file, text))
        };
        paths.iter().map(read).collect::<Result<Vec<_>, Failure>>().map(Texts)
    }

    /// Texts that were read elsewhere, with their names.
    pub(crate) fn of(texts: Vec<(String, String)>) -> Texts {
        Texts(texts)
    }

    /// What each database's files say, with the names and texts of these files.
    pub(crate) fn checked(&self) -> Vec<(Vec<(&str, &str)>, Checked)> {
        let parts: Vec<Part<'_>> =
            self.0.iter().map(|(file, text)| Part { file, content: DeclarationText::Yaml(text) }).collect();
        let groups = declare::from_parts(&parts, None).into_iter();
        let of = |at: &usize| self.0.get(*at).map(|(file, text)| (&**file, &**text));
        groups.map(|group| (group.parts.iter().filter_map(of).collect(), group.checked)).collect()
    }

    /// The text of a file, by its name.
    pub(crate) fn named(&self, file: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == file).map(|(_, text)| &**text)
    }
}

impl File {
    /// Reads and checks one file.
    pub(crate) fn read(path: &Path) -> Result<File, Failure> {
        let mut all = File::read_all(&[path.to_owned()])?;
        all.pop().ok_or_else(|| Failure::new("no declaration is named").hint("name one with --declare FILE"))
    }

    /// Reads and checks files: those of one database are one declaration. What is wrong goes to stderr, with lines.
    pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<File>, Failure> {
        File::all_of(&Texts::read(paths)?)
    }

    /// Checks files that were read.
    pub(crate) fn all_of(texts: &Texts) -> Result<Vec<File>, Failure> {
        let mut all = Vec::new();
        for (files, checked) in texts.checked() {
            match checked.declaration {
                Some(declaration) => {
                    all.push(File { texts: files.iter().map(|(_, text)| (*text).to_owned()).collect(), declaration });
                }
                None => {
                    report::note(crate::snippet::findings(&checked.findings, texts, false).trim_end());
                    let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
                    let message = match names.as_slice() {
                        [file] => format!("{file} is not a valid declaration"),
                        files => format!("{} are not a valid declaration together", files.join(", ")),
                    };
                    let failure = Failure::of(Code::Word("declaration"), message);
                    let findings = checked.findings.iter().map(crate::snippet::json).collect();
                    return Err(Failure {
                        findings,
                        ..failure.hint("`pleach check` says the same; nothing was changed")
                    });
                }
            }
        }
        Ok(all)
    }
}

/// The text of a declaration, which has an upper limit.
fn text(path: &Path) -> Result<String, Failure> {
    input::read(path, declare::MAX_BYTES)
        .map_err(|failure| failure.hint("name the declaration with --declare FILE; it has at most 1 MB"))
}

/// Runs a verb once for each database that the files are for, and prints what it found; without files once for all. What fails
/// in one database is no reason to leave out the next.
pub(crate) fn each(
    paths: &[PathBuf],
    verb: impl Fn(Option<&File>) -> Result<Outcome, Failure>,
) -> Result<Verdict, Failure> {
    if paths.is_empty() {
        return verb(None).map(Outcome::print);
    }
    let files = File::read_all(paths)?;
    match files.as_slice() {
        [file] => verb(Some(file)).map(Outcome::print),
        files => Ok(outcome::print_all(files.iter().map(|file| (&*file.declaration.database, verb(Some(file)))))),
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
