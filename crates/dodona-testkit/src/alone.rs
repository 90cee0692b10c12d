//! Tests that measure their whole process, and so cannot share it.

use std::process::Command;

/// The variable that names, in a process of its own, the test it was started for.
const ALONE: &str = "DODONA_ALONE";

/// Whether the test of this name (`module::function`, as the harness prints it) has its process
/// for itself and may begin.
///
/// Where it has not, it is run in a process of its own, and there is nothing left to do here:
///
/// ```no_run
/// if !dodona_testkit::is_alone("readers::a_reader_costs_little") {
///     return;
/// }
/// ```
///
/// # Panics
///
/// When the test fails over there, or there is none of that name.
pub fn is_alone(test: &str) -> bool {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        return true;
    }
    let program = std::env::current_exe().expect("a test knows its program");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(ALONE, test)
        .output()
        .expect("a test's program can be started again");
    let told = String::from_utf8_lossy(&output.stdout);
    print!("{told}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "`{test}` failed by itself");
    assert!(told.contains("1 passed"), "there is no test `{test}`");
    false
}
