/** The real program, in a temporary home, with a temporary project. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** `DODONA_BIN` names the program; without it, it is the debug build of this folder. */
export const program = resolve(
  process.env.DODONA_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/dodona"),
);

/** How long a server may take to be ready. Generous: the machine may be busy. */
const PATIENCE = 60_000;

export interface Setup {
  /** The files of the project, by path. */
  files?: Record<string, string>;
  /** Further lines of `config.toml`. */
  config?: string;
  /** Where the model `test` is, which then is the default. */
  model?: string;
  /** Further variables of the server's environment. */
  env?: Record<string, string>;
}

export class Server {
  url = "";
  private child: ChildProcess | null = null;
  /** The last words of the process, for when it ends and should not. */
  private said = "";
  private port = 0;

  private constructor(
    readonly home: string,
    readonly project: string,
    private readonly env: Record<string, string> = {},
  ) {}

  /** Makes a home and a project, and starts a server on them. */
  static async start(setup: Setup = {}): Promise<Server> {
    if (!existsSync(program)) throw new Error(`there is no ${program}: run \`cargo build\`, or set DODONA_BIN`);
    const folder = mkdtempSync(join(tmpdir(), "dodona-page-"));
    const server = new Server(join(folder, "home"), join(folder, "shop"), setup.env);
    const written = setup.files ?? files;
    for (const [path, text] of Object.entries(written)) server.write(path, text);
    mkdirSync(join(server.home, "config"), { recursive: true });
    writeFileSync(
      join(server.home, "config/config.toml"),
      `${setup.model ? modelConfig(setup.model) : ""}\n${setup.config ?? ""}`,
    );
    await server.up();
    server.run("index");
    // The project is the user's own: its rules are in force as they are saved.
    const hasRules = Object.keys(written).some((path) => path.startsWith(".dodona/"));
    if (hasRules) server.run("trust", "accept", "--follow", "--yes");
    return server;
  }

  /** Writes a file of the project. */
  write(path: string, text: string): void {
    const file = join(this.project, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Starts the process; a second time on the same port, as after a restart. */
  async up(): Promise<void> {
    const ready = join(this.home, `ready-${Date.now()}.json`);
    const listen = `127.0.0.1:${this.port}`;
    const args = ["serve", "--listen", listen, "--ready-file", ready];
    this.child = spawn(program, args, {
      cwd: this.project,
      env: this.environment(),
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.said = (this.said + chunk.toString()).slice(-4_000);
    });
    const until = Date.now() + PATIENCE;
    while (!existsSync(ready)) {
      if (this.child.exitCode !== null) throw new Error(`the server ended: ${this.said}`);
      if (Date.now() > until) throw new Error(`the server was not ready in time: ${this.said}`);
      await new Promise((done) => setTimeout(done, 20));
    }
    this.url = (JSON.parse(readFileSync(ready, "utf8")) as { url: string }).url;
    this.port = Number(new URL(this.url).port);
  }

  /** As a power cut would: nothing is told to anybody. */
  async kill(): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(dirname(this.home), { recursive: true, force: true });
  }

  /** Runs a command in the project: `server.run("open")`. */
  run(...args: string[]): string {
    try {
      return execFileSync(program, args, {
        cwd: this.project,
        env: this.environment(),
        encoding: "utf8",
        stdio: "pipe",
      });
    } catch (thrown) {
      const { exitCode, signalCode } = this.child ?? {};
      const ended = exitCode || signalCode ? `; the server has ended (${exitCode ?? signalCode}): ${this.said}` : "";
      throw new Error(`dodona ${args.join(" ")}: ${(thrown as { stderr?: string }).stderr}${ended}`);
    }
  }

  /** A link that signs a browser in, once. */
  link(): string {
    return this.run("open").trim();
  }

  /** Calls a method as the owner: to make data for a test, or to see what the page did. */
  async call<T = Record<string, unknown>>(method: string, params: unknown = {}): Promise<T> {
    const token = readFileSync(join(this.home, "token"), "utf8").trim();
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const project = method === "hub.projects" ? null : await this.projectId();
    if (project) headers["x-dodona-project"] = project;
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(`${this.url}/rpc`, { method: "POST", headers, body });
    const answer = (await response.json()) as { result?: T; error?: { message: string } };
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result as T;
  }

  private async projectId(): Promise<string | null> {
    const { projects } = await this.call<{ projects: { id: string; root: string }[] }>("hub.projects");
    return projects[0]?.id ?? null;
  }

  private environment(): NodeJS.ProcessEnv {
    const { PATH, HOME, LANG } = process.env;
    return { PATH, HOME, LANG, DODONA_HOME: this.home, NO_COLOR: "1", ...this.env };
  }
}

const modelConfig = (url: string) => `
[agent]
model = "test"
[models.test]
provider = "vllm"
model = "test-model"
base_url = "${url}"
context_window = 128000
price = { input = 3.0, output = 15.0 }
`;

/** A small shop: enough to ask about. */
export const files: Record<string, string> = {
  ".git/HEAD": "ref: refs/heads/main\n",
  "notes/decisions/auth.md": `---
tags: [auth, decision]
---
# Authentication

Login issues a JSON Web Token that is good for 24 hours.

## Refresh tokens

The refresh flow was dropped in March, because revocation needed a shared
store that the edge nodes lack. See [[sessions]].
`,
  "notes/sessions.md": `# Sessions

A session lasts 24 hours. Edge nodes keep no state; see [[decisions/auth]].

- [x] Drop refresh tokens
- [ ] Shorten the lifetime of tokens #auth
`,
  "notes/index.md": "# Shop\n\nStart from [[sessions]] and [[decisions/auth]].\n",
  "src/auth/jwt.rs": `//! Tokens of the shop.

use std::time::Duration;

/// How long a login is good for.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Issues a token for a user who has shown a password.
pub fn issue(user: &str, secret: &[u8]) -> String {
    let claims = format!("{user}:{}", LIFETIME.as_secs());
    sign(&claims, secret)
}

/// Checks that a token is ours and not too old.
pub fn verify(token: &str, secret: &[u8]) -> bool {
    let Some((claims, signature)) = token.rsplit_once('.') else {
        return false;
    };
    sign(claims, secret).ends_with(signature)
}

fn sign(claims: &str, secret: &[u8]) -> String {
    format!("{claims}.{:x}", secret.len())
}
`,
  "src/cart.py": `class Cart:
    """What a customer wants to buy."""

    def __init__(self):
        self.lines = []

    def add(self, product, amount=1):
        self.lines.append((product, amount))

    def total(self):
        return sum(product.price * amount for product, amount in self.lines)
`,
};
