//! From a projection document to steps: inclusion or exclusion, which may not be mixed; paths that collide; computed
//! fields; and the operators that only `find` has.

use super::Projection;
use super::find_only::{Cut, Slice};
use super::meta;
use super::tree::{Branch, Compute, Others, Step};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::filter::FilterParser;
use crate::pipeline::expr::{self, EXPRESSIONS, Expr, Names};
use crate::raw::{Doc, DocWriter};
use crate::value::path::is_operator_name;
use crate::value::{Path, Value, show};
use std::sync::Arc;

/// Whose projection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Find,
    Stage,
}

/// Decided by the first field that says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Inclusion,
    Exclusion,
}

pub(super) fn parse(spec: &Doc<'_>, dialect: Dialect, names: &mut Names) -> Result<Projection> {
    if spec.is_empty() && dialect == Dialect::Stage {
        return fail(51272, "projection specification must have at least one field");
    }
    let mut parse = Parse {
        dialect,
        names,
        kind: None,
        id: None,
        positional: None,
        slices: Vec::new(),
        has_elem_match: false,
        has_meta: false,
        folding: None,
    };
    let mut tree = Branch::default();
    parse.fields(spec, &mut tree, &[])?;
    if let Some(error) = parse.folding {
        parse.names.note_folding_failed();
        return Err(error);
    }
    let kind = parse.kind.unwrap_or_else(|| parse.default_kind());
    if kind == Kind::Inclusion && tree.step("_id").is_none() {
        tree.steps.insert(0, ("_id".into(), Step::Include));
    }
    tree.finish();
    let places = tree.leaves_places(parse.names);
    let others = if kind == Kind::Inclusion { Others::Drop } else { Others::Keep };
    let (positional, slices) = (parse.positional, parse.slices);
    Ok(Projection { tree, others, positional, slices, places, source: None, reads_score: false })
}

pub(super) fn parse_unset(paths: &[&str], names: &mut Names) -> Result<Projection> {
    let mut spec = DocWriter::new();
    for path in paths {
        spec.append(path, &Value::Bool(false));
    }
    parse(&spec.finish(), Dialect::Stage, names)
}

pub(super) fn fail<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::Location(code), message))
}

struct Parse<'n> {
    dialect: Dialect,
    names: &'n mut Names,
    kind: Option<Kind>,
    /// What was said of `_id` as a whole.
    id: Option<Kind>,
    positional: Option<Path>,
    slices: Vec<Slice>,
    has_elem_match: bool,
    has_meta: bool,
    /// Constants that cannot be evaluated are reported after everything else, as the server evaluates them last.
    folding: Option<Error>,
}

impl Parse<'_> {
    /// Nothing but `_id` and operators that go with both kinds.
    fn default_kind(&self) -> Kind {
        if self.id == Some(Kind::Inclusion) {
            return Kind::Inclusion;
        }
        match self.dialect {
            Dialect::Find if !self.slices.is_empty() => Kind::Exclusion,
            Dialect::Find if self.has_elem_match => Kind::Inclusion,
            Dialect::Stage if self.has_meta => Kind::Inclusion,
            _ => Kind::Exclusion,
        }
    }

    /// `above` is the path to `branch`; messages name paths relative to it, as MongoDB's do.
    fn fields(&mut self, spec: &Doc<'_>, branch: &mut Branch, above: &[Arc<str>]) -> Result<()> {
        for (name, value) in spec.iter() {
            self.field(name.as_str(), &value, branch, above)?;
        }
        Ok(())
    }

    fn field(&mut self, name: &str, value: &Value<'_>, branch: &mut Branch, above: &[Arc<str>]) -> Result<()> {
        if let Some(path) = positional_path(name)? {
            return self.positional(path, value, branch, above, name);
        }
        match value {
            Value::Document(inner) => self.object(name, inner, branch, above),
            Value::Bool(_) | Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal(_) => {
                match value.is_truthy() {
                    true => self.include(name, branch, above),
                    false => self.exclude(name, branch, above),
                }
            }
            _ => {
                let expr = self.expr(value)?;
                add(branch, &Path::field_path(name)?, Step::Compute(Compute::Expr(expr)))?;
                if self.kind == Some(Kind::Exclusion) {
                    let shown = show::element(value);
                    return fail(31310, format!("Cannot use an expression {name}: {shown} in an exclusion projection"));
                }
                self.kind = Some(Kind::Inclusion);
                Ok(())
            }
        }
    }

    fn expr(&mut self, value: &Value<'_>) -> Result<Expr> {
        match expr::parse(value, self.names) {
            Err(error) if self.names.take_folding_failed() => {
                self.folding.get_or_insert(error);
                Ok(Expr::Const(Value::Null))
            }
            parsed => parsed,
        }
    }

    fn include(&mut self, name: &str, branch: &mut Branch, above: &[Arc<str>]) -> Result<()> {
        add(branch, &Path::field_path(name)?, Step::Include)?;
        self.decide_inclusion(name, above)
    }

    fn decide_inclusion(&mut self, name: &str, above: &[Arc<str>]) -> Result<()> {
        if name == "_id" && above.is_empty() {
            self.id = Some(Kind::Inclusion);
            return Ok(());
        }
        if self.kind == Some(Kind::Exclusion) {
            return fail(31253, format!("Cannot do inclusion on field {name} in exclusion projection"));
        }
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    fn exclude(&mut self, name: &str, branch: &mut Branch, above: &[Arc<str>]) -> Result<()> {
        add(branch, &Path::field_path(name)?, Step::Exclude)?;
        if name == "_id" && above.is_empty() {
            self.id = Some(Kind::Exclusion);
            return Ok(());
        }
        if self.kind == Some(Kind::Inclusion) {
            return fail(31254, format!("Cannot do exclusion on field {name} in inclusion projection"));
        }
        self.kind = Some(Kind::Exclusion);
        Ok(())
    }

    fn positional(
        &mut self,
        path: &str,
        value: &Value<'_>,
        branch: &mut Branch,
        above: &[Arc<str>],
        name: &str,
    ) -> Result<()> {
        if self.dialect == Dialect::Stage {
            return fail(31324, "Cannot use positional projection in aggregation projection");
        }
        match value {
            Value::Document(_) => {
                return fail(31271, "positional projection cannot be used with an expression or sub object");
            }
            value if value.is_number() || matches!(value, Value::Bool(_)) => {
                if !value.is_truthy() {
                    return fail(31395, "positional projection cannot be used with exclusion");
                }
            }
            _ => return fail(31308, "positional projection cannot be used with a literal"),
        }
        if self.positional.is_some() {
            return fail(31276, "Cannot specify more than one positional projection per query.");
        }
        if self.has_elem_match {
            return fail(31256, "Cannot specify positional operator and $elemMatch.");
        }
        let path = Path::field_path(path)?;
        add(branch, &path, Step::Include)?;
        self.positional = Some(absolute(above, &path));
        self.decide_inclusion(name, above)
    }

    /// An operator, or a document of sub-fields.
    fn object(&mut self, name: &str, inner: &Doc<'_>, branch: &mut Branch, above: &[Arc<str>]) -> Result<()> {
        let mut fields = inner.iter();
        let Some((first, argument)) = fields.next() else {
            return fail(51270, "An empty sub-projection is not a valid value. Found empty object at path");
        };
        if is_operator_name(first.as_str()) && fields.next().is_none() {
            return self.operator(name, first.as_str(), &argument, inner, branch, above);
        }
        let path = Path::field_path(name)?;
        let Some((branch, last)) = parent(branch, &path)? else { return Ok(()) };
        let Some(below) = branch.enter(last) else { return fail(31250, format!("Path collision at {path}")) };
        let above: Vec<Arc<str>> = above.iter().chain(path.parts.iter().map(|part| &part.name)).cloned().collect();
        self.fields(inner, below, &above)
    }

    fn operator(
        &mut self,
        name: &str,
        operator: &str,
        argument: &Value<'_>,
        whole: &Doc<'_>,
        branch: &mut Branch,
        above: &[Arc<str>],
    ) -> Result<()> {
        match (operator, self.dialect) {
            ("$slice", Dialect::Find) => self.slice(name, argument, whole, branch, above),
            ("$elemMatch", Dialect::Find) => self.elem_match(name, argument, whole, branch, above),
            ("$elemMatch", Dialect::Stage) => {
                Err(Error::new(Code::InvalidPipelineOperator, "Cannot use $elemMatch in this context"))
            }
            ("$meta", dialect) => {
                let compute = meta::parse(argument, dialect, self.names)?;
                self.has_meta = true;
                add(branch, &Path::field_path(name)?, Step::Compute(compute))
            }
            _ => self.expression(name, operator, whole, branch),
        }
    }

    fn expression(&mut self, name: &str, operator: &str, whole: &Doc<'_>, branch: &mut Branch) -> Result<()> {
        if EXPRESSIONS.binary_search_by(|def| def.name.cmp(operator)).is_err() {
            return fail(31325, format!("Unknown expression {operator}"));
        }
        if self.kind == Some(Kind::Exclusion) {
            return fail(31252, "Cannot use expression other than $meta in exclusion projection");
        }
        let expr = self.expr(&Value::Document(whole.borrow()))?;
        add(branch, &Path::field_path(name)?, Step::Compute(Compute::Expr(expr)))?;
        self.kind = Some(Kind::Inclusion);
        Ok(())
    }

    /// `find`'s own `$slice`, or failing that the expression of the same name.
    fn slice(
        &mut self,
        name: &str,
        argument: &Value<'_>,
        whole: &Doc<'_>,
        branch: &mut Branch,
        above: &[Arc<str>],
    ) -> Result<()> {
        let path = Path::field_path(name)?;
        let own = Cut::parse(argument).and_then(|cut| add(branch, &path, Step::Include).map(|()| cut));
        let why = match own {
            Ok(cut) => {
                self.slices.push(Slice { path: absolute(above, &path), cut });
                return Ok(());
            }
            Err(why) => why,
        };
        self.expression(name, "$slice", whole, branch).map_err(|error| match error.code() {
            Code::Location(28667) => error.context(&format!(
                "Invalid $slice syntax. The given syntax {} did not match the find() syntax because :: {}: {} :: The given syntax did not match the expression $slice syntax. :: caused by :: ",
                show::document(whole),
                why.code().name(),
                why.message(),
            )),
            _ => error,
        })
    }

    fn elem_match(
        &mut self,
        name: &str,
        argument: &Value<'_>,
        whole: &Doc<'_>,
        branch: &mut Branch,
        above: &[Arc<str>],
    ) -> Result<()> {
        if !matches!(argument, Value::Document(_)) {
            let kind = argument.type_name();
            return fail(31274, format!("elemMatch: Invalid argument, object required, but got {kind}"));
        }
        if self.positional.is_some() {
            return fail(31255, "Cannot specify positional operator and $elemMatch.");
        }
        let path = Path::field_path(name)?;
        if path.parts.len() > 1 || !above.is_empty() {
            return fail(31275, "Cannot use $elemMatch projection on a nested field.");
        }
        let test = FilterParser::new(self.names).operators(name, whole)?.pop();
        let test = test.ok_or_else(|| Error::bad_value("$elemMatch needs an Object"))?;
        self.has_elem_match = true;
        add(branch, &path, Step::Compute(Compute::ElemMatch { field: name.into(), test }))
    }
}

/// The path before `.$`, if that is how the name ends.
fn positional_path(name: &str) -> Result<Option<&str>> {
    match name.strip_suffix(".$") {
        Some(path) if !path.is_empty() => Ok(Some(path)),
        _ if name.contains(".$.") => fail(
            31394,
            "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent.",
        ),
        _ => Ok(None),
    }
}

fn absolute(above: &[Arc<str>], path: &Path) -> Path {
    let above = above.iter().map(|name| crate::value::path::Part::new(name));
    Path { parts: above.chain(path.parts.iter().cloned()).collect() }
}

/// Puts a step at a path; two steps may not meet.
fn add(branch: &mut Branch, path: &Path, step: Step) -> Result<()> {
    let Some((branch, last)) = parent(branch, path)? else { return Ok(()) };
    if branch.step(last).is_some() {
        return fail(31250, format!("Path collision at {path}"));
    }
    branch.steps.push((last.clone(), step));
    Ok(())
}

/// The branch in which the last field of a path stands, made if need be, and the name of that field.
fn parent<'b, 'p>(branch: &'b mut Branch, path: &'p Path) -> Result<Option<(&'b mut Branch, &'p Arc<str>)>> {
    let Some((last, leading)) = path.parts.split_last() else { return Ok(None) };
    let mut branch = branch;
    for part in leading {
        branch = match branch.enter(&part.name) {
            Some(branch) => branch,
            None => return fail(31249, format!("Path collision at {path} remaining portion {}", tail(path))),
        };
    }
    Ok(Some((branch, &last.name)))
}

/// All but the first part.
fn tail(path: &Path) -> String {
    Path { parts: path.parts.iter().skip(1).cloned().collect() }.dotted()
}
