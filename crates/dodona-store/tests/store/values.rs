//! Values, there and back.

use dodona_store::{Db, DbError, FromValue, ToValue, ValueRef};
use proptest::prelude::*;
use tokio::runtime::{self, Runtime};

use crate::support::Scratch;

/// Stores a value in a table and reads it back, so that it takes the way real data take.
async fn there_and_back<T>(db: &Db, value: T) -> Result<T, DbError>
where
    T: ToValue + FromValue + Send + 'static,
{
    db.write(move |tx| {
        tx.execute("CREATE TEMP TABLE IF NOT EXISTS cell (held)", ())?;
        tx.execute("DELETE FROM cell", ())?;
        tx.execute("INSERT INTO cell VALUES (?1)", (value,))?;
        tx.query_one("SELECT held FROM cell", (), |row| row.get(0))
    })
    .await
}

struct Fixture {
    runtime: Runtime,
    _scratch: Scratch,
    db: Db,
}

fn fixture() -> Fixture {
    let runtime = runtime::Builder::new_current_thread().build().unwrap();
    let scratch = Scratch::new();
    let db = scratch.db("values.db");
    Fixture {
        runtime,
        _scratch: scratch,
        db,
    }
}

thread_local! {
    // One store for all cases of a property: a case is about a value, not about a file.
    static FIXTURE: Fixture = fixture();
}

fn round_trip<T: ToValue + FromValue + Send + 'static>(value: T) -> Result<T, DbError> {
    FIXTURE.with(|fixture| fixture.runtime.block_on(there_and_back(&fixture.db, value)))
}

proptest! {
    #[test]
    fn integers_come_back_as_they_were(a: i64, b: i32, c: u32, d in 0..=i64::MAX as u64) {
        prop_assert_eq!(round_trip(a).unwrap(), a);
        prop_assert_eq!(round_trip(b).unwrap(), b);
        prop_assert_eq!(round_trip(c).unwrap(), c);
        prop_assert_eq!(round_trip(d).unwrap(), d);
    }

    #[test]
    fn numbers_too_large_to_store_are_refused(value in i64::MAX as u64 + 1..) {
        let refused = round_trip(value);
        let expected = matches!(refused, Err(DbError::Parameter { index: 1, .. }));
        prop_assert!(expected);
    }

    #[test]
    fn real_numbers_come_back_as_they_were(value in any::<f64>().prop_filter("NaN", |v| !v.is_nan())) {
        prop_assert_eq!(round_trip(value).unwrap().to_bits(), value.to_bits());
    }

    #[test]
    fn texts_and_bytes_come_back_as_they_were(text in any::<String>(), bytes: Vec<u8>, flag: bool) {
        prop_assert_eq!(round_trip(text.clone()).unwrap(), text);
        prop_assert_eq!(round_trip(bytes.clone()).unwrap(), bytes);
        prop_assert_eq!(round_trip(flag).unwrap(), flag);
    }

    #[test]
    fn missing_values_stay_missing(text: Option<String>, number: Option<u32>) {
        prop_assert_eq!(round_trip(text.clone()).unwrap(), text);
        prop_assert_eq!(round_trip(number).unwrap(), number);
    }
}

#[test]
fn a_text_with_a_nul_comes_back_whole() {
    let text = "before\0after".to_owned();
    assert_eq!(round_trip(text.clone()).unwrap(), text);
}

#[test]
fn not_a_number_is_refused() {
    let refused = round_trip(f64::NAN);
    assert!(matches!(refused, Err(DbError::Parameter { index: 1, .. })));
}

#[tokio::test]
async fn a_column_of_another_type_is_an_error_and_not_a_guess() {
    let scratch = Scratch::new();
    let db = scratch.db("values.db");
    let select = "SELECT '7', 7, 7.0, NULL, x'07', 300, -1";
    db.read(move |tx| {
        tx.query_one(select, (), |row| {
            assert!(row.get::<i64>(0).is_err());
            assert!(row.get::<String>(1).is_err());
            assert!(row.get::<i64>(2).is_err());
            assert!(row.get::<f64>(1).is_err());
            assert!(row.get::<String>(3).is_err());
            assert!(row.get::<bool>(5).is_err());
            assert!(row.get::<u32>(6).is_err());
            assert!(matches!(
                row.get::<i64>(7),
                Err(DbError::Column { index: 7, .. })
            ));
            assert_eq!(row.get::<Option<i64>>(3)?, None);
            assert_eq!(row.text(0)?, "7");
            assert_eq!(row.blob(4)?, [7]);
            assert_eq!(row.get_ref(2)?, ValueRef::Real(7.0));
            Ok(())
        })
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn stored_text_that_is_not_utf8_is_an_error() {
    let scratch = Scratch::new();
    let db = scratch.db("values.db");
    let read = db
        .read(|tx| tx.query_one("SELECT CAST(x'ff' AS TEXT)", (), |row| row.get::<String>(0)))
        .await;
    assert!(matches!(read, Err(DbError::Column { index: 0, .. })));
}

#[tokio::test]
async fn values_come_as_tuples_or_lists() {
    let scratch = Scratch::new();
    let db = scratch.db("values.db");
    db.read(|tx| {
        let twelve = "SELECT ?1 + ?2 + ?3 + ?4 + ?5 + ?6 + ?7 + ?8 + ?9 + ?10 + ?11 + ?12";
        let tuple = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        let list: Vec<i64> = (1..=12).collect();
        assert_eq!(tx.query_one(twelve, tuple, |row| row.get::<i64>(0))?, 78);
        assert_eq!(tx.query_one(twelve, list, |row| row.get::<i64>(0))?, 78);
        let mixed: [&dyn ToValue; 2] = [&"oak", &3];
        let said = tx.query_one("SELECT ?1 || ?2", mixed, |row| row.get::<String>(0))?;
        assert_eq!(said, "oak3");
        let repeated = tx.query_one("SELECT ?1 || ?1", ("na",), |row| row.get::<String>(0))?;
        assert_eq!(repeated, "nana");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_wrong_number_of_values_is_an_error() {
    let scratch = Scratch::new();
    let db = scratch.db("values.db");
    let too_few = db
        .read(|tx| tx.query("SELECT ?1, ?2", (1,), |_| Ok(())))
        .await;
    assert!(matches!(
        too_few,
        Err(DbError::ParameterCount {
            expected: 2,
            given: 1,
            ..
        })
    ));
    let too_many = db
        .read(|tx| tx.query("SELECT ?1", (1, 2, 3), |_| Ok(())))
        .await;
    assert!(matches!(
        too_many,
        Err(DbError::ParameterCount {
            expected: 1,
            given: 3,
            ..
        })
    ));
}
