// Serves aimock at a port of its own, prints the address, and ends with its input.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// Packages are found from the working directory, not from where this file is.
const require = createRequire(pathToFileURL(`${process.cwd()}/`));
const { LLMock } = require("@copilotkit/aimock");

const mock = new LLMock({ port: 0, logLevel: "silent" });
const usage = { prompt_tokens: 21, completion_tokens: 9, input_tokens: 21, output_tokens: 9 };
mock.onMessage("plain", { content: "Zeiträume, 漢字 and 🦀.", usage }, { chunkSize: 1 });
mock.onMessage("reason", { content: "Because.", reasoning: "Let me think." }, { chunkSize: 4 });
mock.on(
  { userMessage: "tools", hasToolResult: false },
  {
    toolCalls: [
      { id: "call_a", name: "code_search", arguments: '{"z":"login","a":1}' },
      { id: "call_b", name: "vault_list", arguments: "{}" },
    ],
  },
  { chunkSize: 3 },
);
mock.on({ userMessage: "tools", hasToolResult: true }, { content: "Found." });
mock.onMessage("cut", { content: "This answer never ends." }, { chunkSize: 4, latency: 20, truncateAfterChunks: 4 });
mock.onMessage("alive", { content: "Still here." }, { openRouterProcessing: true });
mock.onMessage("slow", { content: "Here." }, { chaos: { rateLimitRate: 1 } });
await mock.start();
console.log(mock.url);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
