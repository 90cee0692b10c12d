/** axe-core, run in the page. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Finding {
  id: string;
  impact: string;
  help: string;
  where: string[];
}

interface Result {
  violations: {
    id: string;
    impact: string | null;
    help: string;
    nodes: { target: string[]; failureSummary?: string }[];
  }[];
}

/** What is serious or critical. The policy forbids scripts from elsewhere, so it is put in by the browser's own door. */
export async function axe(page: Page): Promise<Finding[]> {
  await page.evaluate(source);
  const result = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as Result;
  return result.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, impact, help, nodes }) => ({
      id,
      impact: impact ?? "",
      help,
      where: nodes.map((node) => `${node.target.join(" ")}: ${node.failureSummary ?? ""}`),
    }));
}
