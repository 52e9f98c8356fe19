# The steps of CI by name; `.ci/run` runs them in this order.
default: test fmt lint

test:
    cargo test

fmt:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Every compat script on Pleach and on a real MongoDB.
compat:
    judge/compare

clients:
    clients/run

# Every example on a server of its own.
examples:
    examples/run

bench *options:
    bench/run {{options}}

# Write the generated files anew.
gen:
    PLEACH_GENERATE=1 cargo test --test it -- generated schema
    PLEACH_GENERATE=1 cargo test -p pleach-patterns findings_of_the_cases
