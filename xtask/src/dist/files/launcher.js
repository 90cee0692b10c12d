#!/usr/bin/env node
// Starts the `dodona` program of the package for this platform.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const PACKAGES = /* @PACKAGES@ */ {};

function fail(message, hint) {
  console.error(`error: ${message}`);
  console.error(`hint: ${hint}`);
  process.exit(1);
}

function isMusl() {
  if (process.platform !== "linux" || !process.report) return false;
  return !process.report.getReport().header.glibcVersionRuntime;
}

function findProgram() {
  const platform = `${process.platform} ${process.arch}`;
  const name = PACKAGES[platform];
  if (!name || isMusl()) {
    const libc = name ? " with musl" : "";
    fail(
      `dodona-agent does not support ${platform}${libc}`,
      `build it from source, or use one of: ${Object.keys(PACKAGES).join(", ")}`,
    );
  }
  const file = process.platform === "win32" ? "dodona.exe" : "dodona";
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    fail(
      `the package ${name} is not installed`,
      "install dodona-agent again without --omit=optional and --no-optional",
    );
  }
}

const child = spawn(findProgram(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(`cannot start ${error.path}: ${error.message}`, "install dodona-agent again"));
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));

// A terminal sends Ctrl-C to both processes; passing it on would count as a second one.
const fromTerminal = process.stdin.isTTY || process.stdout.isTTY;
process.on("SIGINT", () => fromTerminal || child.kill("SIGINT"));
process.on("SIGTERM", () => child.kill("SIGTERM"));
process.on("SIGHUP", () => child.kill("SIGHUP"));
