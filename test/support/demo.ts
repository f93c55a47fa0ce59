// The demo as a process, as `npm start` runs it.

import { existsSync, readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { areFree, freePorts } from "./free-ports.ts";
import { Program } from "./process.ts";

export type Places = {
  readonly central_url: string;
  readonly api_token: string;
  readonly username: string;
  readonly accelerator_url: string;
  readonly metrics_url: string;
  readonly deployment_site_id: number;
  readonly name16: string;
  readonly domain: string;
  readonly backend_url: string;
};

/** A base whose four ports were free a moment ago. */
export async function freePortBase(): Promise<number> {
  for (;;) {
    const [port = 0] = await freePorts(1);
    if (port < 65_000 && (await areFree([port, port + 64, port + 80, port + 81]))) return port;
  }
}

export async function startDemo(
  stateDir: string,
  portBase: number,
  more: readonly string[] = [],
): Promise<{ program: Program; places: () => Places }> {
  const file = join(stateDir, "demo.json");
  const program = await Program.start(
    ["agent", "demo", "--state", stateDir, "--port-base", String(portBase), ...more],
    async () => existsSync(file),
    {},
    300_000,
  );
  return { program, places: () => JSON.parse(readFileSync(file, "utf8")) as Places };
}

export type Replayed = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
};
export type Visitor = (
  path: string,
  options?: { readonly method?: string; readonly headers?: Readonly<Record<string, string>> },
) => Promise<Replayed>;

/** Many requests over a few kept connections. */
export function openVisitor(
  base: string,
  connections: number,
): { readonly visit: Visitor } & Disposable {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(base);
  const visit: Visitor = async (path, { method = "GET", headers = {} } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Replayed>();
    const outgoing = request(
      { hostname, port, path, method, headers, agent, timeout: 60_000 },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        );
        response.on("error", reject);
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer for ${path} within 60 s`)));
    outgoing.on("error", reject);
    outgoing.end();
    return promise;
  };
  return { visit, [Symbol.dispose]: () => agent.destroy() };
}

/** At most `width` at a time, in order of the list. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  action: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) await action(items[at] as T); // Within the list by the loop's condition.
  };
  await Promise.all(Array.from({ length: width }, lane));
}
