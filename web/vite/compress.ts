import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const TEXT = /\.(html|js|css|svg|json|txt)$/;

/** Writes `.gz` and `.br` beside every text file, so that the server never compresses anything. */
export function compress(): Plugin {
  return {
    name: "dodona-compress",
    apply: "build",
    writeBundle: {
      order: "post",
      handler(options) {
        const folder = options.dir ?? "dist";
        for (const entry of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
          if (TEXT.test(entry)) compressFile(join(folder, entry));
        }
      },
    },
  };
}

function compressFile(path: string): void {
  const body = readFileSync(path);
  if (body.length < 512) return;
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  writeFileSync(`${path}.br`, brotliCompressSync(body, { params: quality }));
  writeFileSync(`${path}.gz`, gzipSync(body, { level: 9 }));
}
