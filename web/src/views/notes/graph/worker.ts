/** Starts the thread of the layout. Scripts come from our own files only, and the browser sees to that. */
import address from "./layout.worker.ts?worker&url";

interface Policy {
  createScriptURL(address: string): unknown;
}
interface Policies {
  createPolicy(name: string, rules: { createScriptURL(address: string): string }): Policy;
}

let policy: Policy | null = null;

function trusted(): string {
  const policies = (globalThis as { trustedTypes?: Policies }).trustedTypes;
  if (!policies) return address;
  policy ??= policies.createPolicy("dodona-worker", {
    createScriptURL(asked) {
      if (asked !== address) throw new TypeError("that is not our script");
      return asked;
    },
  });
  return policy.createScriptURL(address) as string;
}

export function startLayout(): Worker {
  return new Worker(trusted(), { type: "module", name: "graph layout" });
}
