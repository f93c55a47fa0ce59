// A further agent beside the edge's own, for a deployment site, on the edge server of that name.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { Edge } from "./edge.ts";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";

export type Site = { readonly id: number; readonly name16: string; readonly secret16: string };

export const datacenter = {
  datacenter_place: "Frankfurt am Main",
  country_code: "DE",
  datacenter_provider_company: "Loopback & Söhne",
};

export type FurtherAgent = AsyncDisposable & {
  /** Where visitors are served. */
  readonly port: number;
  readonly dir: string;
  readonly metricsPort: number;
  readonly program: Program;
};

/** `prefix`: a command that runs it in its own place. */
export async function startFurtherAgent(
  edge: Edge,
  site: Site,
  serverName: string,
  prefix: (stateDir: string) => readonly string[] = () => [],
): Promise<FurtherAgent> {
  const dir = join(edge.dir, `${site.name16}-${serverName}`);
  mkdirSync(join(dir, "state"), { recursive: true, mode: 0o700 });
  const [visitors = 0, metrics = 0] = await freePorts(2);
  writeFileSync(join(dir, "secret16"), site.secret16, { mode: 0o600 });
  const common = parse(readFileSync(join(edge.dir, "agent.yaml"), "utf8")) as {
    readonly accelerator: object;
  };
  const own = {
    name16: site.name16,
    secret16_file: join(dir, "secret16"),
    state_dir: join(dir, "state"),
    accelerator: { ...common.accelerator, listen: `127.0.0.1:${visitors}`, workers: 1 },
    metrics: { listen: `127.0.0.1:${metrics}` },
    edge: {
      server_name: serverName,
      edge_ip_address: "127.0.0.1",
      at_directory: dir,
      datacenter,
      metrics_advertise: `127.0.0.1:${metrics}`,
    },
  };
  writeFileSync(join(dir, "agent.yaml"), stringify({ ...common, ...own }));
  const program = await Program.start(
    ["agent", "run", "--config", join(dir, "agent.yaml")],
    () => answers200(`http://127.0.0.1:${metrics}/readyz`),
    {},
    undefined,
    undefined,
    prefix(join(dir, "state")),
  );
  return {
    port: visitors,
    dir,
    metricsPort: metrics,
    program,
    [Symbol.asyncDispose]: async () => program[Symbol.asyncDispose](),
  };
}
