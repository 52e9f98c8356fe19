//! The argument of `$text`, as the client wrote it.

use crate::error::{Error, Result};
use crate::value::Value;
use crate::{Code, DocWriter};

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    pub search: String,
    /// Nothing, or an empty name, is the language of the index.
    pub language: Option<String>,
    pub case_sensitive: bool,
    pub diacritic_sensitive: bool,
}

impl Search {
    pub(crate) fn parse(argument: &Value<'_>) -> Result<Search> {
        let Value::Document(argument) = argument else { return Err(Error::bad_value("$text expects an object")) };
        let wrong = |name: &str, expected: &str, found: &Value<'_>| {
            Err(Error::type_mismatch(format!(
                "\"{name}\" had the wrong type. Expected {expected}, found {}",
                found.type_name()
            )))
        };
        let text = |name: &str| match argument.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str().to_owned())),
            Some(other) => wrong(name, "string", &other),
        };
        let truth = |name: &str| match argument.get(name) {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(truth),
            Some(other) => wrong(name, "bool", &other).map(|_| false),
        };
        let missing = || Error::new(Code::NoSuchKey, "Missing expected field \"$search\"");
        let search = Search {
            search: text("$search")?.ok_or_else(missing)?,
            language: text("$language")?.filter(|language| !language.is_empty()),
            case_sensitive: truth("$caseSensitive")?,
            diacritic_sensitive: truth("$diacriticSensitive")?,
        };
        const KNOWN: &[&str] = &["$search", "$language", "$caseSensitive", "$diacriticSensitive"];
        match argument.iter().all(|(name, _)| KNOWN.contains(&name.as_str())) {
            true => Ok(search),
            false => Err(Error::bad_value("extra fields in $text")),
        }
    }

    /// Writes `$text: { … }`: what was given, or everything if `language` says which one it is.
    pub(super) fn write(&self, language: Option<&str>, query: &mut DocWriter) {
        let whole = language.is_some();
        query.start_document("$text");
        query.append("$search", &Value::from(&*self.search));
        if let Some(language) = self.language.as_deref().or(language) {
            query.append("$language", &Value::from(language));
        }
        for (name, truth) in
            [("$caseSensitive", self.case_sensitive), ("$diacriticSensitive", self.diacritic_sensitive)]
        {
            if whole || truth {
                query.append(name, &Value::Bool(truth));
            }
        }
        query.end();
    }
}
