// An agent that starts on a state directory as it lies there, without central: what it serves, and how long its first answer took.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { visit, type Visit } from "./edge.ts";
import { freePorts } from "./free-ports.ts";
import { answers200, Program } from "./process.ts";
import { domain } from "./release-rig.ts";
import { until } from "./until.ts";

const answerWithinMs = 180_000;
/** Of what an agent said that did not come up: characters. */
const saidMax = 3_000;

type HostOptions = {
  /** Another program than the sources. */
  readonly main?: string | undefined;
  /** The first answer is a 200 to it; unsaid: any answer at all. */
  readonly path?: string;
};

export class OfflineHost implements AsyncDisposable {
  readonly firstAnswerMs: number;
  /** Where HTTPS is spoken, if the settings have it so. */
  readonly tlsPort: number;
  readonly #program: Program;
  readonly #port: number;

  private constructor(program: Program, port: number, tlsPort: number, firstAnswerMs: number) {
    this.#program = program;
    this.#port = port;
    this.tlsPort = tlsPort;
    this.firstAnswerMs = firstAnswerMs;
  }

  /** On `dir`/agent; `settings` is the YAML of the agent whose state it is, with its secret. Resolves when it answers visitors and is ready. */
  static async start(
    dir: string,
    settings: string,
    { main, path }: HostOptions = {},
  ): Promise<OfflineHost> {
    const [visitors = 0, secure = 0, metrics = 0, nobody = 0] = await freePorts(4);
    const before = parse(settings) as { readonly accelerator: { readonly tls_listen?: string } };
    const { accelerator } = before;
    const own = {
      ...before,
      central_url: `http://127.0.0.1:${nobody}`,
      state_dir: join(dir, "agent"),
      accelerator: {
        ...accelerator,
        listen: `127.0.0.1:${visitors}`,
        workers: 1,
        ...(accelerator.tls_listen === undefined ? {} : { tls_listen: `127.0.0.1:${secure}` }),
      },
      metrics: { listen: `127.0.0.1:${metrics}` },
    };
    const file = join(dir, "agent.yaml");
    writeFileSync(file, stringify(own));
    const began = performance.now();
    const program = await Program.start(
      ["agent", "run", "--config", file],
      undefined,
      {},
      answerWithinMs,
      main,
    );
    await using stack = new AsyncDisposableStack();
    stack.use(program);
    const firstAnswerMs = await until(
      "an answer",
      async () => {
        if (program.ended) return 0;
        const { status } = await visit(visitors, path ?? "/", { host: domain });
        return (path === undefined || status === 200) && performance.now() - began;
      },
      answerWithinMs,
    );
    const isReady = async (): Promise<boolean> =>
      program.ended || (await answers200(`http://127.0.0.1:${metrics}/readyz`));
    await until("ready", isReady, answerWithinMs).catch((error: unknown) => {
      throw new Error(`${String(error)}; the agent said: ${program.said.slice(-saidMax)}`);
    });
    if (program.ended) throw new Error(`the agent ended: ${program.said.slice(-saidMax)}`);
    stack.move();
    return new OfflineHost(program, visitors, secure, firstAnswerMs);
  }

  get said(): string {
    return this.#program.said;
  }

  visit(path: string): Promise<Visit> {
    return visit(this.#port, path, { host: domain });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }
}
