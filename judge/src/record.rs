//! Recorded answers: what the judge said to each case, kept so that comparison means something without it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bson::{Bson, Document, doc};

use crate::json;
use crate::script::{Case, Script};

/// The answers to one script, by case name.
#[derive(Default)]
pub struct Recorded {
    answers: HashMap<String, Answer>,
}

struct Answer {
    digest: String,
    replies: Vec<Document>,
}

impl Recorded {
    /// Reads the answers to a script; none if the file is not there.
    pub fn load(root: &Path, script: &str) -> Result<Self> {
        let file = path(root, script);
        if !file.exists() {
            return Ok(Self::default());
        }
        let read = || -> Result<Self> {
            let text = std::fs::read_to_string(&file)?;
            let mut answers = HashMap::new();
            for (name, answer) in json::parse(&text)? {
                let answer = answer.as_document().context("an answer is not a document")?;
                let replies = answer.get_array("replies")?.iter();
                let replies = replies.map(|reply| reply.as_document().cloned().context("a reply is not a document"));
                let digest = answer.get_str("of")?.to_owned();
                answers.insert(name, Answer { digest, replies: replies.collect::<Result<_>>()? });
            }
            Ok(Self { answers })
        };
        read().with_context(|| format!("in {}", file.display()))
    }

    /// The replies to a case, unless they are missing or answer something else.
    pub fn replies(&self, case: &Case) -> Result<&[Document]> {
        let answer = self.answers.get(&case.name).context("no recorded answer: record it")?;
        anyhow::ensure!(answer.digest == case.digest, "the case has changed since it was recorded: record it again");
        Ok(&answer.replies)
    }
}

/// Writes the answers to a whole script, in the order of its cases.
pub fn save(root: &Path, script: &Script, replies: Vec<Vec<Document>>) -> Result<()> {
    let mut all = Document::new();
    for (case, replies) in script.cases.iter().zip(replies) {
        let replies: Vec<Bson> = replies.into_iter().map(Bson::from).collect();
        all.insert(&case.name, doc! { "of": &case.digest, "replies": replies });
    }
    let file = path(root, &script.name);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&file, json::pretty(&all) + "\n").with_context(|| format!("cannot write {}", file.display()))
}

fn path(root: &Path, script: &str) -> PathBuf {
    root.join(script).with_extension("json")
}
