//! Where rules are measured: Pleach on its embedded store, and in front of a real MongoDB.

use crate::target::Target;
use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct Doors {
    /// Pleach on its embedded store, as HOST:PORT[:PID].
    #[arg(long)]
    embedded: Option<String>,
    /// Pleach in front of the real MongoDB, as HOST:PORT[:PID]; needs --mongod.
    #[arg(long, requires = "mongod")]
    proxy: Option<String>,
    /// The real MongoDB itself, as HOST:PORT[:PID].
    #[arg(long)]
    mongod: Option<String>,
}

/// Where the ways of a case run: by hand on the plain side, by rule on the kept one.
pub(crate) struct Door {
    pub(crate) name: &'static str,
    pub(crate) plain: Target,
    pub(crate) kept: Target,
}

impl Doors {
    pub(crate) fn open(&self) -> Result<Vec<Door>> {
        let target = |name: &str, place: &str| Target::parse(&format!("{name}={place}"));
        let mut doors = Vec::new();
        if let Some(place) = &self.embedded {
            doors.push(Door { name: "embedded", plain: target("embedded", place)?, kept: target("embedded", place)? });
        }
        if let (Some(proxy), Some(mongod)) = (&self.proxy, &self.mongod) {
            doors.push(Door { name: "upstream", plain: target("mongod", mongod)?, kept: target("proxy", proxy)? });
        }
        anyhow::ensure!(!doors.is_empty(), "give --embedded, or --proxy and --mongod");
        Ok(doors)
    }
}
