//! `pleach versions diff`: steps that lead from the documents of one version to those of the next, with the evidence for each.
//!
//! Each step that is found is taken at once: what is looked for next is what is then still different. At the end the declaration that
//! is printed is read again, and the sample goes through its lens ([`Trial`]).

mod evidence;
mod names;
mod remaining;
mod renames_and_nests;
mod schema;
mod search;
mod splits_and_joins;
#[cfg(test)]
mod tests;
mod trial;
mod written;
mod yaml;

pub use evidence::Evidence;
pub use trial::Trial;

use crate::declare::{self, Declaration};
use document::op::Namespace;
use document::{Code, Doc, Error, Result, Value};
use search::Search;

/// What is proposed for one collection.
#[derive(Debug)]
pub struct Proposal {
    pub collection: String,
    pub steps: Vec<ProposedStep>,
    /// Differences for which no step was found, and fields that need none.
    pub notes: Vec<ProposalNote>,
    /// What the steps make of the older sample; `None` if there is none.
    pub trial: Option<Trial>,
}

/// One step, and why.
#[derive(Debug)]
pub struct ProposedStep {
    /// As it is declared: `{ rename: { phone: phoneNumber } }`.
    pub declared: Doc<'static>,
    /// Whether the same documents before and after show it.
    pub is_sure: bool,
    pub because: String,
    /// What no way leads back to.
    pub losses: Vec<String>,
}

#[derive(Debug)]
pub struct ProposalNote {
    pub text: String,
    /// Whether it is about a difference that is left.
    pub is_difference: bool,
}

/// Where versions are declared.
#[derive(Clone, Debug)]
pub struct About {
    pub database: String,
    /// The field that holds the number.
    pub number: String,
    /// The steps to the older version, as they are declared: they stay.
    pub before: Vec<Value<'static>>,
}

impl About {
    pub fn new(database: &str, number: &str) -> About {
        About { database: database.to_owned(), number: number.to_owned(), before: Vec::new() }
    }

    /// With the versions that a declaration has of a collection already.
    fn of(declaration: &Declaration, collection: &str, number: &str) -> About {
        let mut about = About::new(&declaration.database, number);
        let lens = declaration.rules.iter().find(|rule| rule.lens().is_some() && &*rule.host.collection == collection);
        let block = lens.and_then(|rule| declare::normal::collection_block(&rule.declaration));
        if let Some(block) = block {
            if let Some(Value::Array(steps)) = block.get("steps") {
                about.before = steps.iter().map(|steps| steps.into_owned()).collect();
            }
            if let Some(Value::String(field)) = block.get("field") {
                about.number = field.as_str().to_owned();
            }
        }
        about
    }
}

/// From two samples, two schemas or one of each.
pub fn from_evidence(old: &Evidence, new: &Evidence, collection: &str, about: &About) -> Result<Proposal> {
    let mut search = Search::new(old, new);
    search.run();
    let mut proposal = search.finish(collection);
    let text = declaration(std::slice::from_ref(&proposal), std::slice::from_ref(about));
    if !proposal.steps.is_empty() {
        let checked = declare::from_yaml("proposed", &text).into_result()?;
        let lens = checked.rules.iter().find_map(|rule| rule.lens());
        proposal.trial = match lens {
            Some(lens) if !old.documents.is_empty() => Some(Trial::of(lens, old, new, &about.number)?),
            _ => None,
        };
    }
    Ok(proposal)
}

/// From the JSON Schemas of two declarations: for each collection that both declare polymorphic, and where it is declared.
pub fn from_declarations(old: &Declaration, new: &Declaration, number: &str) -> Result<Vec<(Proposal, About)>> {
    if old.database != new.database {
        let message = format!("the declarations are for two databases, {} and {}", old.database, new.database);
        return Err(Error::new(Code::BadValue, message).with_hint("compare two declarations of one database"));
    }
    let pairs = schema::of_declarations(old, new, number);
    if pairs.is_empty() {
        let message = "the declarations have no collection that both declare polymorphic, and so no schemas to compare";
        return Err(Error::new(Code::BadValue, message)
            .with_hint("compare two samples of documents instead: `pleach versions diff old.json new.json`"));
    }
    let proposal = |(collection, before, after): (String, Evidence, Evidence)| {
        let about = About::of(old, &collection, number);
        let proposal = from_evidence(&before, &after, &collection, &about)?;
        Ok((proposal, about))
    };
    pairs.into_iter().map(proposal).collect()
}

/// The declaration of what is proposed, with the evidence as comments; empty if there is nothing to declare.
pub fn declaration(proposals: &[Proposal], about: &[About]) -> String {
    yaml::declaration(proposals, about)
}

/// Refuses names that no collection can have.
pub fn namespace(database: &str, collection: &str) -> Result<Namespace> {
    let wrong = |what: &str, name: &str| {
        Error::new(Code::InvalidNamespace, format!("no {what} can be called {name:?}")).with_hint("name another one")
    };
    if database.is_empty() || database.contains(['/', '\\', '.', ' ', '"', '$', '\0', '@']) {
        return Err(wrong("database", database));
    }
    if collection.is_empty() || collection.contains(['$', '\0']) || collection.starts_with("system.") {
        return Err(wrong("collection", collection));
    }
    Ok(Namespace::new(database, collection))
}
