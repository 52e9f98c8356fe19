//! The declaration file with the rule in it: made and checked before anybody is asked, written at once or not at all.

use super::diff;
use super::finding::Finding;
use crate::declaration::{File, Texts};
use crate::report::{Code, Failure};
use patterns::declare;
use patterns::extend::{Declared, extend};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What will be done to the file.
pub(super) struct FileChange {
    pub(super) path: PathBuf,
    /// `None` if the file is not there yet.
    before: Option<String>,
    after: String,
    /// All files of the database, this one as it will be.
    pub(super) declared: File,
    /// The rules that come in or change.
    pub(super) rules: Vec<String>,
}

impl FileChange {
    /// Into that of the files that is for the finding's database; into the first that is not there yet otherwise.
    pub(super) fn plan(paths: &[PathBuf], finding: &Finding, changes: bool) -> Result<FileChange, Failure> {
        let mut texts: Vec<(String, Option<String>)> = Vec::new();
        for path in paths {
            texts.push((path.display().to_string(), read(path)?));
        }
        let is_of_database = |text: &str| database(text).as_deref() == Some(&*finding.database);
        let place = texts.iter().position(|(_, text)| text.as_deref().is_some_and(is_of_database));
        let place = place.or_else(|| texts.iter().position(|(_, text)| text.as_deref().is_none_or(says_nothing)));
        let at = place.unwrap_or(0);
        let (Some((name, before)), Some(path)) = (texts.get(at).cloned(), paths.get(at)) else {
            return Err(Failure::new("no declaration is named").hint("name one with --declare FILE"));
        };
        let declared = if changes { Declared::Change } else { Declared::Refuse };
        let extended = extend(&name, before.as_deref().unwrap_or_default(), &finding.declaration, declared)?;
        let after = extended.text;
        let all = texts.into_iter().enumerate().filter_map(|(number, (name, text))| match number == at {
            true => Some((name, after.clone())),
            false => text.map(|text| (name, text)),
        });
        let files = File::all_of(&Texts::of(all.collect()))?;
        let declared = files.into_iter().find(|file| *file.declaration.database == *finding.database);
        let declared = declared.ok_or_else(|| Failure::new(format!("{name} is for another database")))?;
        Ok(FileChange { path: path.clone(), before, after, declared, rules: extended.rules })
    }

    pub(super) fn is_new(&self) -> bool {
        self.before.is_none()
    }

    pub(super) fn changes_nothing(&self) -> bool {
        self.before.as_ref() == Some(&self.after)
    }

    pub(super) fn diff(&self) -> String {
        diff::unified(&self.path.display().to_string(), self.before.as_deref(), &self.after)
    }

    /// Writes the new text, if the file is still as it was read.
    pub(super) fn write(&self) -> Result<(), Failure> {
        if read(&self.path)? != self.before {
            return Err(Failure::of(Code::Word("file"), format!("{} was changed meanwhile", self.path.display()))
                .hint("nothing was changed by this run; run it again"));
        }
        replace(&self.path, &self.after)
    }

    /// Takes the new text back. What somebody else has written since stays.
    pub(super) fn take_back(&self) -> Result<(), Failure> {
        if read(&self.path)?.as_ref() != Some(&self.after) {
            return Err(Failure::of(Code::Word("file"), format!("{} was changed meanwhile", self.path.display()))
                .hint(format!("take the new rules out of it by hand: {}", self.rules.join(", "))));
        }
        match &self.before {
            Some(before) => replace(&self.path, before),
            None => std::fs::remove_file(&self.path).map_err(|error| cannot(&self.path, &error)),
        }
    }
}

/// The database that a text names. Whether it is valid otherwise does not matter yet.
fn database(text: &str) -> Option<String> {
    match declare::to_bson(text)?.get("database") {
        Some(document::Value::String(name)) => Some(name.as_str().to_owned()),
        _ => None,
    }
}

/// Whether there are only comments.
fn says_nothing(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => crate::input::read(path, declare::MAX_BYTES).map(Some),
    }
}

/// The file has the old text or the new one, whatever happens: the new one is written beside it and takes its name.
fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    // A link stays a link.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let result = (|| {
        let mut file = tempfile::Builder::new().prefix(".pleach-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        match std::fs::metadata(&path) {
            Ok(about) => file.as_file().set_permissions(about.permissions())?,
            // As any new file of this user.
            Err(_) => file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?,
        }
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        std::fs::File::open(folder)?.sync_all()
    })();
    result.map_err(|error| cannot(&path, &error))
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::of(Code::Word("file"), format!("cannot write {}: {error}", path.display()))
        .hint("nothing was changed; see that its folder is there and may be written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn finding(declaration: &str) -> Finding {
        let report = serde_json::json!({ "findings": [{
            "symptom": "second_read", "database": "shop", "collection": "orders", "field": "customerId", "severity": "act",
            "declaration": declaration,
        }] });
        super::super::finding::of_report("a.json", &report).unwrap().remove(0)
    }

    const RULE: &str = "database: shop\ncollections:\n  orders:\n    extended_reference:\n      customer: { from: customers, by: customerId, fields: [name] }\n";

    #[test]
    fn the_file_of_the_database_gets_the_rule_and_gives_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let (other, ours) = (folder.path().join("other.yaml"), folder.path().join("shop.yaml"));
        std::fs::write(&other, "database: other\ncollections: {}\n").unwrap();
        let text = "# ours\ndatabase: shop\ncollections:\n  products:\n    computed:\n      reviewCount: { count: reviews, by: productId }\n";
        std::fs::write(&ours, text).unwrap();
        std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o640)).unwrap();
        let link = folder.path().join("link.yaml");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        let change = FileChange::plan(&[other, link.clone()], &finding(RULE), false).unwrap();
        assert_eq!((change.path.clone(), change.rules.clone()), (link.clone(), vec!["orders.customer".to_owned()]));
        assert_eq!(change.declared.declaration.rules.len(), 2);
        assert_eq!(std::fs::read_to_string(&ours).unwrap(), text, "a plan writes nothing");
        change.write().unwrap();
        assert!(std::fs::read_to_string(&ours).unwrap().starts_with(text));
        assert_eq!(std::fs::metadata(&ours).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        change.take_back().unwrap();
        assert_eq!(std::fs::read_to_string(&ours).unwrap(), text);
        // Somebody else writes meanwhile.
        std::fs::write(&ours, format!("{text}# more\n")).unwrap();
        assert!(change.write().unwrap_err().message.contains("was changed meanwhile"));
        assert!(change.take_back().unwrap_err().message.contains("was changed meanwhile"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside them");
    }

    #[test]
    fn a_file_that_is_not_there_is_made_and_goes_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pleach.yaml");
        let change = FileChange::plan(std::slice::from_ref(&path), &finding(RULE), false).unwrap();
        assert!(change.is_new() && change.diff().contains("+database: shop"), "{}", change.diff());
        change.write().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), RULE);
        change.take_back().unwrap();
        assert!(!path.exists());
        let folder = folder.path().join("gone").join("pleach.yaml");
        let change = FileChange::plan(&[folder], &finding(RULE), false).unwrap();
        assert!(change.write().unwrap_err().message.contains("cannot write"));
    }
}
