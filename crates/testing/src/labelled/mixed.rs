//! Several symptoms in one database, among collections that have none.

use super::{Making, Set, clean};

/// Sets of different families whose collections have different names, two or three together, beside a database without symptoms.
pub(super) fn sets(making: Making) -> Vec<Set> {
    let Making { seed, scale } = making;
    let another = Making { seed: seed.wrapping_mul(31).wrapping_add(7), scale };
    let families = [
        super::copies::sets(another),
        super::counters::sets(another),
        super::windows::sets(another),
        super::arrays::sets(another),
        super::outliers::sets(another),
        super::series::sets(another),
        super::kinds::sets(another),
        super::versions::sets(another),
        super::slots::sets(another),
    ];
    let mut shown: Vec<Vec<Set>> =
        families.into_iter().map(|family| family.into_iter().filter(|set| set.shown() > 0).collect()).collect();
    let mut all = Vec::new();
    for number in 0..8 {
        let mut set = if number % 2 == 0 { clean::shop(another) } else { clean::blog(another) };
        let mut names = Vec::new();
        for offset in 0..3 {
            let place = (number + offset * 4) % shown.len();
            let family = &mut shown[place];
            let free = family.iter().position(|candidate| !shares_name(&set, candidate));
            if let Some(free) = free {
                let taken = family.remove(free);
                names.push(taken.name.clone());
                set = set.and(taken);
            }
        }
        all.push(set.named(format!("together: {}", names.join("; "))));
    }
    all
}

fn shares_name(one: &Set, other: &Set) -> bool {
    one.collections.iter().any(|(name, _)| other.collections.iter().any(|(known, _)| known == name))
}
