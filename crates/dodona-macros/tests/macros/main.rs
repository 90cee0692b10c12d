//! What the attributes accept, and what they say when they do not.

mod shapes;

/// None of the cases may build: then the compiler only checks, which is most of the cost saved.
#[test]
fn a_method_that_is_wrong_is_told_what_one_looks_like() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail_*.rs");
}
