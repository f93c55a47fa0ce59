// Lets an accelerator worker hang in the kernel: strace(1) holds this one thread up when it next waits for events, where it has no lock that others need,
// and the rest of the process runs. Needs root.

import { spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const waits = "epoll_wait,epoll_pwait";
/** Much longer than the agent waits for a worker. Until then the thread's socket gets its share of new connections, which nobody takes. */
const heldUpUs = 20_000_000;

export class HungWorkers implements Disposable {
  readonly #pid: number;
  readonly #hung = new Set<string>();
  readonly #tracers: ChildProcess[] = [];

  /** `pid`: the agent's. */
  constructor(pid: number) {
    this.#pid = pid;
  }

  /** Hangs the worker of this number, if it runs and did not hang before. False: there is none yet. */
  hang(no: number): boolean {
    const task = this.#taskOf(`accelerator-${no}`);
    if (task === undefined) return false;
    this.#hung.add(task);
    const held = `-qq -o /dev/null -e trace=${waits} -e inject=${waits}:delay_enter=${heldUpUs} -p ${task}`;
    this.#tracers.push(spawn("strace", held.split(" "), { stdio: "ignore" }));
    return true;
  }

  #taskOf(name: string): string | undefined {
    const tasks = `/proc/${this.#pid}/task`;
    const nameOf = (task: string): string => readFileSync(`${tasks}/${task}/comm`, "utf8").trim();
    return readdirSync(tasks).find((task) => !this.#hung.has(task) && nameOf(task) === name);
  }

  [Symbol.dispose](): void {
    for (const tracer of this.#tracers) tracer.kill("SIGKILL");
  }
}
