//! What is known of the documents of one version: their fields, from a sample of documents or from a JSON Schema.

use document::value::{Path, order};
use document::{Doc, Value};

/// So many different values of a field are remembered.
const MOST_VALUES: usize = 200;

/// The fields of one version's documents.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Paths through documents, not through arrays, in the order in which they were met.
    pub(super) fields: Vec<KnownField>,
    /// The sample; empty if a schema says it.
    pub(super) documents: Vec<Doc<'static>>,
    /// What could not be taken into account.
    pub(super) notes: Vec<String>,
}

/// What is known of the values at one path.
#[derive(Clone, Debug)]
pub(super) struct KnownField {
    pub(super) path: Path,
    /// Names of types as `$type` gives them, sorted.
    pub(super) types: Vec<&'static str>,
    /// The types of the items of its arrays.
    pub(super) items: Vec<&'static str>,
    /// Whether every document has it.
    pub(super) always: bool,
    /// In how many documents of the sample it is.
    pub(super) present: usize,
    /// The different values of the sample, up to a number; of a schema those that it allows, if it lists them.
    pub(super) values: Vec<Value<'static>>,
    /// The discriminator and the kinds that must have it, if not all must.
    pub(super) of_kinds: Option<(Path, Vec<String>)>,
}

impl KnownField {
    pub(super) fn new(path: Path) -> KnownField {
        KnownField {
            path,
            types: Vec::new(),
            items: Vec::new(),
            always: false,
            present: 0,
            values: Vec::new(),
            of_kinds: None,
        }
    }

    /// The types but null.
    pub(super) fn types_of_values(&self) -> impl Iterator<Item = &'static str> {
        self.types.iter().copied().filter(|name| *name != "null")
    }

    pub(super) fn is_only(&self, name: &str) -> bool {
        self.types_of_values().eq([name])
    }

    /// Its only value.
    pub(super) fn constant(&self) -> Option<&Value<'static>> {
        match self.values.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        self.is_only("string")
    }

    fn add(&mut self, value: &Value<'_>) {
        self.present += 1;
        insert(&mut self.types, value.type_name());
        if let Value::Array(items) = value {
            items.iter().for_each(|item| insert(&mut self.items, item.type_name()));
        }
        let is_new = self.values.len() < MOST_VALUES && !self.values.iter().any(|known| order::equal(known, value));
        if is_new {
            self.values.push(value.borrow().into_owned());
        }
    }
}

/// Into a sorted list, once.
pub(super) fn insert(names: &mut Vec<&'static str>, name: &'static str) {
    if let Err(place) = names.binary_search(&name) {
        names.insert(place, name);
    }
}

impl Evidence {
    /// Of a sample. `number` is the field that holds the version: no step is about it.
    pub fn of_documents(documents: Vec<Doc<'static>>, number: &str) -> Evidence {
        let mut evidence = Evidence::default();
        for doc in &documents {
            evidence.add(doc, &mut Vec::new(), number);
        }
        let all = documents.len();
        evidence.fields.iter_mut().for_each(|field| field.always = field.present == all);
        evidence.documents = documents;
        evidence
    }

    pub(super) fn field(&self, path: &Path) -> Option<&KnownField> {
        self.fields.iter().find(|field| field.path == *path)
    }

    /// Whether some field lies at the path or below it.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.fields.iter().any(|field| path.is_prefix_of(&field.path))
    }

    /// Whether some field lies below the path.
    pub(super) fn is_document(&self, path: &Path) -> bool {
        self.fields.iter().any(|field| path.is_prefix_of(&field.path) && field.path.parts.len() > path.parts.len())
    }

    fn add(&mut self, doc: &Doc<'_>, above: &mut Vec<String>, number: &str) {
        for (name, value) in doc.iter() {
            let name = name.as_str();
            if above.is_empty() && ["_id", "_pleach", number].contains(&name) {
                continue;
            }
            if name.is_empty() || name.contains('.') || name.starts_with('$') {
                let note = format!("no path can name the field {name:?}: it is left out");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                continue;
            }
            above.push(name.to_owned());
            match &value {
                Value::Document(inner) if !inner.is_empty() => self.add(inner, above, number),
                value => self.learn(&Path::new(&above.join(".")), |field| field.add(value)),
            }
            above.pop();
        }
    }

    /// Changes what is known of a path.
    pub(super) fn learn(&mut self, path: &Path, change: impl FnOnce(&mut KnownField)) {
        if !self.fields.iter().any(|field| field.path == *path) {
            self.fields.push(KnownField::new(path.clone()));
        }
        if let Some(field) = self.fields.iter_mut().find(|field| field.path == *path) {
            change(field);
        }
    }
}

/// The value at a path through documents.
pub(super) fn value_at<'d>(doc: &Doc<'d>, path: &Path) -> Option<Value<'d>> {
    let mut parts = path.parts.iter();
    let mut value = doc.get(&parts.next()?.name)?;
    for part in parts {
        let Value::Document(inner) = &value else { return None };
        value = inner.get(&part.name)?;
    }
    Some(value)
}
