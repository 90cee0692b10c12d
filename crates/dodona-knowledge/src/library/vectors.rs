//! Passages as vectors: kept in the catalogue, compared in memory.

use dodona_plugin::store::DbError;

use super::catalogue::Catalogue;

/// Where a passage stands, and its vector.
pub(super) struct Placed {
    pub(super) line_start: u32,
    pub(super) vector: Vec<f32>,
}

/// Every vector of a project, one after the other, each of length 1: comparing is one pass over
/// memory, which for a hundred thousand passages takes some milliseconds.
#[derive(Default)]
pub(super) struct Vectors {
    width: usize,
    numbers: Vec<f32>,
    places: Vec<(String, u32)>,
}

impl Vectors {
    fn push(&mut self, path: String, line_start: u32, bytes: &[u8]) {
        let numbers = bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|four| f32::from_le_bytes(*four));
        let before = self.numbers.len();
        self.numbers.extend(numbers);
        let width = self.numbers.len() - before;
        if self.width == 0 {
            self.width = width;
        }
        // Vectors of one model have one length; one that has not was written by a fault.
        if width == self.width && width > 0 {
            normalise(&mut self.numbers[before..]);
            self.places.push((path, line_start));
        } else {
            self.numbers.truncate(before);
        }
    }

    /// The passages nearest to a vector, nearest first.
    pub(super) fn nearest(&self, mut vector: Vec<f32>, count: usize) -> Vec<&(String, u32)> {
        if vector.len() != self.width || self.width == 0 {
            return Vec::new();
        }
        normalise(&mut vector);
        let likeness = |row: &[f32]| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f32>();
        let rows = self.numbers.chunks_exact(self.width).map(likeness);
        let mut ranked: Vec<(f32, &(String, u32))> = rows.zip(&self.places).collect();
        let count = count.min(ranked.len());
        let nearer = |a: &(f32, &(String, u32)), b: &(f32, &(String, u32))| {
            b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1))
        };
        if count < ranked.len() && count > 0 {
            ranked.select_nth_unstable_by(count - 1, nearer);
        }
        ranked.truncate(count);
        ranked.sort_by(nearer);
        ranked.into_iter().map(|(_, place)| place).collect()
    }
}

fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

impl Catalogue {
    /// Files whose passages have no vectors of this model yet, and how many there are.
    pub(super) async fn without_vectors(
        &self,
        model: &str,
        limit: u32,
    ) -> Result<(Vec<String>, u64), DbError> {
        let model = model.to_owned();
        self.ask(move |tx, project| {
            let lacking = "from files where project = ?1 and embedded != ?2 and hash != ''";
            let count = tx.query_one(
                &format!("select count(*) {lacking}"),
                (project, model.as_str()),
                |row| row.get(0),
            )?;
            let paths = tx.query(
                &format!("select path {lacking} order by path limit ?3"),
                (project, model.as_str(), limit),
                |row| row.get(0),
            )?;
            Ok((paths, count))
        })
        .await
    }

    /// Takes in the vectors of a file, unless it was read anew in between.
    pub(super) async fn add_vectors(
        &self,
        path: String,
        hash: Option<String>,
        model: String,
        vectors: Vec<Placed>,
    ) -> Result<(), DbError> {
        self.change(move |tx, project| {
            let sql =
                "update files set embedded = ?4 where project = ?1 and path = ?2 and hash = ?3";
            let hash = hash.as_deref().unwrap_or_default();
            if tx.execute(sql, (project, path.as_str(), hash, model.as_str()))? == 0 {
                return Ok(());
            }
            let id: i64 = tx.query_one(
                "select id from files where project = ?1 and path = ?2",
                (project, path.as_str()),
                |row| row.get(0),
            )?;
            tx.execute("delete from vectors where file_id = ?1", (id,))?;
            for Placed { line_start, vector } in &vectors {
                let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                let sql = "insert into vectors (file_id, line_start, vector) values (?1, ?2, ?3)";
                tx.execute(sql, (id, *line_start, bytes))?;
            }
            Ok(())
        })
        .await
    }

    /// The hash of a file when it was read last.
    pub(super) async fn hash(&self, path: &str) -> Result<Option<String>, DbError> {
        let path = path.to_owned();
        self.ask(move |tx, project| {
            let sql = "select hash from files where project = ?1 and path = ?2";
            tx.query_opt(sql, (project, path.as_str()), |row| row.get(0))
        })
        .await
    }

    /// Every vector that this model made.
    pub(super) async fn vectors(&self, model: &str) -> Result<Vectors, DbError> {
        let model = model.to_owned();
        self.ask(move |tx, project| {
            let sql = "select f.path, v.line_start, v.vector from vectors v
                join files f on f.id = v.file_id where f.project = ?1 and f.embedded = ?2
                order by f.path, v.line_start";
            let mut vectors = Vectors::default();
            tx.query(sql, (project, model.as_str()), |row| {
                vectors.push(row.get(0)?, row.get(1)?, row.blob(2)?);
                Ok(())
            })?;
            Ok(vectors)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(rows: &[(&str, &[f32])]) -> Vectors {
        let mut vectors = Vectors::default();
        for (path, row) in rows {
            let bytes: Vec<u8> = row.iter().flat_map(|x| x.to_le_bytes()).collect();
            vectors.push((*path).to_owned(), 1, &bytes);
        }
        vectors
    }

    #[test]
    fn the_direction_counts_and_not_the_length() {
        let all = vectors(&[
            ("east", &[9.0, 0.0]),
            ("odd", &[1.0, 2.0, 3.0]),
            ("north", &[0.0, 0.1]),
            ("north-east", &[1.0, 1.0]),
        ]);
        let near = |vector: &[f32], count| -> Vec<String> {
            let found = all.nearest(vector.to_vec(), count);
            found.into_iter().map(|(path, _)| path.clone()).collect()
        };
        assert_eq!(near(&[0.0, 5.0], 2), ["north", "north-east"]);
        assert_eq!(near(&[5.0, 0.1], 9).len(), 3);
        assert!(near(&[1.0], 3).is_empty());
        assert!(near(&[1.0, 0.0], 0).is_empty());
        assert!(Vectors::default().nearest(vec![1.0], 3).is_empty());
    }
}
