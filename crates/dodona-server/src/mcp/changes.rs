//! Noticing what clients want to hear about: other tools, other notes.

use std::time::Duration;

use tokio::time::Instant;

use super::desk::{Desk, Installed};
use super::groups::Groups;
use super::subscriptions::{self, Subscriptions};

/// How often resources are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// What is new since the last look.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Other plugins: their tools, prompts and resources may be others.
    pub(super) installed: bool,
    /// Notes have come, gone or been given another title.
    pub(super) notes: bool,
    /// These resources are not what they were.
    pub(super) updated: Vec<String>,
}

/// Looks at what is installed and what is subscribed to, for one client.
pub(super) struct Changes {
    desk: Desk,
    groups: Groups,
    installed: Option<Installed>,
    notes: Option<String>,
    looked: Instant,
}

impl Changes {
    pub(super) async fn of(desk: Desk, groups: Groups, subscriptions: &Subscriptions) -> Self {
        let installed = desk.installed().await.ok();
        let mut changes = Self {
            desk,
            groups,
            installed,
            notes: None,
            looked: Instant::now(),
        };
        changes.look_at_resources(subscriptions).await;
        changes
    }

    /// After a while, what is new.
    pub(super) async fn look(&mut self, subscriptions: &Subscriptions) -> News {
        tokio::time::sleep(self.desk.pace()).await;
        let mut news = News {
            installed: self.look_at_plugins().await,
            ..News::default()
        };
        if self.looked.elapsed() >= LOOK {
            (news.notes, news.updated) = self.look_at_resources(subscriptions).await;
            self.looked = Instant::now();
        }
        news
    }

    async fn look_at_plugins(&mut self) -> bool {
        // A server that cannot be reached has not changed its tools.
        let Ok(now) = self.desk.installed().await else {
            return false;
        };
        let is_other = self.installed.as_ref().is_some_and(|seen| *seen != now);
        self.installed = Some(now);
        if is_other {
            self.desk.forget();
        }
        is_other
    }

    async fn look_at_resources(&mut self, subscriptions: &Subscriptions) -> (bool, Vec<String>) {
        let Ok(catalogue) = self.desk.catalogue(&self.groups).await else {
            return (false, Vec::new());
        };
        let uris = subscriptions.uris();
        let (now, list) = subscriptions::look(&self.desk, &catalogue, &uris).await;
        let updated = subscriptions.renew(now);
        let Some(list) = list else {
            return (false, updated);
        };
        let is_other = self.notes.as_ref().is_some_and(|seen| *seen != list);
        self.notes = Some(list);
        (is_other, updated)
    }
}
