import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { compress } from "./vite/compress.ts";

/** Where `npm run dev` finds a server: `DODONA_URL=http://127.0.0.1:7421 npm run dev`. */
const server = process.env.DODONA_URL ?? "http://127.0.0.1:7421";

/** The server takes requests only from its own pages, so the proxy speaks as one. */
const proxied = {
  target: server,
  changeOrigin: true,
  ws: true,
  headers: { origin: server },
};

export default defineConfig({
  plugins: [svelte(), compress()],
  resolve: { alias: { $lib: "/src/lib" } },
  build: {
    target: "es2022",
    // Vite would otherwise put small files into the page as text, which the policy forbids.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    proxy: { "/rpc": proxied, "/streams": proxied, "/login": proxied },
  },
});
