// The options of `npm start -- …`, and the ports that follow from --port-base.

import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { readArgs } from "../base/command.ts";
import { AccelError } from "../core/faults.ts";

export type DemoOptions = {
  /** An absolute path. */
  readonly stateDir: string;
  /** An absolute path; undefined for the built-in demo site. */
  readonly siteDir: string | undefined;
  /** Undefined for the built-in demo backend. */
  readonly backendUrl: string | undefined;
  readonly ports: {
    readonly central: number;
    readonly accelerator: number;
    readonly backend: number;
    readonly metrics: number;
  };
};

export const demoUsage = [
  "npm start -- [options]            (accel-agent demo [options])",
  "",
  "  --site DIR        a folder of static files as the viewset (default: the demo site)",
  "  --backend URL     any origin (default: the demo backend)",
  "  --state DIR       where everything is kept (default ./var)",
  "  --port-base N     central N, accelerator N+80, backend N+81, metrics N+64 (default 8000)",
].join("\n");

export function readDemoOptions(args: readonly string[]): DemoOptions {
  const { values } = readArgs(args, {
    site: { type: "string" },
    backend: { type: "string" },
    state: { type: "string", default: "./var" },
    "port-base": { type: "string", default: "8000" },
  });
  const base = Number(values["port-base"]);
  if (!Number.isInteger(base) || base < 1 || base + 81 > 65_535) {
    throw new AccelError(
      "USAGE",
      `--port-base ${values["port-base"]}: a number from 1 to ${65_535 - 81}`,
    );
  }
  return {
    stateDir: resolve(values.state),
    siteDir: values.site === undefined ? undefined : siteDir(values.site),
    backendUrl: values.backend === undefined ? undefined : backendUrl(values.backend),
    ports: { central: base, accelerator: base + 80, backend: base + 81, metrics: base + 64 },
  };
}

function siteDir(given: string): string {
  const path = resolve(given);
  if (!existsSync(path) || !statSync(path).isDirectory())
    throw new AccelError("USAGE", `--site ${given}: no such directory`);
  return path;
}

function backendUrl(given: string): string {
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new AccelError("USAGE", `--backend ${given}: an http or https URL`);
  const { origin, pathname } = new URL(given);
  if (pathname !== "/")
    throw new AccelError("USAGE", `--backend ${given}: without a path; requests keep theirs`);
  return origin;
}
