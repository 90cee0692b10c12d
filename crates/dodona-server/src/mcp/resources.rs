//! Resources: the project's notes, and what plugins have to read.

use dodona_proto::CallError;
use rmcp::model::{
    CompletionInfo, ListResourceTemplatesResult, ListResourcesResult, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};

use super::catalogue::Catalogue;
use super::client::Client;
use super::desk::Desk;
use super::errand::{self, Brought, Errand, Outcome};
use super::running::Stop;
use super::sources::{Kind, Source};
use super::{notes, page};

/// How many resources one page lists.
const PAGE: usize = 100;

/// JSON-RPC's number for what has none of its own.
const SERVER_ERROR: i32 = -32000;

/// A page of what there is to read.
pub(super) async fn list(
    desk: &Desk,
    catalogue: &Catalogue,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let mut resources = match notes::list(desk).await {
        Ok(notes) => notes,
        // Without a project there are no notes, and other things to read all the same.
        Err(_) if of(catalogue).next().is_some() => Vec::new(),
        Err(error) => return Err(error),
    };
    for source in of(catalogue) {
        let listed = source.list(desk).await;
        resources.extend(entries::<Resource>(&listed["resources"]));
    }
    resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    let (page, next) = page::of(&resources, |one| &one.uri, cursor, PAGE)?;
    let mut result = ListResourcesResult::with_all_items(page.to_vec());
    result.next_cursor = next;
    Ok(result)
}

/// The forms of addresses there are.
pub(super) async fn templates(
    desk: &Desk,
    catalogue: &Catalogue,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    let mut templates = vec![notes::template()];
    for source in of(catalogue) {
        let listed = source.list(desk).await;
        templates.extend(entries::<ResourceTemplate>(&listed["templates"]));
    }
    Ok(ListResourceTemplatesResult::with_all_items(templates))
}

/// What an argument of a form of addresses could be.
pub(super) async fn complete(
    desk: &Desk,
    template: &str,
    argument: &str,
    begun: &str,
) -> Result<CompletionInfo, ErrorData> {
    match template == notes::template().uri_template && argument == "path" {
        true => notes::complete(desk, begun).await,
        false => Ok(CompletionInfo::default()),
    }
}

/// Reads a resource.
pub(super) async fn read(
    desk: &Desk,
    client: &Client,
    catalogue: &Catalogue,
    request: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = &request.uri;
    let brought = Brought {
        answers: request.input_responses,
        word: request.request_state,
    };
    let found = find(desk, catalogue, uri)
        .await
        .ok_or_else(|| missing(uri))?;
    let errand = Errand {
        method: &found.method,
        params: found.params,
        only_reads: true,
    };
    match errand::carry(desk, client, errand, brought, context).await {
        Ok(Outcome::Asks(asks)) => Ok(asks.into()),
        Ok(Outcome::Value(value)) => {
            let contents = contents(uri, found.kind.as_deref(), value)?;
            Ok(ReadResourceResult::new(contents).into())
        }
        Err(Stop::Refused(refusal)) => Err(refusal),
        Err(Stop::Call(error)) if found.is_note && notes::is_missing(&error) => Err(missing(uri)),
        Err(Stop::Call(error)) => Err(refusal(&error)),
    }
}

/// How a resource is read.
pub(super) struct Found {
    pub(super) method: String,
    pub(super) params: Value,
    /// What kind of text it is, if the list says so.
    kind: Option<String>,
    is_note: bool,
}

/// Finds whose a resource is. Only the plugin that lists it is asked for it.
pub(super) async fn find(desk: &Desk, catalogue: &Catalogue, uri: &str) -> Option<Found> {
    if let Some(path) = notes::path(uri) {
        return Some(Found {
            method: "vault.read".to_owned(),
            params: json!({ "path": path }),
            kind: Some(notes::MARKDOWN.to_owned()),
            is_note: true,
        });
    }
    for source in of(catalogue) {
        let listed = source.list(desk).await;
        let listed = |key: &str| listed[key].as_array().cloned().unwrap_or_default();
        let exact = listed("resources")
            .into_iter()
            .find(|one| one["uri"] == uri);
        let form = || {
            let fits = |one: &Value| {
                let form = one["uriTemplate"].as_str();
                form.is_some_and(|form| fits(form, uri))
            };
            listed("templates").into_iter().find(fits)
        };
        if let Some(one) = exact.or_else(form) {
            return Some(Found {
                method: source.read(),
                params: json!({ "uri": uri }),
                kind: one["mimeType"].as_str().map(str::to_owned),
                is_note: false,
            });
        }
    }
    None
}

fn of(catalogue: &Catalogue) -> impl Iterator<Item = &Source> {
    let sources = catalogue.sources().iter();
    sources.filter(|source| source.kind == Kind::Resources)
}

/// What a plugin lists. What was left out for its size stands there as a note, and is no entry.
fn entries<T: for<'de> Deserialize<'de>>(listed: &Value) -> Vec<T> {
    let entries = listed.as_array().into_iter().flatten();
    entries.filter_map(|one| T::deserialize(one).ok()).collect()
}

/// Whether an address could be of a form: its fixed parts in order, something between them.
fn fits(form: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = form.split('{');
    let begin = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(begin) else {
        return false;
    };
    rest = after;
    for part in parts {
        let fixed = part.split_once('}').map_or("", |(_, fixed)| fixed);
        rest = match (fixed.is_empty(), rest.char_indices().nth(1)) {
            (true, _) if !rest.is_empty() => "",
            (false, Some((second, _))) => match rest[second..].find(fixed) {
                Some(at) => &rest[second + at + fixed.len()..],
                None => return false,
            },
            _ => return false,
        };
    }
    rest.is_empty()
}

/// What a plugin read, as contents of the resource.
fn contents(
    uri: &str,
    kind: Option<&str>,
    value: Value,
) -> Result<Vec<ResourceContents>, ErrorData> {
    #[derive(Deserialize)]
    struct Read {
        #[serde(default)]
        text: String,
        #[serde(default)]
        blocks: Vec<Value>,
    }
    let Read { text, blocks } = understood(value)?;
    let with_kind = |contents: ResourceContents, own: Option<&str>| match own.or(kind) {
        Some(kind) => contents.with_mime_type(kind),
        None => contents,
    };
    let mut contents = Vec::new();
    if !text.is_empty() || blocks.is_empty() {
        contents.push(with_kind(ResourceContents::text(text, uri), None));
    }
    for block in blocks {
        let own = block["mimeType"].as_str();
        contents.push(match (block["type"].as_str(), block["data"].as_str()) {
            (Some("resource"), _) => understood(block["resource"].clone())?,
            (_, Some(data)) => with_kind(ResourceContents::blob(data, uri), own),
            // One that was left out for its size stands there as a note of ours.
            _ => ResourceContents::text(block.to_string(), uri),
        });
    }
    Ok(contents)
}

pub(super) fn missing(uri: &str) -> ErrorData {
    let uri: String = uri.chars().take(500).collect();
    ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": uri })))
}

pub(super) fn refusal(error: &CallError) -> ErrorData {
    // Not our number: some of those mean something else in MCP.
    let data = json!({ "code": error.code, "hint": error.hint_text() });
    ErrorData::new(
        rmcp::model::ErrorCode(SERVER_ERROR),
        error.message.clone(),
        Some(data),
    )
}

pub(super) fn understood<T: for<'de> Deserialize<'de>>(answer: Value) -> Result<T, ErrorData> {
    serde_json::from_value(answer).map_err(|error| {
        tracing::warn!(%error, "a plugin answers in a form of its own");
        ErrorData::internal_error("a plugin answers in a form of its own", None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_fixed_parts_of_its_form_and_something_between_them() {
        for (form, uri, expected) in [
            ("test://a/{id}/data", "test://a/12/data", true),
            ("test://a/{id}/data", "test://a//data", false),
            ("test://a/{id}/data", "test://a/12", false),
            ("test://a/{id}/data", "test://a/12/data/more", false),
            ("file:///{+path}", "file:///x/y", true),
            ("file:///{+path}", "file:///", false),
            ("x://{a}/{b}", "x://ä/ö", true),
            ("x://plain", "x://plain", true),
            ("x://plain", "x://plainer", false),
            ("x://{a", "x://y", true),
        ] {
            assert_eq!(fits(form, uri), expected, "{form} {uri}");
        }
    }

    #[test]
    fn text_and_bytes_become_contents_with_the_kind_they_have() {
        let read = json!({ "text": "hello", "blocks": [{ "type": "blob", "mimeType": "image/png", "data": "AA==" }] });
        let contents = contents("x://y", Some("text/html"), read).unwrap();
        assert_eq!(
            serde_json::to_value(contents).unwrap(),
            json!([
                { "uri": "x://y", "mimeType": "text/html", "text": "hello" },
                { "uri": "x://y", "mimeType": "image/png", "blob": "AA==" },
            ])
        );
    }
}
