// Agents without visitors in processes of their own, so that their processor time is told apart from what they ask.

import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import type { FleetOrder, FleetSaid } from "./fleet-agents.ts";
import type { Site } from "./fleet-seed.ts";
import { cpuMsOf } from "./processor-time.ts";

export function startProcess(
  file: string,
  ...args: readonly string[]
): Disposable & { readonly child: ChildProcess } {
  const child = fork(join(import.meta.dirname, file), args, { execArgv: [] });
  return { child, [Symbol.dispose]: () => void child.kill("SIGKILL") };
}

export class LightFleet implements Disposable {
  readonly #stack = new DisposableStack();
  readonly #said = new Map<number, FleetSaid>();
  readonly #pids: number[] = [];

  /** Each process has its share of the sites, and asks one of the URLs. */
  constructor(centralUrls: readonly string[], sites: readonly Site[], processes: number) {
    const share = Math.ceil(sites.length / processes);
    for (let no = 0; no < processes; no++) {
      const { child } = this.#stack.use(startProcess("fleet-agents.ts"));
      this.#pids.push(child.pid ?? 0);
      child.on("message", (said: FleetSaid) => this.#said.set(no, said));
      child.send({
        centralUrl: centralUrls[no % centralUrls.length] ?? "",
        sites: sites.slice(no * share, (no + 1) * share),
      } satisfies FleetOrder);
    }
  }

  get connected(): number {
    return [...this.#said.values()].reduce((sum, { connected }) => sum + connected, 0);
  }

  get snapshots(): number {
    return [...this.#said.values()].reduce((sum, { snapshots }) => sum + snapshots, 0);
  }

  cpuMs(): number {
    return this.#pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
  }

  failures(): ReadonlyMap<string, number> {
    const all = new Map<string, number>();
    for (const { failures } of this.#said.values())
      for (const [what, count] of Object.entries(failures))
        all.set(what, (all.get(what) ?? 0) + count);
    return all;
  }

  [Symbol.dispose](): void {
    this.#stack[Symbol.dispose]();
  }
}
