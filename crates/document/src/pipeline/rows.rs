//! Streams of documents: what stages consume and give.

use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::show;

/// A stream of documents.
pub trait Stream: Send {
    fn next(&mut self) -> Result<Option<Doc<'static>>>;
    /// Called when nobody will ask for a while (between two getMores): let go of snapshots and iterators; forward it.
    fn pause(&mut self);
}

pub type Rows = Box<dyn Stream>;

/// No documents.
pub fn empty() -> Rows {
    from_documents(Vec::new())
}

/// These documents.
pub fn from_documents(documents: Vec<Doc<'static>>) -> Rows {
    Box::new(Documents(documents.into_iter()))
}

struct Documents(std::vec::IntoIter<Doc<'static>>);

impl Stream for Documents {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        Ok(self.0.next())
    }

    fn pause(&mut self) {}
}

/// The largest document that may leave a pipeline: 16 MB and some room for what a server adds.
const MAX_RESULT: usize = (16 << 20) + (16 << 10);

/// Refuses a document that is too large to be sent. Inside a pipeline documents may be larger.
pub fn results(rows: Rows) -> Rows {
    Box::new(Results(rows))
}

struct Results(Rows);

impl Stream for Results {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(doc) = self.0.next()? else { return Ok(None) };
        let size = doc.as_bytes().len();
        if size <= MAX_RESULT {
            return Ok(Some(doc));
        }
        let first = doc.iter().next().map(|(name, value)| format!("{name}: {}", show::element(&value)));
        let first: String = first.unwrap_or_default().chars().take(150).collect();
        Err(Error::new(
            Code::BSONObjectTooLarge,
            format!(
                "BSONObj size: {size} (0x{size:X}) is invalid. Size must be between 0 and {MAX_RESULT}(16MB) First \
                 element: {first}"
            ),
        ))
    }

    fn pause(&mut self) {
        self.0.pause();
    }
}

/// Hands every document of `input` to `take`, asking now and then whether to stop. For stages that must see all first.
pub fn drain(input: &mut dyn Stream, env: &Env, mut take: impl FnMut(Doc<'static>) -> Result<()>) -> Result<()> {
    const BETWEEN_CHECKS: usize = 256;
    let mut seen = 0_usize;
    while let Some(doc) = input.next()? {
        seen += 1;
        if seen.is_multiple_of(BETWEEN_CHECKS) {
            (env.interrupt)()?;
        }
        take(doc)?;
    }
    Ok(())
}
