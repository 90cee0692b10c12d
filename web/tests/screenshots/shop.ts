/** A shop that has been there for a while: what the pictures show. */
import { files } from "../support/server.ts";

/** Folder and name, tags, and what it links to. */
const table: [string, string, string[], string[]][] = [
  ["decisions/cart", "The cart lives in the browser", ["cart", "decision"], ["sessions", "decisions/auth"]],
  ["decisions/edge", "Edge nodes keep no state", ["edge", "decision"], ["decisions/auth", "runbooks/edge-node"]],
  ["decisions/payments", "One payment provider", ["payments", "decision"], ["runbooks/refund", "people/ines"]],
  [
    "decisions/search",
    "Search without a cluster",
    ["search", "decision"],
    ["products/catalogue", "meetings/2026-02-11"],
  ],
  ["decisions/prices", "Prices are integers", ["payments", "decision"], ["products/catalogue", "decisions/payments"]],
  ["decisions/emails", "Mail goes out once", ["mail", "decision"], ["runbooks/mail-queue", "meetings/2026-03-04"]],
  [
    "decisions/images",
    "Images are resized at the edge",
    ["edge", "decision"],
    ["decisions/edge", "products/catalogue"],
  ],
  ["runbooks/refund", "Refund an order", ["payments", "runbook"], ["decisions/payments", "people/ines", "orders"]],
  ["runbooks/edge-node", "Replace an edge node", ["edge", "runbook"], ["decisions/edge", "people/jonas"]],
  ["runbooks/mail-queue", "Empty the mail queue", ["mail", "runbook"], ["decisions/emails", "people/mara"]],
  ["runbooks/deploy", "Deploy", ["deploy", "runbook"], ["runbooks/edge-node", "decisions/edge", "people/jonas"]],
  ["runbooks/rotate-secret", "Rotate the signing secret", ["auth", "runbook"], ["decisions/auth", "runbooks/deploy"]],
  ["runbooks/restore", "Restore a backup", ["runbook"], ["orders", "people/jonas"]],
  ["people/ines", "Ines", ["people"], ["decisions/payments", "meetings/2026-03-04"]],
  ["people/jonas", "Jonas", ["people"], ["runbooks/deploy", "decisions/edge"]],
  ["people/mara", "Mara", ["people"], ["decisions/emails", "products/catalogue"]],
  ["people/tomas", "Tomas", ["people"], ["decisions/search", "products/bundles"]],
  ["meetings/2026-02-11", "Meeting on search", ["meeting"], ["decisions/search", "people/tomas", "people/mara"]],
  ["meetings/2026-03-04", "Meeting on mail and payments", ["meeting"], ["decisions/emails", "decisions/payments"]],
  ["meetings/2026-03-18", "Meeting on tokens", ["meeting", "auth"], ["decisions/auth", "people/jonas", "sessions"]],
  ["meetings/2026-04-02", "Meeting on the catalogue", ["meeting"], ["products/catalogue", "products/bundles"]],
  ["products/catalogue", "The catalogue", ["products"], ["products/bundles", "products/vouchers", "decisions/prices"]],
  ["products/bundles", "Bundles", ["products"], ["products/catalogue", "decisions/cart"]],
  ["products/vouchers", "Vouchers", ["products", "payments"], ["decisions/payments", "runbooks/refund"]],
  ["products/returns", "Returns", ["products"], ["runbooks/refund", "orders"]],
  ["orders", "Orders", ["orders"], ["decisions/payments", "decisions/cart", "products/returns"]],
  ["customers", "Customers", ["customers"], ["orders", "sessions", "products/vouchers"]],
  ["roadmap", "Roadmap", ["plan"], ["products/bundles", "decisions/search", "meetings/2026-04-02", "index"]],
  ["glossary", "Glossary", [], ["orders", "customers", "products/catalogue", "sessions"]],
];

const note = ([path, title, tags, links]: (typeof table)[number]): [string, string] => [
  `notes/${path}.md`,
  `---
tags: [${tags.join(", ")}]
---
# ${title}

What there is to know about it, and why it is so. It belongs to ${links.map((link) => `[[${link.split("/").at(-1)}]]`).join(" and ")}.

## Why

It was the simplest thing that could work, and it has worked since. Whoever changes it writes down here
what they learned.
`,
];

const rule = (id: string, name: string, trigger: string, condition: string, action: string) => `[rule]
id = "${id}"
name = "${name}"
description = "${name}, so that nobody has to think of it"
trigger = "${trigger}"
priority = 200

[condition]
expression = "${condition}"

[action]
${action}
`;

export const shop: Record<string, string> = {
  ...files,
  ...Object.fromEntries(table.map(note)),
  ".dodona/rules/cite-the-decision.toml": `${rule(
    "cite-the-decision",
    "Cite the decision",
    "on_tool_complete",
    "context.result.tool_name == 'vault_search' and context.result.success",
    `type = "notify_self"\nmessage = "Cite the note of the decision, not a note about a meeting."\ncategory = "reminder"\ndeliver_at = "after_tool"`,
  )}
# It must not nag after anything else.
[[tests]]
name = "fires after a search"
context = { result = { tool_name = "vault_search", success = true } }
expect = { fired = true }

[[tests]]
name = "is quiet after any other tool"
context = { result = { tool_name = "vault_read", success = true } }
expect = { fired = false }
`,
  ".dodona/rules/decisions-are-final.toml": rule(
    "decisions-are-final",
    "Decisions are final",
    "on_tool_call",
    "context.call.tool_name == 'vault_write' and 'decisions/' in str(context.call.arguments.get('path', ''))",
    `type = "require_approval"\nmessage = "The agent wants to change a decision."`,
  ),
};
