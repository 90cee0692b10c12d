use dodona_expr::{Expr, JsonScope, Schema};
use serde_json::json;

#[test]
fn repl() {
    let schema = Schema::parse("x: any\ncontext: { turn: { number: int, token_usage: float }\n result: {tool_name: str, error: str?}? @done }").unwrap();
    let doc = schema.fill(&json!({"x": [1, 2.5, "a", {"b": null}], "context": {"turn": {"number": 3}}}));
    let scope = JsonScope::new(&schema, &doc);
    for line in std::fs::read_to_string("/tmp/exprs.txt").unwrap().lines() {
        match Expr::compile(line, &schema) {
            Err(e) => println!("{line}   !!! {} {e:#}", e.kind()),
            Ok(expr) => {
                for w in expr.warnings() { println!("   warning {}", w.message); }
                match expr.eval(&scope) {
                    Ok(v) => println!("{line}   => {}", v.short_repr()),
                    Err(e) => println!("{line}   !! {} {e:#}", e.kind()),
                }
            }
        }
    }
}
