//! What a collection asks of documents that come into it: its validator, and the constraints that are declared for it. Requirements of
//! documents before they are written, as they would be stored: with the version and the fields that rules give them.

use crate::execute::access::Access;
use crate::execute::evaluate::Evaluator;
use crate::life::install::validators::kept_fields;
use crate::life::preview::validators::enforced;
use crate::rule::{Lens, Rule, key};
use document::filter::{Details, Filter};
use document::op::Namespace;
use document::pipeline::expr::Names;
use document::update::Applied;
use document::value::Path;
use document::{Doc, Result};
use hashbrown::HashMap;
use std::sync::Arc;

pub(super) enum Found {
    Nothing,
    /// A validator that only MongoDB can read.
    Unreadable,
    Required(Box<Requirements>),
}

pub(super) struct Requirements {
    ns: Namespace,
    validator: Option<Filter>,
    /// Rules that ask for something, each as a filter.
    constraints: Vec<(Arc<Rule>, Filter)>,
    /// Of the collection's rules: fields that documents may have.
    kept: Vec<Path>,
    lens: Option<Arc<Lens>>,
    fields: Vec<Arc<Rule>>,
}

impl Requirements {
    /// By the rules that will be in force.
    pub(super) async fn look(at: &mut Access<'_>, ns: &Namespace, declared: &[Rule]) -> Result<Found> {
        let of_collection = || declared.iter().filter(|rule| rule.host == *ns);
        let validator = match enforced(at, ns).await? {
            Some(validator) => match Filter::parse(&validator, &mut Names::new()) {
                Ok(filter) => Some(filter),
                Err(_) => return Ok(Found::Unreadable),
            },
            None => None,
        };
        let mut kept = kept_fields(at, ns).await?;
        kept.extend(of_collection().filter(|rule| rule.kept_field().is_some()).flat_map(Rule::owned));
        let mut constraints = Vec::new();
        for rule in of_collection() {
            let Some(constraint) = rule.constraint() else { continue };
            let filter = Filter::parse(&constraint.validator(&kept), &mut Names::new())?;
            constraints.push((Arc::new(rule.clone()), filter));
        }
        if validator.is_none() && constraints.is_empty() {
            return Ok(Found::Nothing);
        }
        let lens = of_collection().find_map(|rule| rule.lens().cloned());
        let with_field = of_collection().filter(|rule| rule.kept_field().is_some());
        let fields = with_field.map(|rule| Arc::new(rule.clone())).collect();
        Ok(Found::Required(Box::new(Requirements { ns: ns.clone(), validator, constraints, kept, lens, fields })))
    }

    /// Why each of some new documents would be refused; `None` where it would not.
    pub(super) async fn refuses(
        &self,
        at: &mut Access<'_>,
        documents: Vec<Doc<'static>>,
    ) -> Result<Vec<Option<String>>> {
        let mut all: Vec<Option<String>> = documents.iter().map(|document| self.why(at, document)).collect();
        // What rules give a document may be what is asked for.
        let refused = || all.iter().zip(&documents).filter(|(why, _)| why.is_some());
        let complete = self.completed(at, refused().map(|(_, document)| document.clone()).collect()).await?;
        for (why, document) in all.iter_mut().filter(|why| why.is_some()).zip(&complete) {
            *why = self.why(at, document);
        }
        Ok(all)
    }

    fn why(&self, at: &Access<'_>, document: &Doc<'static>) -> Option<String> {
        let env = &at.context.env;
        let passes = |filter: &Filter| filter.matches(document, env).unwrap_or(true);
        if let Some(validator) = &self.validator
            && !passes(validator)
        {
            return Some(format!("the validator of {} refuses it", self.ns.collection));
        }
        let (rule, _) = self.constraints.iter().find(|(_, filter)| !passes(filter))?;
        let violations = rule.constraint()?.violations(document, &self.kept, env).unwrap_or_default();
        let first = violations.first().map(|violation| format!(": `{}` {}", violation.field, violation.problem));
        Some(format!("rule {} refuses it{}", rule.name, first.unwrap_or_default()))
    }

    /// The documents as they would be stored.
    async fn completed(&self, at: &mut Access<'_>, mut documents: Vec<Doc<'static>>) -> Result<Vec<Doc<'static>>> {
        if let Some(lens) = &self.lens {
            for document in &mut documents {
                *document = lens.written(document, &at.context.env)?;
            }
        }
        if documents.is_empty() {
            return Ok(documents);
        }
        for rule in &self.fields {
            // Where a value cannot be computed, the write itself says why.
            let Ok(found) = Evaluator::new(rule)?.differences(at, &documents).await else { continue };
            let found: HashMap<Vec<u8>, _> = found.iter().map(|found| (key::bytes(&found.id), found)).collect();
            for document in &mut documents {
                let of = document.get("_id").and_then(|id| found.get(&key::bytes(&id)));
                let after = of.map(|found| found.update.apply(document, &Details::default(), &at.context.env));
                if let Some(Ok(Applied::Changed(after))) = after {
                    *document = after;
                }
            }
        }
        Ok(documents)
    }
}
