//! What a MongoDB with access control lets a user do (SEMANTICS R37), and whether that covers an action.

use crate::op::Namespace;
use crate::raw::Doc;
use crate::value::Value;

/// The users of one connection and what they may do together, as `connectionStatus` with `showPrivileges` says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// The users as `name@database`; empty for a client that has not authenticated.
    pub users: Vec<String>,
    grants: Vec<Grant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    resource: Resource,
    actions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Resource {
    Any,
    Cluster,
    /// An empty name stands for every database, or for every collection that is not the server's own.
    Collection {
        db: String,
        collection: String,
    },
}

impl Resource {
    /// Returns `None` for resources that no collection of ours is: buckets of time series under their system name.
    fn parse(resource: &Doc<'_>) -> Option<Resource> {
        let is_set = |name: &str| resource.get(name).is_some_and(|value| value.is_truthy());
        let text = |name: &str| resource.get(name).and_then(|value| value.as_str().map(str::to_owned));
        if is_set("anyResource") {
            return Some(Resource::Any);
        }
        if is_set("cluster") {
            return Some(Resource::Cluster);
        }
        Some(Resource::Collection { db: text("db")?, collection: text("collection")? })
    }

    fn covers_database(&self, name: &str) -> bool {
        match self {
            Resource::Any => true,
            Resource::Cluster => false,
            Resource::Collection { db, collection } => collection.is_empty() && (db.is_empty() || db == name),
        }
    }

    fn covers(&self, ns: &Namespace) -> bool {
        match self {
            Resource::Any => true,
            Resource::Cluster => false,
            Resource::Collection { db, collection } => {
                let all_of_users = collection.is_empty() && !ns.collection.starts_with("system.");
                (db.is_empty() || **db == *ns.db) && (all_of_users || **collection == *ns.collection)
            }
        }
    }

    fn is_in(&self, name: &str) -> bool {
        match self {
            Resource::Any => true,
            Resource::Cluster => false,
            Resource::Collection { db, .. } => db.is_empty() || db == name,
        }
    }
}

impl Privileges {
    /// Reads the reply of `connectionStatus`.
    pub fn parse(status: &Doc<'_>) -> Privileges {
        let Some(Value::Document(info)) = status.get("authInfo") else { return Privileges::default() };
        let documents = |name: &str| match info.get(name) {
            Some(Value::Array(list)) => list
                .iter()
                .filter_map(|item| match item {
                    Value::Document(item) => Some(item.into_owned()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut users: Vec<String> = documents("authenticatedUsers")
            .iter()
            .filter_map(|user| Some(format!("{}@{}", user.get("user")?.as_str()?, user.get("db")?.as_str()?)))
            .collect();
        users.sort();
        let grant = |privilege: &Doc<'static>| {
            let (Some(Value::Document(resource)), Some(Value::Array(actions))) =
                (privilege.get("resource"), privilege.get("actions"))
            else {
                return None;
            };
            let actions = actions.iter().filter_map(|action| action.as_str().map(str::to_owned)).collect();
            Some(Grant { resource: Resource::parse(&resource)?, actions })
        };
        Privileges { users, grants: documents("authenticatedUserPrivileges").iter().filter_map(grant).collect() }
    }

    pub fn is_anonymous(&self) -> bool {
        self.users.is_empty()
    }

    /// Whether the action is allowed on this collection.
    pub fn allows(&self, action: &str, ns: &Namespace) -> bool {
        self.any(action, |resource| resource.covers(ns))
    }

    /// Whether the action is allowed on the whole database.
    pub fn allows_on_database(&self, action: &str, db: &str) -> bool {
        self.any(action, |resource| resource.covers_database(db))
    }

    /// Whether the action is allowed on at least one collection of the database.
    pub fn allows_somewhere_in(&self, action: &str, db: &str) -> bool {
        self.any(action, |resource| resource.is_in(db))
    }

    /// Whether the action is allowed on the cluster.
    pub fn allows_on_cluster(&self, action: &str) -> bool {
        self.any(action, |resource| matches!(resource, Resource::Any | Resource::Cluster))
    }

    fn any(&self, action: &str, covers: impl Fn(&Resource) -> bool) -> bool {
        let has = |grant: &&Grant| grant.actions.iter().any(|allowed| allowed == action || allowed == "anyAction");
        self.grants.iter().filter(has).any(|grant| covers(&grant.resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    fn privileges(resource: bson::Document, actions: &[&str]) -> Privileges {
        let status = doc! { "authInfo": {
            "authenticatedUsers": [{ "user": "ada", "db": "shop" }],
            "authenticatedUserPrivileges": [{ "resource": resource, "actions": actions.to_vec() }],
        } };
        Privileges::parse(&Doc::from(status))
    }

    #[test]
    fn resources_cover_what_mongodb_says() {
        let orders = Namespace::new("shop", "orders");
        for (resource, allowed) in [
            (doc! { "db": "shop", "collection": "orders" }, true),
            (doc! { "db": "shop", "collection": "" }, true),
            (doc! { "db": "", "collection": "orders" }, true),
            (doc! { "db": "", "collection": "" }, true),
            (doc! { "anyResource": true }, true),
            (doc! { "db": "shop", "collection": "order" }, false),
            (doc! { "db": "other", "collection": "" }, false),
            (doc! { "cluster": true }, false),
            (doc! { "db": "shop", "system_buckets": "orders" }, false),
        ] {
            assert_eq!(privileges(resource.clone(), &["find"]).allows("find", &orders), allowed, "{resource}");
            assert!(!privileges(resource, &["insert"]).allows("find", &orders));
        }
    }

    #[test]
    fn all_collections_are_those_of_users() {
        let everywhere = privileges(doc! { "db": "", "collection": "" }, &["find"]);
        assert!(!everywhere.allows("find", &Namespace::new("shop", "system.users")));
        assert!(
            privileges(doc! { "anyResource": true }, &["anyAction"])
                .allows("find", &Namespace::new("shop", "system.users"))
        );
    }

    #[test]
    fn a_database_is_covered_as_a_whole_or_in_part() {
        let one = privileges(doc! { "db": "shop", "collection": "orders" }, &["find"]);
        assert!(one.allows_somewhere_in("find", "shop") && !one.allows_on_database("find", "shop"));
        let all = privileges(doc! { "db": "shop", "collection": "" }, &["find"]);
        assert!(all.allows_on_database("find", "shop") && !all.allows_somewhere_in("find", "other"));
        assert!(privileges(doc! { "cluster": true }, &["inprog"]).allows_on_cluster("inprog"));
        assert!(!all.allows_on_cluster("find"));
    }

    #[test]
    fn nobody_has_no_name() {
        let none = doc! { "authInfo": { "authenticatedUsers": [], "authenticatedUserPrivileges": [] } };
        assert!(Privileges::parse(&Doc::from(none)).is_anonymous());
        assert_eq!(privileges(doc! { "cluster": true }, &["x"]).users, ["ada@shop"]);
    }
}
