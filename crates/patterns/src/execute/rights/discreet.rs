//! Errors as a client may see them: without the names of collections and rules that it may not read (SEMANTICS R37).

use crate::active::Rules;
use crate::execute::rights::{Rights, role};
use document::op::Namespace;
use document::{Code, Error};

/// The error, without the names of collections and rules that the client may not read. Its own collection it knows.
pub(crate) fn discreet(rights: &Rights, rules: &Rules, asked: &Namespace, error: Error) -> Error {
    let hides = |text: &str| {
        let mentioned = |name: &str| mentions(text, name);
        // Collections of other databases have the same names, often.
        let is_meant = |db: &str| *db == *asked.db || mentioned(db);
        let is_hidden = |ns: &Namespace| ns != asked && !rights.may("find", ns) && mentioned(&ns.collection);
        rules.namespaces().any(|ns| is_meant(&ns.db) && is_hidden(ns))
            || rules
                .all()
                .iter()
                .any(|kept| is_meant(&kept.rule.host.db) && !rights.may_see(&kept.rule) && mentioned(&kept.rule.name))
    };
    let whole = format!("{} {} {:?}", error.message(), error.hint().unwrap_or_default(), error.info());
    if !hides(&whole) {
        return told_right(rights, asked, error);
    }
    let message = match error.code() {
        Code::Unauthorized => format!(
            "not authorized on {}: a rule that involves '{asked}' needs a right on another collection",
            asked.db
        ),
        _ => format!("refused by a rule that involves '{asked}' and another collection"),
    };
    let hint = "you may not read the other collection; ask whoever declared the rule";
    error
        .labels()
        .iter()
        .fold(Error::new(error.code(), message), |error, label| error.with_label(label))
        .with_hint(hint)
}

/// MongoDB's refusal of a statement that follows from the client's: what the client lacks, instead of the whole statement.
fn told_right(rights: &Rights, asked: &Namespace, error: Error) -> Error {
    if error.code() != Code::Unauthorized {
        return error;
    }
    let Some((action, collection)) = refused_statement(error.message()) else { return error };
    let ns = Namespace::new(&asked.db, collection);
    if ns == *asked {
        return error;
    }
    let message = format!(
        "not authorized on {} to execute command {{ {} }}: a rule needs {action} on {ns}",
        asked.db,
        rights.command()
    );
    Error::new(Code::Unauthorized, message).with_hint(format!(
        "ask for the role {} on {}, or another one with that action",
        role(action),
        asked.db
    ))
}

/// What `not authorized on shop to execute command { update: "products", … }` was about.
fn refused_statement(message: &str) -> Option<(&'static str, &str)> {
    let (_, command) = message.split_once("execute command { ")?;
    let (name, rest) = command.split_once(": \"")?;
    let (collection, _) = rest.split_once('"')?;
    let action = match name {
        "update" => "update",
        "insert" => "insert",
        "delete" => "remove",
        "find" | "aggregate" => "find",
        _ => return None,
    };
    Some((action, collection))
}

/// Whether a text has the name as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    let is_inside = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|text| text.chars().next());
        !is_inside(before) && !is_inside(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_mentioned_as_a_word() {
        assert!(mentions("not authorized to update 'shop.products'", "products"));
        assert!(mentions("products.reviewCount", "products"));
        assert!(!mentions("byproducts of it", "products"));
        assert!(!mentions("products_old", "products"));
        assert!(mentions("byproducts and products", "products"));
    }

    #[test]
    fn a_refused_statement_is_recognised() {
        let message = "not authorized on shop to execute command { update: \"products\", ordered: true }";
        assert_eq!(refused_statement(message), Some(("update", "products")));
        assert_eq!(refused_statement("not authorized on shop to execute command { ping: 1 }"), None);
    }
}
