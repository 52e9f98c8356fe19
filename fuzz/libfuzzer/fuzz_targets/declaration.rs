//! libFuzzer entry of the target `declaration`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for target in pleach_fuzz::TARGETS.iter().filter(|target| target.name == "declaration") {
        (target.run)(bytes);
    }
});
