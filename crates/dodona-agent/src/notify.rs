//! Storing notifications for a model, and reporting those that are dropped.

use dodona_plugin::{Behalf, DroppedNotification, HookHost};
use dodona_proto::{Notification, PluginName};

use crate::conversation::{ContextId, ConversationError, Conversations};

/// Stores notifications in a conversation's inbox. The rule log shows those that are dropped.
pub(crate) async fn notify(
    conversations: &Conversations,
    host: &dyn HookHost,
    behalf: Behalf<'_>,
    context: &ContextId,
    notifications: Vec<(PluginName, Notification)>,
) -> Result<(), ConversationError> {
    for (notification, reason) in conversations.notify(context, notifications).await? {
        let Some(rule) = notification.rule else {
            continue;
        };
        host.notification_dropped(DroppedNotification {
            user: behalf.user.clone(),
            project: behalf.project.cloned(),
            rule,
            message: notification.message,
            context_id: Some(context.to_string()),
            reason,
        });
    }
    Ok(())
}
