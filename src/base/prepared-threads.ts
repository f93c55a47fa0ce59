// Threads that are started before anybody needs them: Node is up in them and their code is loaded, and they wait for their data. An agent that takes another one's
// place has them ready, so that visitors wait for none of that.

import { once } from "node:events";
import { MessageChannel, MessagePort, Worker, type Transferable } from "node:worker_threads";
import { heapLimits } from "./heap-limits.ts";

export type PreparedThread = {
  readonly worker: Worker;
  /** Lets it begin. */
  begin(data: unknown, transfer: readonly Transferable[]): void;
};

type Waiting = {
  readonly worker: Worker;
  readonly port: MessagePort;
  readonly loaded: Promise<unknown>;
};

/** The threads of one entry file. */
export class PreparedThreads implements AsyncDisposable {
  readonly entry: URL;
  readonly #waiting: Waiting[] = [];

  constructor(entry: URL) {
    this.entry = entry;
  }

  /** Starts one. */
  start(name: string, heapMiB: number): void {
    const { port1: port, port2: theirs } = new MessageChannel();
    const worker = new Worker(this.entry, {
      name,
      workerData: { [dataComes]: theirs },
      transferList: [theirs],
      execArgv: [],
      resourceLimits: heapLimits(heapMiB),
    });
    const loaded = Promise.race([once(port, "message"), once(worker, "exit")]).catch(() => {});
    const one: Waiting = { worker, port, loaded };
    this.#waiting.push(one);
    // Whoever wants one then starts it anew, and is told what is the matter.
    const drop = (): void => {
      const at = this.#waiting.indexOf(one);
      if (at !== -1) this.#waiting.splice(at, 1);
    };
    worker.once("error", drop);
    worker.once("exit", drop);
  }

  /** Resolves when the code of all of them is loaded, or they have ended. */
  async loaded(): Promise<void> {
    await Promise.all(this.#waiting.map(async ({ loaded }) => loaded));
  }

  /** Returns one that waits; undefined: there is none. */
  take(): PreparedThread | undefined {
    const one = this.#waiting.shift();
    if (one === undefined) return undefined;
    const { worker, port } = one;
    return {
      worker,
      begin: (data, transfer) => {
        port.postMessage({ data }, [...transfer]);
        port.unref();
      },
    };
  }

  /** Ends those that nobody took. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#waiting.splice(0).map(async ({ worker }) => worker.terminate()));
  }
}

/** Stands in the workerData of a thread whose data come later. */
const dataComes = "accelDataComes";

/** Called by the root of a thread when its code is loaded, with its `workerData`. Resolves with its data, which may come later. */
export async function threadData(data: unknown): Promise<unknown> {
  const port = (data as { readonly [dataComes]?: unknown } | null)?.[dataComes];
  if (!(port instanceof MessagePort)) return data;
  port.postMessage("loaded");
  const [message] = (await once(port, "message")) as [{ readonly data: unknown }];
  port.close();
  return message.data;
}
