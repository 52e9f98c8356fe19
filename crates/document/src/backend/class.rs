//! What a command is, as far as it decides who answers it; and the decision.

/// The class of a command. The server's registry of commands says it of each; nobody else tells commands apart by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// About the server, its sessions and users, or unknown here.
    Other,
    /// `hello` and its older names.
    Hello,
    /// The verbs of Pleach.
    Pleach,
    Authenticate,
    EndSessions,
    CommitTransaction,
    AbortTransaction,
    GetMore,
    KillCursors,
    Find,
    Count,
    Distinct,
    Aggregate,
    Insert,
    Update,
    Delete,
    FindAndModify,
    BulkWrite,
    Create,
    CollMod,
    Drop,
    Rename,
    DropDatabase,
    CreateIndexes,
    DropIndexes,
    ListIndexes,
    ListCollections,
    Explain,
    ServerStatus,
    /// These write, and no plan is ever made for them.
    ApplyOps,
    CloneAsCapped,
    ConvertToCapped,
    MapReduce,
}

impl Class {
    /// Reads documents of the collection that it names.
    pub fn is_read(self) -> bool {
        matches!(self, Class::Find | Class::Count | Class::Distinct | Class::Aggregate)
    }

    /// Writes documents of the collection that it names.
    pub fn is_write(self) -> bool {
        matches!(self, Class::Insert | Class::Update | Class::Delete | Class::FindAndModify)
    }

    /// Makes, changes or removes the collection that it names.
    pub fn defines_collection(self) -> bool {
        matches!(self, Class::Create | Class::CollMod | Class::Drop)
    }

    pub fn is_about_indexes(self) -> bool {
        matches!(self, Class::CreateIndexes | Class::DropIndexes | Class::ListIndexes)
    }

    pub fn ends_transaction(self) -> bool {
        matches!(self, Class::CommitTransaction | Class::AbortTransaction)
    }
}

/// Who answers a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The server behind: no rule concerns the command, and its bytes may pass untouched.
    Forward,
    /// This process; no rule concerns the command.
    Plain,
    /// This process, by the rules that concern the command.
    Planned,
    /// Nobody. What the error says depends on the rights of the client: see [`super::Front::refuse`].
    Refused,
    /// This process, which may have to wait for a change of rules first.
    Wait,
}
