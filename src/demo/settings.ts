// The two settings files of the demo, made from its options.

import { join } from "node:path";
import { stringify } from "yaml";
import { writeDurable } from "../base/durable-file.ts";
import type { DemoOptions } from "./options.ts";

export const demoDomain = "demo.localhost";

export type DemoPaths = {
  readonly central: string;
  readonly agent: string;
  readonly secret: string;
  readonly devlove: string;
  readonly centralLog: string;
  readonly agentLog: string;
};

export function demoPaths({ stateDir }: DemoOptions): DemoPaths {
  return {
    central: join(stateDir, "central.yaml"),
    agent: join(stateDir, "agent.yaml"),
    secret: join(stateDir, "secret16"),
    devlove: join(stateDir, "devlove.json"),
    centralLog: join(stateDir, "central.log"),
    agentLog: join(stateDir, "agent.log"),
  };
}

export async function writeCentralSettings(
  { stateDir, ports }: DemoOptions,
  paths: DemoPaths,
): Promise<void> {
  await writeDurable(
    paths.central,
    stringify({
      listen: `127.0.0.1:${ports.central}`,
      base_url: `http://127.0.0.1:${ports.central}`,
      state_dir: join(stateDir, "central"),
    }),
  );
}

/** `secret16` is null if the file of the first start stays. */
export async function writeAgentSettings(
  { stateDir, ports }: DemoOptions,
  paths: DemoPaths,
  site: {
    readonly name16: string;
    readonly secret16: string | null;
    readonly viewsDir: string;
    readonly devlove: string;
  },
): Promise<void> {
  if (site.secret16 !== null) await writeDurable(paths.secret, `${site.secret16}\n`);
  await writeDurable(paths.devlove, site.devlove);
  await writeDurable(
    paths.agent,
    stringify({
      central_url: `http://127.0.0.1:${ports.central}`,
      name16: site.name16,
      secret16_file: paths.secret,
      state_dir: join(stateDir, "agent"),
      accelerator: {
        listen: `127.0.0.1:${ports.accelerator}`,
        workers: 2,
        // Lets anybody play a visitor from anywhere: curl -H 'X-Forwarded-For: …'
        trusted_proxies: ["127.0.0.0/8", "::1"],
        default_domain: demoDomain,
      },
      metrics: { listen: `127.0.0.1:${ports.metrics}` },
      edge: {
        server_name: "demo-edge",
        edge_ip_address: "127.0.0.1",
        at_directory: stateDir,
        datacenter: {
          datacenter_place: "This machine",
          country_code: "ZZ",
          datacenter_provider_company: "You",
        },
        metrics_advertise: `127.0.0.1:${ports.metrics}`,
      },
      sites: [{ domain: demoDomain, views_dir: site.viewsDir, devlove_file: paths.devlove }],
    }),
  );
}
