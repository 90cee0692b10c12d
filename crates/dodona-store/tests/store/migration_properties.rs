//! Migrations, for any list of them.

use dodona_store::{Db, MigrateError, Migration};
use proptest::prelude::*;
use proptest::sample::Index;
use tokio::runtime;

use crate::support::Scratch;

/// What one migration does. Any sequence of these is valid.
#[derive(Debug, Clone)]
enum Step {
    NewTable,
    NewColumn,
    NewIndex,
    Rows(u8),
    Change(i32),
    Remove(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::NewTable),
        Just(Step::NewColumn),
        Just(Step::NewIndex),
        (1..5u8).prop_map(Step::Rows),
        any::<i32>().prop_map(Step::Change),
        (0..9u8).prop_map(Step::Remove),
    ]
}

impl Step {
    fn sql(&self, version: u32) -> String {
        match self {
            Step::NewTable => format!("CREATE TABLE t{version} (id INTEGER PRIMARY KEY)"),
            Step::NewColumn => format!("ALTER TABLE base ADD COLUMN c{version} TEXT DEFAULT 'x'"),
            Step::NewIndex => format!("CREATE INDEX i{version} ON base (n, id)"),
            Step::Rows(count) => "INSERT INTO base (n) VALUES (7);".repeat(usize::from(*count)),
            Step::Change(n) => format!("UPDATE base SET n = n * 3 + {n}"),
            Step::Remove(id) => format!("DELETE FROM base WHERE id = {id}"),
        }
    }
}

/// A list that begins with the table the steps work on.
fn migrations() -> impl Strategy<Value = Vec<Migration>> {
    let number = |(version, sql): (u32, String)| Migration {
        version,
        name: format!("step {version}").into(),
        sql: sql.into(),
    };
    prop::collection::vec(step(), 0..8).prop_map(move |steps| {
        let base = "CREATE TABLE base (id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER)".to_owned();
        let rest = (2..)
            .zip(&steps)
            .map(|(version, step)| (version, step.sql(version)));
        std::iter::once((1, base)).chain(rest).map(number).collect()
    })
}

/// The whole schema and all data except the time of each migration, as text.
async fn dump(db: &Db) -> Vec<String> {
    db.read(|tx| {
        let schema = "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name";
        let mut lines = tx.query(schema, (), |row| row.get::<String>(0))?;
        let record = "SELECT version || name || checksum FROM dodona_migrations ORDER BY version";
        lines.extend(tx.query(record, (), |row| row.get::<String>(0))?);
        let rows = "SELECT id || ' ' || coalesce(n, '') FROM base ORDER BY id";
        lines.extend(tx.query(rows, (), |row| row.get::<String>(0))?);
        Ok(lines)
    })
    .await
    .unwrap()
}

fn block_on<R>(work: impl Future<Output = R>) -> R {
    runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_split_over_several_runs_gives_the_same_database(
        all in migrations(),
        stops in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        block_on(async {
            let scratch = Scratch::new();
            let (at_once, in_parts) = (scratch.db("once.db"), scratch.db("parts.db"));
            at_once.migrate(all.clone()).await.unwrap();
            let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(all.len()) + 1).collect();
            stops.sort_unstable();
            stops.push(all.len());
            for stop in stops {
                in_parts.migrate(all[..stop].to_vec()).await.unwrap();
            }
            prop_assert_eq!(dump(&at_once).await, dump(&in_parts).await);
            Ok(())
        })?;
    }

    #[test]
    fn a_failing_one_leaves_the_version_before_intact(
        all in migrations(),
        applied in any::<Index>(),
        broken in any::<Index>(),
    ) {
        let applied = applied.index(all.len()) + 1;
        let broken = applied + broken.index(all.len() - applied + 1);
        let mut faulty = all.clone();
        faulty.insert(broken, Migration::new(0, "broken", "DELETE FROM base; DROP TABLE missing"));
        for (version, migration) in (1..).zip(&mut faulty) {
            migration.version = version;
        }
        block_on(async {
            let scratch = Scratch::new();
            let db = scratch.db("faulty.db");
            db.migrate(all[..applied].to_vec()).await.unwrap();
            let before = dump(&db).await;
            let failed = db.migrate(faulty).await;
            let is_broken = matches!(
                failed,
                Err(MigrateError::Apply { version, .. }) if version as usize == broken + 1
            );
            prop_assert!(is_broken);
            prop_assert_eq!(dump(&db).await, before);
            Ok(())
        })?;
    }
}
