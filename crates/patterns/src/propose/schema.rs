//! What JSON Schemas say of documents: those of a polymorphic rule's kinds, or one by itself.

use super::evidence::{Evidence, KnownField, insert};
use crate::declare::{Declaration, normal};
use crate::rule::Rule;
use document::value::Path;
use document::{Array, Doc, Value};

/// What `bsonType` and `type` call types that the language calls otherwise, or that are several.
const NAMES: &[(&str, &[&str])] =
    &[("boolean", &["bool"]), ("integer", &["int", "long"]), ("number", &["decimal", "double", "int", "long"])];

const TYPES: &[&str] = &[
    "array",
    "binData",
    "bool",
    "date",
    "decimal",
    "double",
    "int",
    "long",
    "null",
    "object",
    "objectId",
    "regex",
    "string",
    "timestamp",
];

/// The schemas of each collection that both declare polymorphic, for the kinds that both have.
pub(super) fn of_declarations(old: &Declaration, new: &Declaration, number: &str) -> Vec<(String, Evidence, Evidence)> {
    let mut pairs = Vec::new();
    for before in &old.rules {
        let same = |rule: &&Rule| rule.host == before.host && rule.pattern == before.pattern;
        let Some(after) = new.rules.iter().find(same) else { continue };
        let (Some(before_kinds), Some(after_kinds)) = (Kinds::of(before), Kinds::of(after)) else { continue };
        let [own, other] = [(&before_kinds, &after_kinds), (&after_kinds, &before_kinds)]
            .map(|(own, other)| own.evidence(number, |kind| other.names().any(|name| name == kind)));
        pairs.push((before.host.collection.to_string(), own, other));
    }
    pairs
}

/// The discriminator and the kinds of a polymorphic rule.
struct Kinds<'r> {
    discriminator: Path,
    kinds: Vec<(String, Doc<'r>)>,
}

impl<'r> Kinds<'r> {
    fn of(rule: &'r Rule) -> Option<Kinds<'r>> {
        let block = normal::collection_block(&rule.declaration).filter(|_| rule.constraint().is_some())?;
        let discriminator = Path::new(block.get("discriminator")?.as_str()?);
        let Value::Document(kinds) = block.get("kinds")? else { return None };
        let kind = |(name, kind): (document::Text<'r>, Value<'r>)| match kind {
            Value::Document(kind) => Some((name.as_str().to_owned(), kind)),
            _ => None,
        };
        Some(Kinds { discriminator, kinds: kinds.iter().filter_map(kind).collect() })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(|(name, _)| &**name)
    }

    fn evidence(&self, number: &str, is_wanted: impl Fn(&str) -> bool) -> Evidence {
        let mut all = Evidence::default();
        let mut kinds = Vec::new();
        for (name, block) in self.kinds.iter().filter(|(name, _)| is_wanted(name)) {
            let mut own = Evidence::default();
            if let Some(Value::Document(schema)) = block.get("schema") {
                own.add_schema(&schema, &mut Vec::new(), true);
            }
            if let Some(Value::Array(required)) = block.get("required") {
                texts(&required).for_each(|path| own.learn(&Path::new(&path), |field| field.always = true));
            }
            kinds.push((name.clone(), own));
        }
        all.learn(&self.discriminator, |field| {
            field.always = true;
            insert(&mut field.types, "string");
            field.values = kinds.iter().map(|(name, _)| Value::string(&**name)).collect();
        });
        for field in kinds.iter().flat_map(|(_, own)| &own.fields).filter(|field| field.path != self.discriminator) {
            let Some(path) = Some(&field.path).filter(|path| !["_id", "_pleach", number].contains(&path.first()))
            else {
                continue;
            };
            all.learn(path, |known| {
                field.types.iter().for_each(|name| insert(&mut known.types, name));
                field.items.iter().for_each(|name| insert(&mut known.items, name));
                if known.values.is_empty() {
                    known.values.clone_from(&field.values);
                }
            });
        }
        for known in &mut all.fields {
            let asks = |own: &Evidence| own.field(&known.path).is_some_and(|field| field.always);
            let asking: Vec<String> = kinds.iter().filter(|(_, own)| asks(own)).map(|(name, _)| name.clone()).collect();
            match asking.len() {
                0 => {}
                number if number == kinds.len() => known.always = true,
                _ => known.of_kinds = Some((self.discriminator.clone(), asking)),
            }
        }
        all
    }
}

impl Evidence {
    /// Of a JSON Schema.
    pub fn of_schema(schema: &Doc<'_>, number: &str) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.add_schema(schema, &mut Vec::new(), true);
        evidence.fields.retain(|field| !["_id", "_pleach", number].contains(&field.path.first()));
        evidence
    }

    fn add_schema(&mut self, schema: &Doc<'_>, above: &mut Vec<String>, always: bool) {
        let required: Vec<String> = match schema.get("required") {
            Some(Value::Array(names)) => texts(&names).collect(),
            _ => Vec::new(),
        };
        let properties = match schema.get("properties") {
            Some(Value::Document(properties)) => properties,
            _ => Doc::empty(),
        };
        let undescribed = required.iter().filter(|name| !properties.contains(name));
        for name in undescribed {
            above.push(name.clone());
            self.learn(&Path::new(&above.join(".")), |field| field.always = always);
            above.pop();
        }
        for (name, about) in properties.iter() {
            let Value::Document(about) = about else { continue };
            let is_required = always && required.iter().any(|required| required == name.as_str());
            above.push(name.as_str().to_owned());
            match about.get("properties") {
                Some(Value::Document(inner)) if !inner.is_empty() => self.add_schema(&about, above, is_required),
                _ => self.learn(&Path::new(&above.join(".")), |field| describe(field, &about, is_required)),
            }
            above.pop();
        }
    }
}

fn describe(field: &mut KnownField, about: &Doc<'_>, always: bool) {
    field.always = always;
    types(about).for_each(|name| insert(&mut field.types, name));
    if let Some(Value::Document(items)) = about.get("items") {
        types(&items).for_each(|name| insert(&mut field.items, name));
    }
    if let Some(Value::Array(allowed)) = about.get("enum") {
        field.values = allowed.iter().map(Value::into_owned).collect();
    }
}

/// The types that a part of a schema allows.
fn types(about: &Doc<'_>) -> impl Iterator<Item = &'static str> + use<> {
    let said = about.get("bsonType").or_else(|| about.get("type"));
    let names: Vec<String> = match said {
        Some(Value::String(name)) => vec![name.as_str().to_owned()],
        Some(Value::Array(names)) => texts(&names).collect(),
        _ => Vec::new(),
    };
    names.into_iter().flat_map(|name| {
        let several = NAMES.iter().find(|(known, _)| *known == name).map(|(_, types)| *types);
        let one = TYPES.iter().position(|known| *known == name).and_then(|place| TYPES.get(place..=place));
        several.or(one).unwrap_or_default().iter().copied()
    })
}

fn texts<'a>(list: &'a Array<'_>) -> impl Iterator<Item = String> + use<'a> {
    let texts: Vec<String> = list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    texts.into_iter()
}
