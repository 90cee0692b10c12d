//! `dodona call`.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::harness::{Home, assert_shown, check, wait_until};

#[test]
fn a_result_is_shown_for_people() {
    check("call_unary", &["call", "echo.say", "text=hello"]);
}

#[test]
fn a_result_is_one_line_for_programs() {
    check(
        "call_unary_json",
        &["call", "echo.say", "text=hello", "--json"],
    );
}

#[test]
fn items_are_shown_for_people() {
    check("call_stream", &["call", "echo.count", "to=3"]);
}

#[test]
fn progress_is_shown_line_by_line_when_asked_for() {
    check("call_stream_verbose", &["call", "echo.count", "to=1", "-v"]);
}

#[test]
fn items_are_json_lines_for_programs() {
    check(
        "call_stream_json",
        &["call", "echo.count", "to=2", "--json"],
    );
}

#[test]
fn nested_items_have_their_path() {
    check("call_nested", &["call", "echo.nest", "depth=2"]);
}

#[test]
fn a_failure_has_its_hint_on_a_line_of_its_own() {
    check("call_failing", &["call", "echo.fail", "message=no leaves"]);
}

#[test]
fn a_panic_fails_the_call() {
    check("call_panicking", &["call", "echo.panic"]);
}

#[test]
fn a_call_that_takes_too_long_is_limited() {
    check(
        "call_timeout",
        &["call", "echo.slow", "ms=60000", "--timeout", "20ms"],
    );
    check(
        "call_stream_timeout",
        &[
            "call",
            "echo.count",
            "to=9",
            "delay_ms=60000",
            "--timeout",
            "20ms",
        ],
    );
}

#[test]
fn a_missing_parameter_is_named() {
    check("call_missing_parameter", &["call", "echo.say"]);
}

#[test]
fn a_parameter_out_of_range_is_named() {
    check("call_out_of_range", &["call", "echo.count", "to=99999999"]);
}

#[test]
fn a_value_of_the_wrong_kind_is_named() {
    check("call_wrong_kind", &["call", "echo.count", "to=many"]);
}

#[test]
fn an_unknown_key_is_told_with_the_nearest() {
    check("call_unknown_key", &["call", "echo.say", "txet=hello"]);
}

#[test]
fn an_argument_without_a_key_is_told_how_to_write_it() {
    check("call_no_key", &["call", "echo.say", "hello"]);
}

#[test]
fn an_unknown_method_is_told_with_the_nearest() {
    check("call_unknown_method", &["call", "echo.sya"]);
    check("call_not_a_method", &["call", "echo"]);
}

#[test]
fn bad_json_is_shown_where_it_is_bad() {
    check(
        "call_bad_json",
        &["call", "echo.say", "--params", r#"{"text": }"#],
    );
    check(
        "call_not_an_object",
        &["call", "echo.say", "--params", "[1]"],
    );
    check("call_bad_json_pair", &["call", "echo.say", "text:=hello"]);
}

#[test]
fn a_bad_time_is_told_with_examples() {
    check(
        "call_bad_timeout",
        &["call", "echo.say", "text=x", "--timeout", "soon"],
    );
}

#[test]
fn parameters_come_from_files_and_standard_input() {
    let home = Home::new();
    let file = home.path().with_file_name("params.json");
    std::fs::write(&file, r#"{"text": "from a file"}"#).unwrap();
    let outcome = home.run(&["call", "echo.say", "--params", "@params.json", "--json"]);
    assert_eq!(outcome.stdout, "{\"text\":\"from a file\"}\n");
    let arguments = ["call", "echo.say", "--params", "-", "--json"];
    let outcome = home.run_with_input(&arguments, r#"{"text": "from a pipe"}"#);
    assert_eq!(outcome.stdout, "{\"text\":\"from a pipe\"}\n");
    assert_shown(
        "call_no_file",
        &home.run(&["call", "echo.say", "--params", "@nothing.json"]),
    );
    assert_shown(
        "call_bad_json_input",
        &home.run_with_input(&arguments, "{\n  \"text\": \"a\n}"),
    );
}

#[test]
fn text_cannot_steer_the_terminal() {
    let outcome = Home::new().run(&["call", "echo.fail", "message=\u{1b}[2Jgone"]);
    assert_eq!(
        outcome.stderr,
        "error: \u{fffd}[2Jgone\nhint: call `echo.say` instead\n"
    );
}

#[test]
fn colours_are_used_only_when_wanted() {
    let home = Home::new();
    let arguments = ["call", "echo.fail"];
    let coloured = |command: &mut std::process::Command| {
        let output = command.output().unwrap();
        String::from_utf8(output.stderr).unwrap().contains('\u{1b}')
    };
    assert!(!coloured(&mut home.command(&arguments)));
    let always = ["call", "echo.fail", "--color", "always"];
    assert!(coloured(&mut home.command(&always)));
    let never = ["call", "echo.fail", "--color", "never"];
    assert!(!coloured(home.command(&never).env("CLICOLOR_FORCE", "1")));
    assert!(!coloured(home.command(&arguments).env("NO_COLOR", "1")));
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_call_quietly() {
    let home = Home::new();
    for arguments in [
        &["call", "echo.count", "to=10000000"][..],
        &["call", "echo.count", "to=10000000", "--json"],
    ] {
        let mut child = home.command(arguments).spawn().unwrap();
        let mut first = String::new();
        // Dropping the reader closes the pipe.
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut first)
            .unwrap();
        assert!(first.contains("echo"), "{first}");
        let mut told = String::new();
        let mut stderr = child.stderr.take().unwrap();
        stderr.read_to_string(&mut told).unwrap();
        assert_eq!(told, "");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_call_on_a_server_too() {
    let home = Home::new();
    let mut server = home
        .command(&["serve", "--listen", "127.0.0.1:0", "--ready-file", "ready"])
        .spawn()
        .unwrap();
    let ready = home.path().with_file_name("ready");
    wait_until("the server is ready", || ready.exists());
    let mut child = home
        .command(&["call", "echo.count", "to=10000000", "delay_ms=1"])
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let running = home.run(&["calls"]).stdout;
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(running, "nothing is running\n");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::path::Path::new("/dev/full");
    if !full.exists() {
        // Only Linux has it; there is nothing to be shown elsewhere.
        return;
    }
    let home = Home::new();
    let arguments = ["call", "echo.count", "to=3"];
    let file = std::fs::File::options().write(true).open(full).unwrap();
    let output = home
        .command(&arguments)
        .stdout(Stdio::from(file))
        .output()
        .unwrap();
    assert_shown("call_output_full", &home.outcome(&arguments, output));
}

#[test]
fn commands_at_the_same_time_wait_for_each_other() {
    let home = Home::new();
    let arguments = ["call", "echo.tally", "--json"];
    let children: Vec<_> = (0..3)
        .map(|_| home.command(&arguments).spawn().unwrap())
        .collect();
    let mut counts: Vec<String> = children
        .into_iter()
        .map(|child| home.outcome(&arguments, child.wait_with_output().unwrap()))
        .map(|outcome| {
            // On a busy machine the user is told what is being waited for.
            let told = &outcome.stderr;
            assert!(told.is_empty() || told.starts_with("waiting for"), "{told}");
            outcome.stdout
        })
        .collect();
    counts.sort();
    assert_eq!(counts, [1, 2, 3].map(|n| format!("{{\"count\":{n}}}\n")));
}

#[test]
fn settings_with_faults_are_shown_with_their_lines() {
    let home = Home::new();
    home.configure("[calls]\nunary_timout = \"5s\"\nstream_grace = 60\n");
    assert_shown(
        "call_wrong_settings",
        &home.run(&["call", "echo.say", "text=x"]),
    );
}

#[test]
fn settings_are_applied() {
    let home = Home::new();
    home.configure("[limits]\nparams_size = \"10 B\"\n");
    assert_shown(
        "call_small_params",
        &home.run(&["call", "echo.say", "text=much longer than that"]),
    );
}

#[test]
fn a_project_that_is_not_there_is_an_error() {
    check(
        "call_no_project",
        &["call", "echo.say", "text=x", "--project", "nowhere"],
    );
}

#[test]
fn a_filter_that_makes_no_sense_is_an_error() {
    let home = Home::new();
    let arguments = ["call", "echo.say", "text=x"];
    let output = home
        .command(&arguments)
        .env("DODONA_LOG", "dodona=loud")
        .output()
        .unwrap();
    assert_shown("call_bad_log_filter", &home.outcome(&arguments, output));
}
