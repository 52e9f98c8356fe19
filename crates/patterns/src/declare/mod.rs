//! From YAML or BSON to checked rules, with positions in every finding.
