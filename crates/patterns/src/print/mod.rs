//! The code that a person would write by hand to keep rules true, runnable as it is: `plan --as mongosh|node|python`. What is
//! declared can be had without Pleach: no lock-in.
//!
//! [`Kept`] is what the languages have to say about one rule; [`javascript`] writes it for the shell and for the driver,
//! [`python`] for PyMongo, [`keyed`] what has computed keys in both, [`constraint`] what documents must be like,
//! [`lift`] the way of an array into documents, [`outlier`] arrays that overflow, [`versions`] how old documents become the newest. A shape
//! writes its own code.

mod constraint;
mod indexes;
mod javascript;
mod keyed;
mod lift;
mod outlier;
mod python;
#[cfg(test)]
mod tests;
mod versions;

pub use crate::languages::Language;

use crate::languages::javascript::{MONGOSH, NODE};
use crate::languages::literals;
use crate::rule::{IndexNeed, KeyedRecipe, Recipe, Rule, ShapeCode, WhenDeleted};
use document::{Array, Doc, Result, Value};
use lift::Lifting;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program that keeps all `rules` true for whoever writes through its functions.
pub fn code(rules: &[Arc<Rule>], language: Language) -> Result<String> {
    let kept = rules.iter().map(|rule| Kept::new(rule, language)).collect::<Result<Vec<_>>>()?;
    Ok(match language {
        Language::Mongosh => javascript::code(&kept, &MONGOSH),
        Language::Node => javascript::code(&kept, &NODE),
        Language::Python => python::code(&kept),
    })
}

/// A value on one line, as a person types it into mongosh.
pub fn in_shell(value: &Value<'_>) -> String {
    literals::one_line(value, &MONGOSH.style)
}

/// One rule, as far as code is concerned.
struct Kept {
    /// `products.reviewCount: count of reviews by productId`
    title: String,
    /// The words of its name, for names of functions.
    words: Vec<String>,
    db: String,
    host: String,
    /// The other collection, if there is one.
    source: Option<String>,
    /// What serves its links; none of a rule that no code is written for.
    indexes: Vec<IndexNeed>,
    field: String,
    /// The array whose items become documents.
    lift: Option<Lifting>,
    work: Work,
}

enum Work {
    /// One more or one less for the host of `by`.
    Count { by: String, local: String },
    /// Evaluated from the children: stages behind a `$match` on `by`; what to set of a row, and without one.
    Evaluate {
        by: String,
        local: String,
        stages: Array<'static>,
        set: Vec<(String, &'static str)>,
        empty: Doc<'static>,
    },
    /// The same by computed keys.
    Keyed { recipe: KeyedRecipe, local: String },
    /// A copy: the stage that makes `{ copy }` of a source.
    Copy { by: String, key: String, stage: Value<'static>, frozen: bool, when_deleted: WhenDeleted },
    /// From the document itself.
    Expression { stages: Array<'static> },
    /// A whole collection: stored in another form, constrained, or of several versions.
    Shape(ShapeCode),
    /// Why there is no code.
    Unwritten(&'static str),
}

impl Kept {
    fn new(rule: &Arc<Rule>, language: Language) -> Result<Kept> {
        let words = rule.name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let work = work(rule, language)?;
        let is_linked = !matches!(work, Work::Shape(_) | Work::Unwritten(_)) || rule.outlier().is_some();
        Ok(Kept {
            indexes: if is_linked { rule.needs().indexes } else { Vec::new() },
            title: format!("{}: {}", rule.name, rule.described()),
            words: words.map(str::to_owned).collect(),
            db: rule.host.db.to_string(),
            host: rule.host.collection.to_string(),
            source: rule.link().map(|link| link.source.collection.to_string()),
            field: rule.field.dotted(),
            lift: Lifting::of(rule),
            work,
        })
    }

    /// Whether it keeps a field, through functions that write its collections.
    fn is_field(&self) -> bool {
        !matches!(self.work, Work::Shape(_) | Work::Unwritten(_))
    }
}

fn work(rule: &Arc<Rule>, language: Language) -> Result<Work> {
    if let Some(shape) = rule.shape() {
        let code = shape.code(&rule.host, language);
        return Ok(code.map_or(Work::Unwritten("its form cannot be written by hand"), Work::Shape));
    }
    if let Some(own) = rule.constraint() {
        return Ok(Work::Shape(constraint::code(rule, &**own, language)));
    }
    if let Some(array) = rule.outlier() {
        return Ok(Work::Shape(outlier::code(array, language)));
    }
    if let Some(lens) = rule.lens() {
        return Ok(Work::Shape(versions::code(rule, lens, language)));
    }
    let Some(field) = rule.kept_field() else { return Ok(Work::Unwritten("it keeps no field")) };
    let by = || field.link().map(|link| link.by()).unwrap_or_default();
    let local = || field.link().map(|link| link.local.path.dotted()).unwrap_or_default();
    let key = || field.link().map(|link| link.foreign.to_string()).unwrap_or_default();
    Ok(match field.recipe()? {
        Recipe::Count => Work::Count { by: by(), local: local() },
        Recipe::Evaluate { stages, set, empty } => Work::Evaluate { by: by(), local: local(), stages, set, empty },
        Recipe::Keyed(recipe) => Work::Keyed { recipe, local: local() },
        Recipe::Copy { stage, frozen, when_deleted } => {
            Work::Copy { by: by(), key: key(), stage, frozen, when_deleted }
        }
        Recipe::Expression { stages } => Work::Expression { stages },
        Recipe::Unwritten(why) => Work::Unwritten(why),
    })
}

/// The code of rules that store a collection in another form.
fn shapes(kept: &[Kept]) -> impl Iterator<Item = &ShapeCode> {
    kept.iter().filter_map(|rule| match &rule.work {
        Work::Shape(code) => Some(code),
        _ => None,
    })
}

/// What that code uses, each once.
fn helpers(kept: &[Kept]) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for code in shapes(kept) {
        if !all.contains(&&*code.helpers) {
            all.push(&code.helpers);
        }
    }
    all
}

/// The collections that need functions of their own: those rules keep something in, and those they read.
fn collections(kept: &[Kept]) -> Vec<&str> {
    let mut names = BTreeMap::new();
    for rule in kept.iter().filter(|rule| rule.is_field()) {
        names.insert(&*rule.host, ());
        rule.source.iter().for_each(|source| _ = names.insert(source, ()));
    }
    names.into_keys().collect()
}

/// The rules whose fields a collection holds, and those that read it.
fn concerned<'k>(kept: &'k [Kept], collection: &str) -> (Vec<&'k Kept>, Vec<&'k Kept>) {
    let written = || kept.iter().filter(|rule| rule.is_field());
    (
        written().filter(|rule| rule.host == collection).collect(),
        written().filter(|rule| rule.source.as_deref() == Some(collection)).collect(),
    )
}
