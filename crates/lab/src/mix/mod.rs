//! The mix: named reads and writes with their weights, as commands whose values come from the sample.

mod defaults;
mod file;
mod fill;
mod observed;

pub use defaults::of_rules;
pub use file::read;
pub use fill::{Filled, Pools, check};
pub use observed::of_traffic;

use bson::Document;
use patterns::rule::Rule;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix {
    pub reads: Vec<Operation>,
    pub writes: Vec<Operation>,
}

/// Something that an application does: one command or several, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    pub name: String,
    pub weight: f64,
    pub commands: Vec<Document>,
    /// What it is where a rule of that name saves commands.
    pub instead: Vec<(String, Vec<Document>)>,
}

impl Operation {
    /// The commands on a layout with these rules.
    pub fn on(&self, rules: &[Arc<Rule>]) -> &[Document] {
        let known = self.instead.iter().find(|(name, _)| rules.iter().any(|rule| *rule.name == **name));
        known.map_or(&self.commands, |(_, commands)| commands)
    }
}
