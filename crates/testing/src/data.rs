//! Where a test's data is, whichever backend it has: it can be opened again and again.

use document::backend::Backend;
use engine::{Engine, Options};
use std::sync::Arc;
use tempfile::TempDir;

#[derive(Clone)]
pub enum Data {
    /// A folder that is removed with the last value that names it.
    Folder(Arc<TempDir>),
    /// The address of a real MongoDB.
    Mongo(Arc<str>),
}

/// A backend, and the engine if it is one.
#[derive(Clone)]
pub struct Opened {
    pub backend: Arc<dyn Backend>,
    pub engine: Option<Engine>,
    /// Kept as long as it is open.
    pub data: Data,
}

/// Little memory: several tests run at once.
pub fn options() -> Options {
    Options { memory_bytes: 64 << 20, ..Options::default() }
}

impl Data {
    pub fn folder() -> Data {
        Data::Folder(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub async fn open(&self) -> Opened {
        match self {
            Data::Folder(_) => self.open_folder(options()),
            Data::Mongo(uri) => {
                let uri = upstream::Uri::parse(uri).unwrap();
                let backend = Arc::new(upstream::Upstream::open(uri).await.unwrap());
                Opened { backend, engine: None, data: self.clone() }
            }
        }
    }

    /// Without waiting for anything.
    pub fn open_folder(&self, options: Options) -> Opened {
        let Data::Folder(folder) = self else { panic!("a MongoDB is no folder") };
        let engine = Engine::open(folder.path(), options).unwrap();
        Opened { backend: Arc::new(engine.clone()), engine: Some(engine), data: self.clone() }
    }
}

impl Opened {
    /// An engine in a folder of its own.
    pub fn engine() -> Opened {
        Data::folder().open_folder(options())
    }

    /// Whatever is still under way ends.
    pub fn close(self) {
        if let Some(engine) = self.engine {
            engine.close();
        }
    }
}
