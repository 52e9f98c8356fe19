//! `pleach versions`: what is about the versions of documents. `diff` proposes the steps from one version to the next.

use super::{Verb, parsed};
use crate::options::OutputFormat;
use crate::plain;
use crate::report::{self, Code, Failure, Verdict};
use crate::sample::{self, Version};
use crate::table::folded;
use clap::{CommandFactory, Parser, Subcommand};
use patterns::propose::{self, About, Proposal, Trial};
use serde_json::{Value, json};
use std::path::PathBuf;

pub(super) const VERB: Verb =
    Verb { name: "versions", command: Versions::command, run: |arguments| run(&parsed(arguments)?) };

/// Propose the steps from one version of documents to the next
#[derive(Debug, Parser)]
struct Versions {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Diff(Diff),
}

/// Propose steps from two declarations or from two samples of documents
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Diff {
    /// The older version: a declaration, a sample or a JSON Schema; `-` is stdin
    older: PathBuf,

    /// The newer version
    newer: PathBuf,

    /// The database to declare, if no declaration says it
    #[arg(long, value_name = "NAME", default_value = "shop")]
    db: String,

    /// The collection; of samples, otherwise the name of the newer file
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,

    /// The field that holds the version's number
    #[arg(long, value_name = "NAME", default_value = "schemaVersion")]
    field: String,

    #[command(flatten)]
    output: OutputFormat,
}

const EXAMPLES: &str = "\
Prints a declaration that `pleach check` accepts. Comments say which steps the
same documents in both samples show, which are guesses, and what a step loses.
A sample is Extended JSON: one document on each line, or an array of them.
Two samples of the same documents (equal `_id`) give the best evidence.
Exit code: 0 all differences have steps, 1 none is proposed or some are left.

Examples:
  pleach versions diff pleach.old.yaml pleach.yaml
      by the JSON Schemas of collections that both declare polymorphic
  pleach versions diff users.old.json users.json > versions.yaml
      by two samples, such as `mongoexport` writes
  pleach versions diff old.json new.json --db shop --collection users --json
      for a program";

fn run(versions: &Versions) -> Result<Verdict, Failure> {
    match &versions.what {
        What::Diff(diff) => diff.run(),
    }
}

impl Diff {
    fn run(&self) -> Result<Verdict, Failure> {
        let (old, new) = (sample::read(&self.older, &self.field)?, sample::read(&self.newer, &self.field)?);
        let (proposals, about) = match (old, new) {
            (Version::Declaration(old), Version::Declaration(new)) => {
                let all = propose::from_declarations(&old, &new, &self.field)?.into_iter();
                let is_named = |(proposal, _): &(Proposal, About)| {
                    self.collection.as_ref().is_none_or(|name| *name == proposal.collection)
                };
                let all: (Vec<Proposal>, Vec<About>) = all.filter(is_named).unzip();
                if let (true, Some(name)) = (all.0.is_empty(), &self.collection) {
                    let message = format!("the declarations do not both declare `{name}` polymorphic");
                    return Err(Failure::of(Code::Word("usage"), message).hint("leave out --collection to see all"));
                }
                all
            }
            (Version::Evidence(old), Version::Evidence(new)) => {
                let collection = self.named_collection();
                propose::namespace(&self.db, &collection)?;
                let about = About::new(&self.db, &self.field);
                (vec![propose::from_evidence(&old, &new, &collection, &about)?], vec![about])
            }
            _ => {
                let message = "one of the files is a declaration and the other is none";
                return Err(Failure::of(Code::Word("usage"), message)
                    .hint("compare two declarations, or two samples or JSON Schemas"));
            }
        };
        let declaration = propose::declaration(&proposals, &about);
        match self.output.json {
            true => report::json(&to_json(&declaration, &proposals)),
            false => report::text(&render(&declaration, &proposals)),
        }
        let is_whole = |proposal: &Proposal| {
            let is_left = proposal.notes.iter().any(|note| note.is_difference);
            !is_left && proposal.trial.as_ref().is_none_or(|trial| trial.same_shape == trial.documents)
        };
        let is_fine = !declaration.is_empty() && proposals.iter().all(is_whole);
        Ok(if is_fine { Verdict::Fine } else { Verdict::Findings })
    }

    /// As it is named, or as the newer file is: `users` of `backup/users.new.json`.
    fn named_collection(&self) -> String {
        let of_file = || {
            let name = self.newer.file_name()?.to_str()?.split('.').next()?.to_owned();
            Some(name).filter(|name| !name.is_empty() && name != "-")
        };
        self.collection.clone().or_else(of_file).unwrap_or_else(|| "documents".to_owned())
    }
}

fn render(declaration: &str, proposals: &[Proposal]) -> String {
    let mut out = declaration.to_owned();
    if declaration.is_empty() {
        out.push_str("# nothing to propose: no step makes documents of one version those of the other\n");
    }
    for proposal in proposals {
        for note in &proposal.notes {
            let word = if note.is_difference { "left: " } else { "" };
            out.push_str(&comment(&format!("{}: {word}{}", plain::line(&proposal.collection), note.text)));
        }
        if let Some(trial) = &proposal.trial {
            out.push_str(&comment(&summary(trial)));
        }
    }
    out
}

fn summary(trial: &Trial) -> String {
    let Trial { documents, same_shape, in_both, equal, example } = trial;
    let mut text = format!("tried: {same_shape} of {documents} older documents get the shape of the newer ones");
    if *in_both > 0 {
        text.push_str(&format!("; {equal} of the {in_both} that both samples have are equal then"));
    }
    if let Some(example) = example {
        text.push_str(&format!("; not so {example}"));
    }
    text
}

/// Every line is a comment: folded ones too.
fn comment(text: &str) -> String {
    folded("# ", text).lines().map(|line| format!("# {}\n", line.trim_start_matches(['#', ' ']))).collect()
}

fn to_json(declaration: &str, proposals: &[Proposal]) -> Value {
    let proposals = proposals.iter().map(|proposal| {
        let steps = proposal.steps.iter().map(|step| {
            json!({
                "step": bson::Document::try_from(&step.declared)
                    .map_or(Value::Null, |step| bson::Bson::Document(step).into_relaxed_extjson()),
                "sure": step.is_sure,
                "because": step.because,
                "losses": step.losses,
            })
        });
        let notes = |is_difference: bool| {
            let notes = proposal.notes.iter().filter(move |note| note.is_difference == is_difference);
            notes.map(|note| note.text.clone()).collect::<Vec<_>>()
        };
        let trial = proposal.trial.as_ref().map(|trial| {
            json!({
                "documents": trial.documents,
                "same_shape": trial.same_shape,
                "in_both": trial.in_both,
                "equal": trial.equal,
                "example": trial.example,
            })
        });
        json!({
            "collection": proposal.collection,
            "steps": steps.collect::<Vec<_>>(),
            "left": notes(true),
            "notes": notes(false),
            "tried": trial,
        })
    });
    json!({ "declaration": declaration, "proposals": proposals.collect::<Vec<_>>() })
}
