//! A citation of something in a conversation, turned back into text.

use dodona_plugin::store::Tx;
use dodona_proto::Source;

use super::{Place, hash_of, of_path, part};
use crate::conversation::error::{ConversationError, Invalid, not_found};
use crate::conversation::exchange::OracleExchange;
use crate::conversation::rows::{self, Head, Owner};
use crate::conversation::summary::LineKind;
use crate::conversation::{Conversations, compact};

impl Conversations {
    /// What stands there now, and whether it is another than was cited.
    pub async fn resolve(
        &self,
        owner: &Owner,
        source: &Source,
    ) -> Result<(String, bool), ConversationError> {
        let (owner, source) = (owner.clone(), source.clone());
        self.read(move |tx| {
            let (context, place) = of_path(&source.path)
                .ok_or_else(|| Invalid::new("source.path", "names no place in a conversation"))?;
            let head = Head::find(tx, &owner, context)?;
            let text = text(tx, &head, &place)?;
            let text = part(&text, source.line_start, source.line_end);
            let stale = hash_of(&text) != source.hash;
            Ok((text, stale))
        })
        .await
    }
}

fn text(tx: &Tx<'_>, head: &Head, place: &Place) -> Result<String, ConversationError> {
    let gone = || not_found("place in the conversation", place.to_string());
    match place {
        Place::Exchange(position) => {
            let sql = "select json from exchanges
                where context_id = ?1 and position = ?2 and rewound_at is null";
            let found: Option<String> =
                tx.query_opt(sql, (head.id.as_str(), *position), |row| row.get(0))?;
            let exchange: OracleExchange = rows::parse("exchange", &found.ok_or_else(gone)?)?;
            Ok(exchange.content)
        }
        Place::Decision(id) => {
            let sql = "select text from key_decisions where context_id = ?1 and id = ?2";
            let found: Option<String> =
                tx.query_opt(sql, (head.id.as_str(), id.as_str()), |row| row.get(0))?;
            found.ok_or_else(gone)
        }
        Place::Pin(_) => {
            let mut lines = compact::lines(tx, &head.id)?.into_iter();
            let pinned = lines
                .find(|line| line.kind == LineKind::Pinned && Place::pin(&line.text) == *place);
            pinned.map(|line| line.text).ok_or_else(gone)
        }
    }
}
