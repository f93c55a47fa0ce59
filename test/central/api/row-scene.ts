// What a row of the specification is tried with: a customer that has one of everything.

import { expect } from "vitest";
import { makeWorld, type World } from "../../support/api-world.ts";
import { openApi, type Api, type Reply } from "./api-harness.ts";

export type Row = {
  /** How the line begins in the specification; of an endpoint, method and path. */
  readonly line: string;
  /** What of it is tried here. */
  readonly fact: string;
  readonly run: (scene: Scene) => Promise<void>;
  /** Changes what all customers of an API share. */
  readonly isAlone?: true;
};

let customers = 0;

export async function openRowApi(): Promise<Api> {
  return openApi({
    trialsPerAddress: 1_000,
    trialsTotal: 1_000,
    packages: {
      baseUrl: "https://central.example.com",
      sizeMax: 2 ** 20,
      bootstrapperUrl: "https://downloads.example.com/bootstrapper.sh",
      versions: { bootstrapper: "1.4.0", base_python: "3.13.1" },
      images: { accelerator: "registry.example.com/accelerator:1.4.0" },
    },
  });
}

export class Scene implements AsyncDisposable {
  readonly api: Api;
  readonly world: World;

  readonly #isOwner: boolean;

  private constructor(api: Api, world: World, isOwner: boolean) {
    this.api = api;
    this.world = world;
    this.#isOwner = isOwner;
  }

  /** Of an API that others use too; what is disposed of is nothing. */
  static async on(api: Api): Promise<Scene> {
    customers += 1;
    return new Scene(api, await makeWorld(api, `acme${customers}`), false);
  }

  /** Of an API of its own, whose clock and packages are nobody else's. */
  static async open(): Promise<Scene> {
    const api = await openRowApi();
    return new Scene(api, await makeWorld(api, "acme"), true);
  }

  /** `{domain}` and the like stand for what the customer has. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    token: string = this.world.token,
  ): Promise<Reply> {
    const filled = path.replaceAll(/\{([\w:]+)\}/g, (_all, name: string) => this.slot(name));
    return this.api.call(method, filled, { token, ...(body !== undefined && { body }) });
  }

  slot(name: string): string {
    const value = this.world.slots[name];
    if (value === undefined) throw new Error(`the customer has no ${name}`);
    return value;
  }

  get siteId(): number {
    return Number(this.slot("deployment_site_id"));
  }

  get domain(): string {
    return this.slot("domain");
  }

  async gives(
    request: readonly [method: string, path: string, body?: unknown],
    status: number,
    body?: unknown,
  ): Promise<void> {
    const reply = await this.ask(...request);
    expect([request[1], reply.status, reply.status < 400 ? "" : reply.body]).toEqual([
      request[1],
      status,
      status < 400 ? "" : reply.body,
    ]);
    if (body !== undefined) expect(reply.body).toMatchObject(Object(body));
    if (status === 204) expect(reply.body).toBeUndefined();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOwner) await this.api[Symbol.asyncDispose]();
  }
}

/** A line, what of it is tried, what is sent (a function is told the scene), and what comes back. */
export type Told = readonly [
  line: string,
  fact: string,
  body: unknown,
  status: number,
  answer?: (scene: Scene) => unknown,
];

/** The places of a path that are no slots by their own name. */
function pathOf(line: string): string {
  const kind = line.includes("/chat/") ? "chat" : "email";
  return line
    .slice(line.indexOf(" ") + 1)
    .replace("{ip}", "192.0.2.7")
    .replace("{iprange}", "{range}")
    .replace("{channel_id}", `{${kind}:channel_id}`);
}

/** One request for each. */
export function rowsOf(lines: readonly Told[]): readonly Row[] {
  return lines.map(([line, fact, body, status, answer]) => ({
    line: line.replace(/(\{viewset(?:_name)?\})-?2/, "$1"),
    fact: `${status}: ${fact}`,
    run: async (scene) => {
      const sent: unknown = typeof body === "function" ? body(scene) : body;
      const method = line.slice(0, line.indexOf(" "));
      await scene.gives([method, pathOf(line), sent], status, answer?.(scene));
    },
  }));
}
