//! `dodona.db`: a database of the plugin's own.

use std::fs;

use serde_json::json;

use crate::support::{Home, ask, assert_active, assert_failed, status};

const WORDS: &str = r#"
    local d = dodona
    d.method { name = "add", doc = "Adds a word.",
        params = { type = "object", properties = { word = { type = "string" } } },
        run = function(_, p)
            local done = d.db.execute("INSERT INTO word (word, seen) VALUES (?, ?)", { p.word, 1 })
            return { changes = done.changes, id = done.last_insert_id }
        end }
    d.method { name = "all", doc = "Lists the words.", read_only = true, run = function()
        return { words = d.list(d.db.query("SELECT word, seen, note FROM word ORDER BY id")) }
    end }
    d.method { name = "move", doc = "Moves all counts to one word.",
        params = { type = "object", properties = { to = { type = "string" }, fail = { type = "boolean" } } },
        run = function(_, p)
            local total = d.db.transaction(function(tx)
                local rows = tx.query("SELECT sum(seen) AS n FROM word")
                tx.execute("UPDATE word SET seen = 0")
                tx.execute("UPDATE word SET seen = ? WHERE word = ?", { rows[1].n, p.to })
                if p.fail then error("changed my mind") end
                return rows[1].n
            end)
            return { total = total }
        end }
    d.method { name = "sql", doc = "Runs a statement.",
        params = { type = "object", properties = { sql = { type = "string" }, params = {} } },
        run = function(_, p) return { rows = d.list(d.db.query(p.sql, p.params)) } end }
    d.method { name = "tx", doc = "Misuses a transaction.",
        params = { type = "object", properties = { how = { type = "string" } } },
        run = function(ctx, p)
            local ok, why = pcall(d.db.transaction, function(tx)
                tx.execute("INSERT INTO word (word, seen) VALUES ('lost', 1)")
                if p.how == "call" then ctx.call("echo.say", { text = "x" }) end
                if p.how == "outside" then d.db.execute("DELETE FROM word") end
                if p.how == "nested" then d.db.transaction(function() end) end
                if p.how == "slow" then tx.query("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n") end
                if p.how == "leave" then coroutine.wrap(function() end)() end
            end)
            return { ok = ok, why = if ok then "" else tostring(why) }
        end }
"#;

const FIRST: &str = "-- Words that were seen.\nCREATE TABLE word (\n    id INTEGER PRIMARY KEY,\n    word TEXT NOT NULL UNIQUE,\n    seen INTEGER NOT NULL\n) STRICT;\n";
const SECOND: &str = "ALTER TABLE word ADD COLUMN note TEXT;\n";

fn migration(home: &Home, plugin: &str, name: &str, sql: &str) {
    let folder = home.dir(plugin).join("migrations");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), sql).unwrap();
}

fn words() -> Home {
    let home = Home::new();
    home.plugin("words", WORDS);
    migration(&home, "words", "0001_words.sql", FIRST);
    migration(&home, "words", "0002_notes.sql", SECOND);
    home
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_stores_reads_and_changes_rows_that_last() {
    let home = words();
    let hub = home.start().await;
    assert_active(&hub, "words");
    let added = ask(&hub, "words.add", json!({"word": "leaf"})).await;
    assert_eq!(added.unwrap(), json!({"changes": 1, "id": 1}));
    ask(&hub, "words.add", json!({"word": "oak"}))
        .await
        .unwrap();
    let twice = ask(&hub, "words.add", json!({"word": "oak"}))
        .await
        .unwrap_err();
    assert!(
        twice.contains("UNIQUE constraint failed") && twice.contains("main.luau:6"),
        "{twice}"
    );
    let moved = ask(&hub, "words.move", json!({"to": "oak"})).await;
    assert_eq!(moved.unwrap()["total"], 2);
    // An error in the function undoes all of it, and is the caller's.
    let failed = ask(&hub, "words.move", json!({"to": "leaf", "fail": true})).await;
    assert!(failed.unwrap_err().contains("changed my mind"));
    // NULL is nil, and so no field.
    let expected = json!({"words": [{"word": "leaf", "seen": 0}, {"word": "oak", "seen": 2}]});
    assert_eq!(ask(&hub, "words.all", json!({})).await.unwrap(), expected);
    hub.stop().await;
    let hub = home.start().await;
    assert_eq!(ask(&hub, "words.all", json!({})).await.unwrap(), expected);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_data_and_never_sql() {
    let home = words();
    let hub = home.start().await;
    let hostile = "'); DROP TABLE word; --";
    ask(&hub, "words.add", json!({"word": hostile}))
        .await
        .unwrap();
    let rows = ask(&hub, "words.all", json!({})).await.unwrap();
    assert_eq!(rows["words"][0]["word"], hostile);
    let query = |sql: &str, params: serde_json::Value| {
        ask(&hub, "words.sql", json!({"sql": sql, "params": params}))
    };
    let typed = query(
        "SELECT ? AS a, ? AS b, ? AS c, ? AS d",
        json!([1, 2.5, null, true]),
    )
    .await;
    assert_eq!(typed.unwrap()["rows"][0], json!({"a": 1, "b": 2.5, "d": 1}));
    for (sql, params, why) in [
        ("SELECT 1; SELECT 2", json!([]), "Multiple statements"),
        (
            "SELECT ?",
            json!([]),
            "has 1 placeholders, but 0 values were given",
        ),
        (
            "SELECT ?",
            json!([{"a": 1}]),
            "parameter 1 is a list or an object",
        ),
        ("SELEC 1", json!([]), "syntax error"),
        ("SELECT * FROM nowhere", json!([]), "no such table: nowhere"),
        (
            "SELECT x'00ff' AS raw",
            json!([]),
            "select `hex(raw)` instead",
        ),
    ] {
        let told = query(sql, params).await.unwrap_err();
        assert!(told.contains(why), "{sql}: {told}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_reaches_no_other_database_and_no_setting_of_the_engine() {
    let home = words();
    home.plugin("thief", WORDS);
    let hub = home.start().await;
    ask(&hub, "words.add", json!({"word": "secret"}))
        .await
        .unwrap();
    let data = hub.data_dir();
    let path = data.join("plugins/words/words.db").display().to_string();
    assert!(fs::exists(&path).unwrap());
    for sql in [
        format!("ATTACH DATABASE '{path}' AS other"),
        format!("ATTACH 'file:{path}?mode=ro' AS other"),
        "PRAGMA database_list".to_owned(),
        "PRAGMA journal_mode = OFF".to_owned(),
        "PRAGMA writable_schema = ON".to_owned(),
        "BEGIN".to_owned(),
        "COMMIT".to_owned(),
        "SAVEPOINT s".to_owned(),
        format!("VACUUM INTO '{path}.copy'"),
        "SELECT load_extension('x')".to_owned(),
        format!("SELECT readfile('{path}')"),
        format!("SELECT writefile('{path}', 'x')"),
        "UPDATE sqlite_schema SET sql = ''".to_owned(),
        "SELECT word FROM word".to_owned(),
        "SELECT word FROM words.word".to_owned(),
    ] {
        let told = ask(&hub, "thief.sql", json!({ "sql": sql })).await;
        let told = told.expect_err(&sql);
        assert!(!told.contains("secret"), "{sql}: {told}");
    }
    let attached = ask(
        &hub,
        "thief.sql",
        json!({"sql": format!("ATTACH '{path}' AS x")}),
    )
    .await;
    let attached = attached.unwrap_err();
    assert!(
        attached.contains("ATTACH, DETACH, VACUUM and transaction statements"),
        "{attached}"
    );
    assert!(!fs::exists(format!("{path}.copy")).unwrap());
    // The victim notices nothing.
    let rows = ask(&hub, "words.all", json!({})).await.unwrap();
    assert_eq!(rows["words"][0]["word"], "secret");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_bounded_in_time_and_size_and_the_plugin_goes_on() {
    let home = words();
    let hub = home.start().await;
    ask(&hub, "words.add", json!({"word": "leaf"}))
        .await
        .unwrap();
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    for (sql, why) in [
        (endless, "took too long"),
        ("SELECT zeroblob(1000000000)", "too big"),
        ("SELECT printf('%.*c', 100000000, 'x') AS x", "too big"),
        ("SELECT hex(zeroblob(4000000)) AS x", "add a `LIMIT`"),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n",
            "more than 10000 rows",
        ),
    ] {
        let told = ask(&hub, "words.sql", json!({ "sql": sql }))
            .await
            .unwrap_err();
        assert!(told.contains(why), "{sql}: {told}");
    }
    let rows = ask(&hub, "words.all", json!({})).await.unwrap();
    assert_eq!(rows["words"].as_array().unwrap().len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_waits_for_nobody_and_leaves_nothing_behind() {
    let home = words();
    let hub = home.start().await;
    for (how, why) in [
        ("call", "`call` cannot be used while a transaction is open"),
        ("outside", "use `tx.query` and `tx.execute`"),
        ("nested", "a transaction is open already"),
        ("slow", "took too long"),
    ] {
        let told = ask(&hub, "words.tx", json!({ "how": how })).await.unwrap();
        assert_eq!(told["ok"], false, "{how}");
        assert!(told["why"].as_str().unwrap().contains(why), "{told}");
        let rows = ask(&hub, "words.all", json!({})).await.unwrap();
        assert_eq!(rows["words"], json!([]), "{how}");
    }
    let kept = ask(&hub, "words.tx", json!({"how": "leave"}))
        .await
        .unwrap();
    assert_eq!(kept["ok"], true, "{kept}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_migration_fails_the_plugin_with_its_place_and_changes_nothing() {
    let home = Home::new();
    home.plugin("words", WORDS);
    migration(&home, "words", "0001_words.sql", FIRST);
    migration(&home, "words", "0002_notes.sql", SECOND);
    let bad = "INSERT INTO word (word, seen) VALUES ('half', 1);\n\n-- Here it goes wrong.\nALTER TABLE wrod ADD COLUMN x;\n";
    migration(&home, "words", "0003_bad.sql", bad);
    let hub = home.start().await;
    assert_failed(&hub, "words", "`migrations/0003_bad.sql`");
    assert_failed(&hub, "words", "at line 4");
    assert_failed(&hub, "words", "no such table: wrod");
    // Mended, it starts from nothing: no half of the three was kept.
    let mended = "INSERT INTO word (word, seen) VALUES ('whole', 1);\n";
    migration(&home, "words", "0003_bad.sql", mended);
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    assert_active(&hub, "words");
    let rows = ask(&hub, "words.all", json!({})).await.unwrap();
    assert_eq!(rows["words"].as_array().unwrap().len(), 1);
    // A later migration that fails leaves the last good version active, with its data.
    migration(
        &home,
        "words",
        "0004_worse.sql",
        "DELETE FROM word;\nPRAGMA user_version = 7;\n",
    );
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    let reason = status(&hub, "words").reason.unwrap();
    assert!(
        reason.contains("`migrations/0004_worse.sql`") && reason.contains("at line 2"),
        "{reason}"
    );
    assert!(
        reason.contains("the last good version stays active"),
        "{reason}"
    );
    let rows = ask(&hub, "words.all", json!({})).await.unwrap();
    assert_eq!(rows["words"][0]["word"], "whole");
    // An applied migration must not change, and a gap is no numbering.
    migration(&home, "words", "0004_worse.sql", "SELECT 1;\n");
    migration(&home, "words", "0003_bad.sql", "SELECT 2;\n");
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    let reason = status(&hub, "words").reason.unwrap();
    assert!(
        reason.contains("was changed after it had been applied"),
        "{reason}"
    );
    fs::remove_file(home.dir("words").join("migrations/0003_bad.sql")).unwrap();
    ask(&hub, "plugins.reload", json!({})).await.unwrap();
    let reason = status(&hub, "words").reason.unwrap();
    assert!(reason.contains("migration 0003 is missing"), "{reason}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_reads_the_database_and_changes_nothing() {
    let home = words();
    let gate = r#"
        dodona.hook("PRE_TOOL_EXECUTE", { on_error = "closed" }, function(call)
            if call.method ~= "words.pick" then return nil end
            if call.arguments.word == "write" then dodona.db.execute("DELETE FROM banned") end
            if call.arguments.word == "sly" then dodona.db.query("DELETE FROM banned RETURNING word") end
            local rows = dodona.db.query("SELECT 1 FROM banned WHERE word = ?", { call.arguments.word })
            if #rows > 0 then return dodona.deny("banned") end
            return nil
        end)
    "#;
    home.granted("gate", &["tool_exec"], gate);
    migration(
        &home,
        "gate",
        "0001_banned.sql",
        "CREATE TABLE banned (word TEXT) STRICT;\nINSERT INTO banned VALUES ('curse');\n",
    );
    let target = r#"
        dodona.method { name = "pick", doc = "Picks.", tool = true, read_only = true,
            params = { type = "object", properties = { word = { type = "string" } } },
            run = function(_, p) return { word = p.word } end }
    "#;
    home.script("words", &format!("{WORDS}{target}"));
    let hub = home.start().await;
    assert_active(&hub, "gate");
    let pick = |word: &str| ask(&hub, "words.pick", json!({ "word": word }));
    assert_eq!(pick("leaf").await.unwrap()["word"], "leaf");
    assert!(pick("curse").await.unwrap_err().contains("banned"));
    for word in ["write", "sly"] {
        let told = pick(word).await.unwrap_err();
        assert!(told.contains("the gate of plugin `gate` failed"), "{told}");
    }
    assert!(pick("curse").await.unwrap_err().contains("banned"));
    hub.stop().await;
}
