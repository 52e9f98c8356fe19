//! An outlier array for tests.

use crate::rule::Outlier;
use document::op::Namespace;

pub(crate) fn followers(keep: usize) -> Outlier {
    Outlier {
        host: Namespace::new("shop", "users"),
        field: "followers".to_owned(),
        keep,
        keep_bytes: None,
        overflow: Namespace::new("shop", "follower_overflow"),
        owner: "userId".to_owned(),
        item: "followerId".to_owned(),
        flag: "hasOverflow".to_owned(),
        count: "followerCount".to_owned(),
        unique: false,
    }
}
