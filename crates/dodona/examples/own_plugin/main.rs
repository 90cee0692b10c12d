//! The whole program with a plugin of its own:
//!
//! ```console
//! $ cargo run -p dodona --example own_plugin -- call greeter.greet name=Ada
//! ```

mod greeter;

fn main() -> std::process::ExitCode {
    dodona::App::new().plugin(greeter::GreeterPlugin).run()
}
