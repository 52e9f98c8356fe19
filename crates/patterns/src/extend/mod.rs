//! A rule is added to the text of a declaration, and every other byte stays: comments, blank lines, indentation, line ends.
//! The edits only insert; a change of a rule that is there replaces single values. What the new text says is compared with what
//! it should say, and a text for which that fails is refused rather than damaged.

mod edit;
mod layout;
mod merge;
mod written;

#[cfg(test)]
mod tests;

use crate::declare::Severity;
use crate::declare::finding::Findings;
use crate::declare::tree::Node;
use crate::declare::yaml;
use document::{Code, Error, Result, Value};
use layout::Layout;
use merge::Merge;

/// A declaration's text with more in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extended {
    pub text: String,
    /// The rules that came in or were changed: `products.avgRating`, `orders.bucket`.
    pub rules: Vec<String>,
}

/// What becomes of a rule that is declared already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    /// It is an error.
    Refuse,
    /// It takes the keys and values of the addition, and keeps its others.
    Change,
}

/// `text`, which findings call `file`, with the rules of `addition` in it: YAML too, of the same database. Whether all of it
/// together is a valid declaration is for `check` to say.
pub fn extend(file: &str, text: &str, addition: &str, declared: Declared) -> Result<Extended> {
    let Some(added) = parsed("the proposed rule", addition)? else {
        return Err(Error::new(Code::BadValue, "the proposed rule is empty"));
    };
    let Some(old) = parsed(file, text)? else {
        let merge = Merge::of_all(&added)?;
        return Ok(Extended { text: appended(text, addition), rules: merge.rules });
    };
    let merge = Merge::new(file, (&old, &Layout::of(text, &old)), (&added, &Layout::of(addition, &added)), declared)?;
    let extended = edit::applied(text, merge.edits);
    let said = parsed(file, &extended).ok().flatten();
    if !said.is_some_and(|tree| tree.to_value() == Value::Document(merge.wanted)) {
        return Err(Error::new(
            Code::BadValue,
            format!("{file} is written in a way that a program cannot add to safely"),
        )
        .with_hint("add the printed declaration by hand; `pleach check` says whether it is right"));
    }
    Ok(Extended { text: extended, rules: merge.rules })
}

/// The tree of a text; `None` if it holds nothing but comments.
fn parsed(name: &str, text: &str) -> Result<Option<Node>> {
    let mut findings = Findings::of(name);
    let tree = yaml::read(text, &mut findings);
    match findings.list.iter().find(|finding| finding.severity == Severity::Error) {
        None => Ok(tree),
        Some(finding) => {
            let line = finding.spot.map_or_else(String::new, |spot| format!(" in line {}", spot.line));
            let error = Error::new(Code::BadValue, format!("{name} cannot be added to: {}{line}", finding.message));
            Err(match &finding.hint {
                Some(hint) => error.with_hint(hint.clone()),
                None => error,
            })
        }
    }
}

/// The addition behind a text that declares nothing.
fn appended(text: &str, addition: &str) -> String {
    let newline = layout::newline(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
    let addition: String = addition.lines().map(|line| format!("{line}{newline}")).collect();
    format!("{text}{gap}{addition}")
}
