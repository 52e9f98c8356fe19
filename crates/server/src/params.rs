//! One parameter of a command (or of a statement in it), read as the type it must have, refused in MongoDB's words.
//!
//! A command walks its parameters once and matches their names; what it does not know ends in [`Param::unknown`], so nothing
//! that a client says is silently left out.

use document::raw::Fields;
use document::value::show;
use document::{Array, Code, Doc, Error, Result, Text, Value};

/// A named value and the structure it belongs to: `find.limit`, `update.updates.q`.
#[derive(Clone, Debug)]
pub(crate) struct Param<'a> {
    structure: &'a str,
    name: Text<'a>,
    pub(crate) value: Value<'a>,
}

/// The parameters in a document.
pub(crate) struct Params<'a> {
    structure: &'a str,
    fields: Fields<'a>,
}

impl<'a> Params<'a> {
    pub(crate) fn of(structure: &'a str, doc: &Doc<'a>) -> Params<'a> {
        Params { structure, fields: doc.iter() }
    }
}

/// Parameters whose types have rules of their own. Of all others a null counts as not given.
const MEANING_NULL: &[&str] =
    &["filter", "projection", "sort", "min", "max", "hint", "pipeline", "index", "u", "update", "w", "limit"];

/// Whether a null under that name is something that the command must look at.
pub(crate) fn means_null(structure: &str, name: &str) -> bool {
    match name {
        "sort" => structure != "findAndModify",
        // Of a delete it is a number of any type, elsewhere a number or nothing.
        "limit" => structure == "delete.deletes",
        _ => MEANING_NULL.contains(&name),
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = Param<'a>;

    fn next(&mut self) -> Option<Param<'a>> {
        loop {
            let (name, value) = self.fields.next()?;
            if !matches!(value, Value::Null | Value::Undefined) || means_null(self.structure, name.as_str()) {
                return Some(Param::new(self.structure, name, value));
            }
        }
    }
}

impl<'a> Param<'a> {
    pub(crate) fn new(structure: &'a str, name: Text<'a>, value: Value<'a>) -> Param<'a> {
        Param { structure, name, value }
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    pub(crate) fn unknown(&self) -> Error {
        unknown(self.structure, self.name())
    }

    fn wrong_type(&self, expected: &str) -> Error {
        Error::type_mismatch(format!(
            "BSON field '{}.{}' is the wrong type '{}', expected {expected}",
            self.structure,
            self.name,
            self.value.type_name()
        ))
    }

    pub(crate) fn document(self) -> Result<Doc<'a>> {
        match self.value {
            Value::Document(doc) => Ok(doc),
            _ => Err(self.wrong_type("type 'object'")),
        }
    }

    /// As [`Param::document`], in the words that some parameters of `find` have.
    pub(crate) fn owned_document(self) -> Result<Doc<'a>> {
        match self.value {
            Value::Document(doc) => Ok(doc),
            _ => Err(Error::type_mismatch(format!("Expected field {}to be of type object", self.name))),
        }
    }

    pub(crate) fn array(self) -> Result<Array<'a>> {
        match self.value {
            Value::Array(array) => Ok(array),
            _ => Err(self.wrong_type("type 'array'")),
        }
    }

    /// The elements of an array, all documents.
    pub(crate) fn documents(self) -> Result<Vec<Doc<'a>>> {
        let structure = format!("{}.{}", self.structure, self.name);
        let element = |(index, value)| match value {
            Value::Document(doc) => Ok(doc),
            other => Err(Param::new(&structure, Text::from(format!("{index}")), other).wrong_type("type 'object'")),
        };
        self.array()?.iter().enumerate().map(element).collect()
    }

    /// The elements of an array, all longs.
    pub(crate) fn longs(self) -> Result<Vec<i64>> {
        let structure = format!("{}.{}", self.structure, self.name);
        let element = |(index, value)| match value {
            Value::Int64(number) => Ok(number),
            other => Err(Param::new(&structure, Text::from(format!("{index}")), other).wrong_type("type 'long'")),
        };
        self.array()?.iter().enumerate().map(element).collect()
    }

    pub(crate) fn text(self) -> Result<Text<'a>> {
        match self.value {
            Value::String(text) => Ok(text),
            _ => Err(self.wrong_type("type 'string'")),
        }
    }

    pub(crate) fn bool(&self) -> Result<bool> {
        match self.value {
            Value::Bool(truth) => Ok(truth),
            _ => Err(self.wrong_type("type 'bool'")),
        }
    }

    /// A boolean, or a number that stands for one.
    pub(crate) fn loose_bool(&self) -> Result<bool> {
        match &self.value {
            Value::Bool(truth) => Ok(*truth),
            number if number.is_number() => Ok(number.is_truthy()),
            _ => Err(self.wrong_type("types '[bool, long, int, decimal, double']")),
        }
    }

    /// A boolean, in the words that the flags of `find` have.
    pub(crate) fn flag(&self) -> Result<bool> {
        match &self.value {
            Value::Bool(truth) => Ok(*truth),
            other => Err(Error::type_mismatch(format!(
                "Field '{}' should be a boolean value, but found: {}",
                self.name,
                other.type_name()
            ))),
        }
    }

    pub(crate) fn long(&self) -> Result<i64> {
        match self.value {
            Value::Int64(number) => Ok(number),
            _ => Err(self.wrong_type("type 'long'")),
        }
    }

    /// Any number, its fraction cut off.
    pub(crate) fn integer(&self) -> Result<i64> {
        match self.value.as_number() {
            Some(number) => Ok(number.to_i64_saturated()),
            None => Err(self.wrong_type("types '[long, int, decimal, double']")),
        }
    }

    /// Any number that is not negative, its fraction cut off.
    pub(crate) fn count(&self) -> Result<u64> {
        let number = self.integer()?;
        u64::try_from(number).map_err(|_| {
            Error::new(
                Code::Location(51024),
                format!("BSON field '{}' value must be >= 0, actual value '{number}'", self.name),
            )
        })
    }

    /// As [`Param::count`], at least 1.
    pub(crate) fn positive(&self) -> Result<i64> {
        let number = self.integer()?;
        if number >= 1 {
            return Ok(number);
        }
        Err(Error::new(
            Code::Location(51024),
            format!("BSON field '{}' value must be >= 1, actual value '{number}'", self.name),
        ))
    }

    /// A `collation` for a backend that has them; one that has not takes the simple one, which is what it does anyway.
    pub(crate) fn collation(self, collates: bool) -> Result<Option<Doc<'a>>> {
        match collates {
            true => self.document().map(|collation| Some(collation).filter(|collation| !collation.is_empty())),
            false => self.simple_collation().map(|()| None),
        }
    }

    /// A `collation` of a read: only the simple one is there.
    pub(crate) fn simple_collation(self) -> Result<()> {
        let collation = self.document()?;
        let locale = collation.get("locale");
        match locale.as_ref().and_then(Value::as_str) {
            Some("simple") => Ok(()),
            None if collation.is_empty() => Ok(()),
            Some(locale) if !is_language(locale) => {
                Err(Error::bad_value(format!("Field 'locale' is invalid in: {}", show::document(&collation))))
            }
            _ => Err(Error::not_implemented("a collation other than { locale: \"simple\" }")),
        }
    }
}

/// Whether MongoDB has a collation for the locale, ours or not: it begins with one of these languages.
fn is_language(locale: &str) -> bool {
    const LANGUAGES: &str = " af am ar as az be bg bn bo bs ca chr cs cy da de dsb dz ee el en eo es et fa fi fil fo fr ga gl gu ha haw he hi hr hsb hu hy id ig is it ja ka kk kl km kn ko kok ky lb lkt ln lo lt lv mk ml mn mr ms mt my nb ne nl nn om or pa pl ps pt ro ru se si sk sl smn sq sr sv sw ta te th to tr ug uk ur vi wae yi yo zh zu ";
    let language = locale.split(['_', '@', '-']).next().unwrap_or_default();
    !language.is_empty() && LANGUAGES.contains(&format!(" {language} "))
}

pub(crate) fn unknown(structure: &str, name: &str) -> Error {
    Error::new(Code::Location(40415), format!("BSON field '{structure}.{name}' is an unknown field."))
}

pub(crate) fn duplicate(structure: &str, name: &str) -> Error {
    Error::new(Code::Location(40413), format!("BSON field '{structure}.{name}' is a duplicate field"))
}

/// The value of a parameter that must be there.
pub(crate) fn required<T>(value: Option<T>, structure: &str, name: &str) -> Result<T> {
    value.ok_or_else(|| {
        Error::new(Code::Location(40414), format!("BSON field '{structure}.{name}' is missing but a required field"))
    })
}

/// A word that is none of the allowed ones.
pub(crate) fn not_a_choice(structure: &str, name: &str, word: &str) -> Error {
    Error::bad_value(format!("Enumeration value '{word}' for field '{structure}.{name}' is not a valid value."))
}
