/** The views, in the order of the navigation. One line adds one; its code is loaded when it is first shown. */
import type { Component } from "svelte";
import type { IconName } from "$lib/ui/icons";

export interface View {
  /** Its place in the address. */
  id: string;
  title: string;
  icon: IconName;
  /** Pressed after `g`. */
  key: string;
  load: () => Promise<{ default: Component }>;
}

export const views: View[] = [
  { id: "ask", title: "Ask", icon: "ask", key: "a", load: () => import("../../views/ask/Ask.svelte") },
  { id: "trace", title: "Trace", icon: "trace", key: "t", load: () => import("../../views/trace/Trace.svelte") },
];
