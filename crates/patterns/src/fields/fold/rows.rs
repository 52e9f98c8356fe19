//! The rows of keys in one pass over their children, where these are read in this process: what [`super::Fold::grouping`] says in
//! stages that a real MongoDB runs, as one stage of code.

use document::pipeline::expr::field_of_document;
use document::pipeline::{Rows, Run, Stage, Stream, drain, from_documents};
use document::value::{Path, key};
use document::{Doc, Env, Result, Value};
use hashbrown::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// How the children of one key become its row.
pub trait RowMaker: Debug + Send + Sync + 'static {
    /// What is known of the children so far.
    type Gathered: Default + Send;

    fn add(&self, gathered: &mut Self::Gathered, child: &Doc<'_>) -> Result<()>;

    /// `{ _id: key, expected, expectedState? }`, and `ids` where the grouping gives them.
    fn row(&self, key: &Value<'_>, gathered: Self::Gathered) -> Doc<'static>;

    /// What it reads of a child; `None` for all of it.
    fn reads(&self) -> Option<Vec<Path>>;
}

/// A `$group` of children by what they have at `key`.
#[derive(Debug)]
pub struct KeyedRows<M> {
    pub key: Path,
    pub maker: M,
}

impl<M: RowMaker> Stage for KeyedRows<M> {
    fn name(&self) -> &'static str {
        "$_internalPleachKeyedRows"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        let rows = from_documents(Vec::new());
        Ok(Box::new(Gathering { stage: self, env: run.env.clone(), input: Some(input), rows }))
    }

    fn needs(&self, _: Option<Vec<Path>>) -> Option<Vec<Path>> {
        self.maker.reads().map(|paths| paths.into_iter().chain([self.key.clone()]).collect())
    }
}

struct Gathering<M> {
    stage: Arc<KeyedRows<M>>,
    env: Env,
    /// Until it is read.
    input: Option<Rows>,
    rows: Rows,
}

impl<M: RowMaker> Stream for Gathering<M> {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            self.rows = from_documents(self.stage.gather(&mut *input, &self.env)?);
        }
        self.rows.next()
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

impl<M: RowMaker> KeyedRows<M> {
    /// There are as many rows as keys were asked for: they need no disk.
    fn gather(&self, children: &mut dyn Stream, env: &Env) -> Result<Vec<Doc<'static>>> {
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut groups: Vec<(Value<'static>, M::Gathered)> = Vec::new();
        let mut place = Vec::new();
        drain(children, env, |child| {
            let of = field_of_document(&child, &self.key.parts);
            place.clear();
            key::encode(&of, &mut place);
            let at = match places.get(&place) {
                Some(at) => *at,
                None => {
                    places.insert(place.clone(), groups.len());
                    groups.push((of.into_owned(), M::Gathered::default()));
                    groups.len() - 1
                }
            };
            groups.get_mut(at).map_or(Ok(()), |(_, gathered)| self.maker.add(gathered, &child))
        })?;
        Ok(groups.into_iter().map(|(key, gathered)| self.maker.row(&key, gathered)).collect())
    }
}
