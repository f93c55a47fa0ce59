// Central as a program of its own, to be killed: on a port of the OS's, with a server for its mails.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";

export type CentralProgram = { readonly url: string; readonly program: Program };

/** Its state lies in `dir`/state; `more` is YAML of its settings. */
export async function startCentralProgram(
  dir: string,
  mails: { readonly port: number },
  more = "",
): Promise<CentralProgram> {
  const [port = 0] = await freePorts(1);
  const config = join(dir, "central.yaml");
  const url = `http://127.0.0.1:${port}`;
  writeFileSync(
    config,
    [
      `listen: 127.0.0.1:${port}`,
      `base_url: ${url}`,
      `state_dir: ${dir}/state`,
      `mail:\n  server: smtp://127.0.0.1:${mails.port}\n  starttls: never\n  from: accel@c.example`,
      more,
      "",
    ].join("\n"),
  );
  const program = await Program.start(["central", "serve", "--config", config], async () =>
    answers200(`${url}/readyz`),
  );
  return { url, program };
}
