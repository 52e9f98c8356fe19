//! Where the bottleneck is: the working set of documents and of indexes against the memory that there is.

use crate::measure::Bytes;

/// What a layout waits for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// All of it fits into memory.
    Cpu,
    /// Indexes fit, documents do not: a read of a document that is not cached waits for the disk.
    Data,
    /// The indexes themselves do not fit, or take as much as the documents: every look-up by key waits.
    Indexes,
}

/// From this share of the documents' bytes on, indexes are what memory is for.
const NEAR: f64 = 0.75;

impl Bottleneck {
    pub fn of(full: Bytes, memory: f64) -> Bottleneck {
        let fits = full.data + full.indexes <= memory;
        let near = full.indexes >= NEAR * full.data;
        match () {
            () if fits => Bottleneck::Cpu,
            () if full.indexes > memory || near => Bottleneck::Indexes,
            () => Bottleneck::Data,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Bottleneck::Cpu => "cpu",
            Bottleneck::Data => "data",
            Bottleneck::Indexes => "indexes",
        }
    }
}

/// The layout that is, and those that are considered.
pub struct Moves<'m> {
    pub memory: f64,
    pub layouts: Vec<(&'m str, Bytes)>,
}

impl Moves<'_> {
    pub fn before(&self) -> Bottleneck {
        self.layouts.first().map_or(Bottleneck::Cpu, |(_, bytes)| Bottleneck::of(*bytes, self.memory))
    }

    /// With the last one.
    pub fn after(&self) -> Bottleneck {
        self.layouts.last().map_or(Bottleneck::Cpu, |(_, bytes)| Bottleneck::of(*bytes, self.memory))
    }

    /// One sentence about every layout after the first.
    pub fn because(&self) -> String {
        let before = self.before();
        let all: Vec<String> = match self.layouts.as_slice() {
            [] => Vec::new(),
            [only] => vec![sentence(only.0, only.1, self.memory, None)],
            [_, others @ ..] => {
                others.iter().map(|(name, bytes)| sentence(name, *bytes, self.memory, Some(before))).collect()
            }
        };
        all.join("; ")
    }
}

fn sentence(name: &str, bytes: Bytes, memory: f64, before: Option<Bottleneck>) -> String {
    let now = Bottleneck::of(bytes, memory);
    let share = 100.0 * bytes.indexes / bytes.data.max(1.0);
    let is_larger = bytes.indexes > memory;
    let (data, indexes, memory) = (shown(bytes.data), shown(bytes.indexes), shown(memory));
    let why = match now {
        Bottleneck::Cpu => format!("data ({data}) and indexes ({indexes}) fit into {memory}"),
        Bottleneck::Data => format!("indexes ({indexes}) leave too little of {memory} for the data ({data})"),
        Bottleneck::Indexes if is_larger => {
            format!("indexes ({indexes}) alone do not fit into {memory}, and there is the data ({data}) too")
        }
        Bottleneck::Indexes => {
            format!("indexes ({indexes}) are {share:.0} % of the data ({data}) and compete with it for {memory}")
        }
    };
    let where_to = match (now, before) {
        (now, Some(before)) if now == before => format!("stays at {}", words(now)),
        (now, Some(_)) => format!("moves to {}", words(now)),
        (now, None) => format!("is {}", words(now)),
    };
    format!("in {name} the bottleneck {where_to}, because {why}")
}

fn words(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Cpu => "the processor",
        Bottleneck::Data => "the data",
        Bottleneck::Indexes => "the index",
    }
}

/// Bytes for people.
pub fn shown(bytes: f64) -> String {
    let units = [("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("KB", 1_024.0)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) if bytes / size >= 99.95 => format!("{:.0} {unit}", bytes / size),
        Some((unit, size)) => format!("{:.1} {unit}", bytes / size),
        None => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabytes(data: f64, indexes: f64, disk: f64) -> Bytes {
        let size = 1_073_741_824.0;
        Bytes { data: data * size, indexes: indexes * size, disk: disk * size }
    }

    /// The figures of the case study: 1.5 GB of cache.
    #[test]
    fn with_month_documents_the_bottleneck_moves_to_the_index() {
        let memory = 1.5 * 1_073_741_824.0;
        let (array, month, quarter) =
            (gigabytes(11.96, 1.11, 3.24), gigabytes(11.10, 3.13, 3.33), gigabytes(8.19, 1.22, 2.34));
        let layouts = vec![("V5R3", array), ("V6R0", month), ("V6R1", quarter)];
        let moves = Moves { memory, layouts };
        assert_eq!((moves.before(), moves.after()), (Bottleneck::Data, Bottleneck::Data));
        assert!(moves.because().contains("in V6R0 the bottleneck moves to the index"), "{}", moves.because());
        assert!(moves.because().contains("in V6R1 the bottleneck stays at the data"), "{}", moves.because());
        let near = Bottleneck::of(gigabytes(1.2, 1.0, 0.3), memory);
        assert_eq!(near, Bottleneck::Indexes, "an index as large as what it leads to");
        let roomy = Moves { memory: 100.0 * memory, layouts: vec![("V5R3", array)] };
        assert_eq!(roomy.before(), Bottleneck::Cpu);
    }

    #[test]
    fn bytes_are_shown_shortly() {
        let texts: Vec<String> = [12.0, 2_048.0, 1_572_864.0, 5e11].into_iter().map(shown).collect();
        assert_eq!(texts, ["12 B", "2.0 KB", "1.5 MB", "466 GB"]);
    }
}
