//! Why `apply` or `repair --once` does not go on by itself, and what makes it.

use crate::life::apply::Consent;
use crate::print::in_shell;
use crate::rule::Rule;
use document::{Code, Doc, DocWriter, Error, Value};

/// What the person who applies must say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    /// `--overwrite`: existing values may go.
    Overwrite,
    /// `--create-missing`: the name is meant as it is written.
    CreateMissing,
    /// `--remove`: a rule may go.
    Remove,
    /// A command that they must run first.
    Command(Doc<'static>),
    /// Other data or another declaration; the text says which.
    OtherData(String),
    /// A command that holds a validator which they may not see.
    HiddenCommand,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) need: Need,
    /// A sentence without its full stop.
    pub(crate) reason: String,
}

impl Need {
    /// The field of the command; `None` if no flag helps.
    pub(crate) fn flag(&self) -> Option<&'static str> {
        match self {
            Need::Overwrite => Some("overwrite"),
            Need::CreateMissing => Some("create_missing"),
            Need::Remove => Some("remove"),
            Need::Command(_) | Need::OtherData(_) | Need::HiddenCommand => None,
        }
    }

    /// What to do next.
    fn hint(&self) -> String {
        match self {
            Need::Overwrite => "look at `pleach plan`, then say --overwrite (overwrite: true) to go on".to_owned(),
            Need::CreateMissing => {
                "correct the name, or say --create-missing (create_missing: true) if it is meant".to_owned()
            }
            Need::Remove => {
                "say that it is to go with --remove (remove: true), or put it back into the declaration".to_owned()
            }
            Need::Command(command) => {
                let command = in_shell(&Value::Document(command.borrow()));
                format!("run `db.runCommand({command})` first, or change the rule")
            }
            Need::OtherData(hint) => hint.clone(),
            Need::HiddenCommand => {
                "ask somebody with listCollections on the database for `pleach plan`, which prints the collMod that is \
                 needed, or change the rule"
                    .to_owned()
            }
        }
    }
}

impl Refusal {
    /// A rule is kept, and the declaration does not have it.
    pub(crate) fn kept(rule: &Rule) -> Refusal {
        let (db, name) = (&rule.host.db, &rule.name);
        let reason = format!("rule {name} is kept in {db} and the declaration does not have it");
        Refusal { need: Need::Remove, reason }
    }

    /// Whether the verb was told to go on.
    pub(crate) fn is_waived(&self, extent: Consent) -> bool {
        match self.need {
            Need::Overwrite => extent.overwrite,
            Need::CreateMissing => extent.create_missing,
            Need::Remove => extent.remove,
            Need::Command(_) | Need::OtherData(_) | Need::HiddenCommand => false,
        }
    }

    pub(crate) fn show(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        if let Some(flag) = self.need.flag() {
            doc.append("flag", &Value::from(flag));
        }
        doc.append("reason", &Value::from(&*self.reason));
        if let Need::Command(command) = &self.need {
            doc.append("command", &Value::Document(command.borrow()));
        }
        doc.finish()
    }

    /// All of them as one error of a verb that has "applied" or "repaired" nothing. `None` if there are none.
    pub(crate) fn error(done: &str, refusals: &[&Refusal]) -> Option<Error> {
        if refusals.is_empty() {
            return None;
        }
        let reasons: Vec<&str> = refusals.iter().map(|refusal| &*refusal.reason).collect();
        let mut hints: Vec<String> = Vec::new();
        for hint in refusals.iter().map(|refusal| refusal.need.hint()) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        let message = format!("nothing was {done}: {}", sentences(&reasons));
        let hints: Vec<&str> = hints.iter().map(|hint| &**hint).collect();
        Some(Error::new(Code::OperationFailed, message).with_hint(sentences(&hints)))
    }
}

/// One behind the other; a question mark ends a sentence too.
fn sentences(all: &[&str]) -> String {
    let mut text = String::new();
    for one in all {
        if !text.is_empty() {
            text.push_str(if text.ends_with('?') { " " } else { ". " });
        }
        text.push_str(one);
    }
    text
}
