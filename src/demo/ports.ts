// The demo's four ports. They are tried before anything is started, so that the message about a taken port
// names the option that moves it.

import { createServer } from "node:net";
import { listen } from "../base/http-listener.ts";
import { AccelError, codeOf } from "../core/faults.ts";
import type { DemoOptions } from "./options.ts";

const users: Readonly<Record<keyof DemoOptions["ports"], string>> = {
  central: "central",
  accelerator: "the accelerator",
  backend: "the demo backend",
  metrics: "the agent's status page",
};

/** Throws DEMO_PORT_UNUSABLE naming the first port that cannot be had and who wants it. */
export async function requirePorts(
  { ports, backendUrl }: Pick<DemoOptions, "ports" | "backendUrl">,
  host: string,
): Promise<void> {
  for (const [name, user] of Object.entries(users)) {
    const port = ports[name as keyof typeof users]; // The names are those of the table above.
    // With an own backend, nothing listens on the backend's port.
    if (name !== "backend" || backendUrl === undefined) await requirePort(port, host, user);
  }
}

async function requirePort(port: number, host: string, user: string): Promise<void> {
  const server = createServer();
  try {
    await listen(server, { host, port });
  } catch (error) {
    const isTaken = codeOf(error) === "PORT_TAKEN";
    const why = isTaken ? "is taken by another program" : "may not be listened on";
    const said = `port ${port} ${why}: ${user} needs it`;
    throw new AccelError("DEMO_PORT_UNUSABLE", said, { cause: error });
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  await promise;
}
