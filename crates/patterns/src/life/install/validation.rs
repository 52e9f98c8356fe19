//! What a collection demands of its documents: the user's part alone, and with the parts of rules.

use crate::mql;
use document::{Doc, Value};

/// What a collection demands of its documents, as `listCollections` and `collMod` say it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Validation {
    pub(super) validator: Doc<'static>,
    pub(super) level: String,
    pub(super) action: String,
}

/// The names of these options.
pub(super) const OPTIONS: [&str; 3] = ["validator", "validationLevel", "validationAction"];

impl Validation {
    /// MongoDB's own values for what is not said.
    pub(super) fn none() -> Validation {
        Validation { validator: Doc::empty(), level: String::new(), action: String::new() }
    }

    pub(super) fn of(options: &Doc<'_>) -> Validation {
        Validation::none().changed(options)
    }

    /// With what a client says now.
    pub(super) fn changed(&self, options: &Doc<'_>) -> Validation {
        let text = |name: &str, other: &String, default: &str| match options.get(name) {
            Some(word) => word.as_str().filter(|word| *word != default).unwrap_or_default().to_owned(),
            None => other.clone(),
        };
        let validator = match options.get("validator") {
            Some(Value::Document(validator)) => validator.into_owned(),
            _ => self.validator.clone(),
        };
        let (level, action) =
            (text("validationLevel", &self.level, "strict"), text("validationAction", &self.action, "error"));
        Validation { validator, level, action }
    }

    /// The options, all of them said.
    pub(super) fn options(&self) -> Doc<'static> {
        let word = |word: &String, default: &'static str| match word.is_empty() {
            true => Value::from(default),
            false => Value::string(word.clone()),
        };
        let values =
            [Value::Document(self.validator.borrow()), word(&self.level, "strict"), word(&self.action, "error")];
        mql::document(OPTIONS.into_iter().zip(values))
    }

    /// Whether documents are refused by it.
    fn is_enforced(&self) -> bool {
        !self.validator.is_empty() && self.level != "off" && self.action != "warn"
    }

    /// The user's part and those of rules, enforced. What only warns cannot be said beside what refuses: it waits in the catalog.
    ///
    /// Where the user asks for nothing, the level is `moderate`: a document from before the rule that breaks it can still be written, by
    /// clients and by other rules, which may lack the right to bypass validation. A user who asks for `strict` keeps it.
    pub(super) fn with_rules(&self, rules: &[Doc<'static>]) -> Validation {
        if rules.is_empty() {
            return self.clone();
        }
        let own = Some(&self.validator).filter(|_| self.is_enforced());
        let parts = own.into_iter().chain(rules).map(|part| Value::Document(part.borrow()));
        let validator = mql::document([("$and", mql::list(parts))]);
        let level = if self.is_enforced() { self.level.clone() } else { "moderate".to_owned() };
        Validation { validator, level, action: String::new() }
    }

    /// Without parts of rules, where somebody has written them down again.
    pub(super) fn without(self, rules: &[Doc<'static>]) -> Validation {
        let mut fields = self.validator.iter();
        let (Some((name, Value::Array(parts))), None) = (fields.next(), fields.next()) else { return self };
        let is_rule = |part: &Value<'_>| matches!(part, Value::Document(part) if rules.iter().any(|rule| rule == part));
        if name.as_str() != "$and" || !parts.iter().any(|part| is_rule(&part)) {
            return self;
        }
        let rest: Vec<Value<'static>> = parts.iter().filter(|part| !is_rule(part)).map(Value::into_owned).collect();
        let validator = match rest.as_slice() {
            [] => Doc::empty(),
            [Value::Document(only)] => only.clone(),
            _ => mql::document([("$and", mql::list(rest))]),
        };
        Validation { validator, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn validation(options: bson::Document) -> Validation {
        Validation::of(&Doc::from(options))
    }

    #[test]
    fn the_users_part_and_those_of_rules_are_asked_together() {
        let rules = [Doc::from(doc! { "kind": { "$in": ["book", "film"] } })];
        let own = doc! { "title": { "$type": "string" } };
        let whole =
            |options: bson::Document| bson::Document::try_from(&validation(options).with_rules(&rules).options());
        let kinds = || doc! { "kind": { "$in": ["book", "film"] } };
        for (options, expected) in [
            (
                doc! {},
                doc! { "validator": { "$and": [kinds()] }, "validationLevel": "moderate", "validationAction": "error" },
            ),
            (
                doc! { "validator": own.clone(), "validationLevel": "moderate" },
                doc! { "validator": { "$and": [own.clone(), kinds()] }, "validationLevel": "moderate", "validationAction": "error" },
            ),
            // What only warns would refuse.
            (
                doc! { "validator": own.clone() },
                doc! { "validator": { "$and": [own.clone(), kinds()] }, "validationLevel": "strict", "validationAction": "error" },
            ),
            (
                doc! { "validator": own.clone(), "validationAction": "warn" },
                doc! { "validator": { "$and": [kinds()] }, "validationLevel": "moderate", "validationAction": "error" },
            ),
            (
                doc! { "validator": own.clone(), "validationLevel": "off" },
                doc! { "validator": { "$and": [kinds()] }, "validationLevel": "moderate", "validationAction": "error" },
            ),
        ] {
            assert_eq!(whole(options.clone()).unwrap(), expected, "{options}");
        }
        let own = validation(doc! { "validator": own, "validationAction": "warn" });
        assert_eq!(own.with_rules(&[]), own, "without rules it is as the user said");
    }
}
