//! Values that stand under another name or in another document: `rename` and `nest`, with `convert` and `wrap` where the type changed too.

use super::evidence::KnownField;
use super::names::{ALIKE, likeness, share};
use super::search::Search;
use super::written::{self, WrittenStep};
use document::value::{Path, order};
use document::{DocWriter, Value};
use std::collections::BTreeSet;

/// A value that may have moved.
struct Move {
    from: KnownField,
    to: KnownField,
    steps: Vec<WrittenStep>,
    /// Better ones are taken first.
    rank: f64,
    is_sure: bool,
    because: String,
}

impl Search<'_> {
    /// Finds moves one after the other; `exact`: only those that the same documents show.
    pub(super) fn moves(&mut self, exact: bool) {
        loop {
            let (gone, fresh) = (self.gone(), self.fresh());
            let pairs = gone.iter().flat_map(|from| fresh.iter().map(move |to| (from, to)));
            let candidates = pairs.filter_map(|(from, to)| self.candidate(from, to, exact));
            let best = candidates.max_by(|one, other| one.rank.total_cmp(&other.rank));
            let Some(best) = best.or_else(|| self.only_one(&gone, &fresh, exact)) else { return };
            let moved = KnownField { path: best.to.path.clone(), ..best.to.clone() };
            self.take(best.steps, &[best.from.path], &[moved], best.is_sure, &best.because);
        }
    }

    fn candidate(&self, from: &KnownField, to: &KnownField, exact: bool) -> Option<Move> {
        let steps = self.steps_between(from, to)?;
        let alike = likeness(&from.path, &to.path);
        let step = |rank: f64, is_sure: bool, because: String| {
            Some(Move { from: from.clone(), to: to.clone(), steps: steps.clone(), rank, is_sure, because })
        };
        let (before, after) = (from.path.dotted(), to.path.dotted());
        if !self.pairs.is_empty() {
            let shown = self.shown(&steps, &[&from.path], &[&to.path])?;
            // One value in all documents shows little, and any text converts to true.
            let is_varied = from.values.len() > 1 && to.values.len() > 1;
            let is_telling = (is_varied || shown.of == 1) && (!to.is_only("bool") || from.is_only("bool"));
            return match shown {
                _ if !shown.by_most() || (!is_telling && alike < ALIKE) => None,
                _ if exact && !shown.by_all() => None,
                _ => {
                    let because = format!("{} `{after}` is what `{before}` was", shown.text());
                    let rank = 3.0 + alike + share(shown.by, shown.of);
                    step(rank, shown.by_all() && is_telling && shown.of > 1, because)
                }
            };
        }
        if exact {
            return None;
        }
        let common = common_values(from, to);
        if common >= 0.5 {
            let because = format!("`{before}` and `{after}` have the same values");
            return step(2.0 + common + alike, false, because);
        }
        let because = format!("`{before}` is gone, `{after}` is new, and their names are alike");
        if alike >= ALIKE { step(alike, false, because) } else { None }
    }

    /// The only field that is gone and the only one that is new.
    fn only_one(&self, gone: &[KnownField], fresh: &[KnownField], exact: bool) -> Option<Move> {
        let ([from], [to]) = (gone, fresh) else { return None };
        let steps = self.steps_between(from, to)?;
        let is_alike = from.types == to.types && !from.types.is_empty() && from.always == to.always;
        // The same documents would have shown it, and two unlike names are no evidence in two schemas.
        let is_evidence = self.pairs.is_empty() && !from.values.is_empty() && to.constant().is_none();
        let because = format!(
            "`{}` is the only field that is gone, and `{}` the only one that is new",
            from.path.dotted(),
            to.path.dotted()
        );
        (!exact && is_alike && is_evidence).then(|| Move {
            from: from.clone(),
            to: to.clone(),
            steps,
            rank: 0.0,
            is_sure: false,
            because,
        })
    }

    /// `None` if the types have nothing to do with each other, or no step leads there.
    fn steps_between(&self, from: &KnownField, to: &KnownField) -> Option<Vec<WrittenStep>> {
        let comes_into_document = to.path.parts.len() > 1 && from.path.parts.len() == 1;
        let moving = match comes_into_document {
            true => written::nest(&from.path, &to.path, &[]),
            false => written::rename(&from.path, &to.path),
        };
        Some(std::iter::once(moving).chain(retyped(from, to)?).collect())
    }

    /// Whole documents under another name: `addr` and `address` with mostly the same fields.
    pub(super) fn renamed_documents(&mut self) {
        let roots = |fields: &[KnownField]| -> BTreeSet<Path> {
            let deep = fields.iter().filter(|field| field.path.parts.len() > 1);
            deep.map(|field| Path { parts: field.path.parts.iter().take(1).cloned().collect() }).collect()
        };
        let gone: Vec<Path> = roots(&self.old).into_iter().filter(|root| !self.new.has(root)).collect();
        for from in gone {
            let fresh = roots(&self.new.fields).into_iter().filter(|root| !self.old_has(root));
            let overlap = |to: &Path| {
                let (one, other) = (below(&self.old, &from), below(&self.new.fields, to));
                share(one.intersection(&other).count(), one.union(&other).count())
            };
            let best = fresh.map(|to| (overlap(&to), to)).max_by(|one, other| one.0.total_cmp(&other.0));
            let Some((common, to)) = best.filter(|(common, _)| *common >= 0.5) else { continue };
            let steps = vec![written::rename(&from, &to)];
            let inner: Vec<Path> = below(&self.old, &from)
                .intersection(&below(&self.new.fields, &to))
                .map(|rest| Path::new(&format!("{}.{rest}", to.dotted())))
                .collect();
            let (before, after) = (from.dotted(), to.dotted());
            let (is_sure, because) = match self.shown(&steps, &[&from], &inner.iter().collect::<Vec<_>>()) {
                Some(shown) if shown.by_most() => {
                    (shown.by_all() && shown.of > 1, format!("{} `{after}` is what `{before}` was", shown.text()))
                }
                _ if !self.pairs.is_empty() => continue,
                _ => {
                    let percent = (common * 100.0).round();
                    (
                        false,
                        format!(
                            "`{before}` is gone, `{after}` is new, and {percent} % of the fields in them are the same"
                        ),
                    )
                }
            };
            let is_inside = |field: &&KnownField| from.is_prefix_of(&field.path);
            let moved: Vec<KnownField> = self
                .old
                .iter()
                .filter(is_inside)
                .map(|field| {
                    let parts = to.parts.iter().chain(field.path.parts.iter().skip(1)).cloned().collect();
                    KnownField { path: Path { parts }, ..field.clone() }
                })
                .collect();
            let left: Vec<Path> = self.old.iter().filter(is_inside).map(|field| field.path.clone()).collect();
            self.take(steps, &left, &moved, is_sure, &because);
        }
    }

    /// What came with a `nest`: fields of the same new document that hold one value wherever it is.
    pub(super) fn constants_beside(&mut self) {
        let nested: Vec<(usize, Path, Path)> = self
            .found
            .iter()
            .enumerate()
            .filter_map(|(place, found)| {
                let Value::Document(step) = &found.written.declared else { return None };
                let Some(Value::Document(nest)) = step.get("nest") else { return None };
                let (from, Value::Document(inner)) = nest.iter().next()? else { return None };
                Some((place, Path::new(from.as_str()), Path::new(inner.get("into")?.as_str()?)))
            })
            .collect();
        let mut served: Vec<Path> = Vec::new();
        for (place, from, into) in nested {
            let above = Path { parts: into.parts.iter().take(into.parts.len() - 1).cloned().collect() };
            if served.contains(&above) {
                continue;
            }
            let there = self.new.field(&into).map_or(0, |field| field.present);
            let comes_along = |field: &KnownField| above.is_prefix_of(&field.path) && field.present == there;
            let constants: Vec<(KnownField, Value<'static>)> = self
                .fresh()
                .into_iter()
                .filter(comes_along)
                .filter_map(|field| {
                    let value = match self.new.documents.is_empty() {
                        true if field.always || self.is_always_with(&field, &into) => self.made_up(&field),
                        true => None,
                        false => field.constant().cloned(),
                    }?;
                    Some((field, value))
                })
                .collect();
            if constants.is_empty() {
                continue;
            }
            served.push(above);
            let with: Vec<(Path, Value<'static>)> =
                constants.iter().map(|(field, value)| (field.path.clone(), value.clone())).collect();
            let names: Vec<String> = with.iter().map(|(path, _)| format!("`{}`", path.dotted())).collect();
            let words = match self.new.documents.is_empty() {
                true => {
                    format!("the schema asks for {} there, and what older documents get is made up", names.join(", "))
                }
                false => {
                    format!("{} holds the same wherever it is there, so older documents get it too", names.join(", "))
                }
            };
            if let Some(found) = self.found.get_mut(place) {
                found.written = written::nest(&from, &into, &with);
                found.is_sure = false;
                found.because = format!("{}; {words}", found.because);
            }
            self.old.extend(constants.into_iter().map(|(field, _)| field));
        }
    }

    fn is_always_with(&self, field: &KnownField, into: &Path) -> bool {
        self.new.field(into).is_some_and(|into| into.always == field.always && into.of_kinds == field.of_kinds)
    }
}

/// What makes values of one field such of the other; `None` if nothing does.
pub(super) fn retyped(from: &KnownField, to: &KnownField) -> Option<Vec<WrittenStep>> {
    let (before, after): (Vec<_>, Vec<_>) = (from.types_of_values().collect(), to.types_of_values().collect());
    if before.is_empty() || after.is_empty() || before.iter().any(|name| after.contains(name)) {
        return Some(Vec::new());
    }
    match (before.as_slice(), after.as_slice()) {
        (names, ["array"]) if to.items.iter().all(|item| names.contains(item)) => Some(vec![written::wrap(&to.path)]),
        ([before], after) => {
            let (first, second) = written::convertible(before, after.first()?)?;
            // What a schema calls a number may be several types: the first that is one.
            Some(vec![written::convert(&to.path, first, second)])
        }
        _ => None,
    }
}

/// How many of the values of one field the other has too, as a share of the fewer ones.
fn common_values(from: &KnownField, to: &KnownField) -> f64 {
    let fewer = from.values.len().min(to.values.len());
    if fewer < 2 || from.is_only("bool") {
        return 0.0;
    }
    let is_common = |value: &&Value<'static>| to.values.iter().any(|other| order::equal(value, other));
    share(from.values.iter().filter(is_common).count(), fewer)
}

/// What the fields below a path are called.
fn below(fields: &[KnownField], root: &Path) -> BTreeSet<String> {
    let inside = fields.iter().filter(|field| root.is_prefix_of(&field.path) && field.path != *root);
    inside
        .map(|field| Path { parts: field.path.parts.iter().skip(root.parts.len()).cloned().collect() }.dotted())
        .collect()
}

impl Search<'_> {
    /// A value for documents that have none, of the type that a schema asks for; `None` if it does not say any.
    pub(super) fn made_up(&self, field: &KnownField) -> Option<Value<'static>> {
        if let Some(first) = field.values.first() {
            return Some(first.clone());
        }
        let value = match field.types.first().copied()? {
            "array" => Value::Array(document::Array::empty()),
            "bool" => Value::Bool(false),
            "date" => Value::DateTime(0),
            "decimal" | "double" | "int" if field.types.contains(&"int") => Value::Int32(0),
            "double" => Value::Double(0.0),
            "int" => Value::Int32(0),
            "long" => Value::Int64(0),
            "object" => Value::Document(DocWriter::new().finish()),
            "string" => Value::from(""),
            _ => Value::Null,
        };
        Some(value)
    }
}
